import type { Agent } from "../agent.ts"
import { kiroRoots } from "./roots.ts"

export const kiro: Agent = {
  source: "kiro",
  name: "Kiro",
  aliases: ["amazon_q"],
  roots: kiroRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).kiroConnector,
  // The editor opens no session by its id: the person chooses it there.
  resume: (id, path) => (path.endsWith(".json") ? ["kiro"] : ["kiro-cli", "chat", "--resume-id", id]),
  open: ["kiro-cli", "chat"],
  printedMarks: ["ToolUseResults", "CancelledToolUses", "ToolResults"],
}
