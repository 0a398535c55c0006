import type { Agent } from "../agent.ts"
import { continueRoots } from "./roots.ts"

export const continueDev: Agent = {
  source: "continue",
  name: "Continue",
  aliases: ["cn"],
  roots: continueRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).continueConnector,
  // It resumes only its last session by itself; any other one as a copy.
  resume: (id) => ["cn", "--fork", id],
  open: ["cn"],
  printedMarks: ["toolCallStates"],
}
