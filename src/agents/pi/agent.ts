import type { Agent } from "../agent.ts"

export const pi: Agent = {
  source: "pi",
  name: "Pi",
  connector: async () => (await import("./connector.ts")).piConnector,
  resume: (_, path) => ["pi", "--session", path],
  open: ["pi"],
  printedMarks: ["toolResult", "bashExecution"],
}
