import type { Agent } from "../agent.ts"
import { kimiCodeRoots } from "./roots.ts"

export const kimiCode: Agent = {
  source: "kimi_code",
  name: "Kimi Code",
  aliases: ["kimi"],
  roots: kimiCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).kimiCodeConnector,
  // By the name of the session's folder: …/session_<id>/agents/<agent>/wire.jsonl
  resume: (id, path) => ["kimi", "-r", path.split(/[\\/]/).at(-4) ?? id],
  printedMarks: ["tool.result"],
}
