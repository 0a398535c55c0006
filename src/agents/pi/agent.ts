import type { Agent } from "../agent.ts"
import { piRoots } from "./roots.ts"

export const pi: Agent = {
  source: "pi",
  name: "Pi",
  roots: piRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).piConnector,
  resume: (_, path) => ["pi", "--session", path],
  open: ["pi"],
  printedMarks: ["toolResult", "bashExecution"],
}
