import type { Agent } from "../agent.ts"
import { kimiCodeRoots } from "./roots.ts"

export const kimiCode: Agent = {
  source: "kimi_code",
  name: "Kimi Code",
  aliases: ["kimi"],
  roots: kimiCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).kimiCodeConnector,
  resume: (id) => ["kimi", "-r", id],
  printedMarks: ["tool.result"],
}
