import type { Agent } from "../agent.ts"
import { grokRoots } from "./roots.ts"

export const grok: Agent = {
  source: "grok",
  name: "Grok",
  roots: grokRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).grokConnector,
  resume: (id) => ["grok", "--resume", id],
  open: ["grok"],
  printedMarks: ["tool_call_update", "tool_result"],
}
