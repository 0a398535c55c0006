import type { Agent } from "../agent.ts"
import { openhandsRoots } from "./roots.ts"

export const openhands: Agent = {
  source: "openhands",
  name: "OpenHands",
  roots: openhandsRoots,
  basis: "description",
  connector: async () => (await import("./connector.ts")).openhandsConnector,
  resume: (id) => ["openhands", "--resume", id],
  open: ["openhands", "--task"],
  printedMarks: ["ObservationEvent", "AgentErrorEvent"],
}
