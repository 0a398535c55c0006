import type { Agent } from "../agent.ts"
import { hermesRoots } from "./roots.ts"

export const hermes: Agent = {
  source: "hermes",
  name: "Hermes Agent",
  roots: hermesRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).hermesConnector,
  resume: (id) => ["hermes", "--resume", id],
  open: ["hermes", "chat", "-q"],
  printedMarks: ["tool_call_id"],
}
