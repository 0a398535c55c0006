import type { Agent } from "../agent.ts"
import { antigravityRoots } from "./roots.ts"

export const antigravity: Agent = {
  source: "antigravity",
  name: "Antigravity",
  aliases: ["agy"],
  roots: antigravityRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).antigravityConnector,
  resume: (id) => ["agy", "--conversation", id],
  open: ["agy", "--prompt-interactive"],
  printedMarks: ["RUN_COMMAND", "VIEW_FILE", "CODE_ACTION", "LIST_DIRECTORY", "GREP_SEARCH", "SEARCH_WEB", "GENERIC"],
}
