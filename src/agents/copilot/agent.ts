import type { Agent } from "../agent.ts"
import { copilotRoots } from "./roots.ts"

export const copilot: Agent = {
  source: "copilot",
  name: "Copilot CLI",
  roots: copilotRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).copilotConnector,
  resume: (id) => ["copilot", `--resume=${id}`],
  open: ["copilot", "-i"],
  printedMarks: ["tool.execution_complete"],
  wiring: async () => (await import("./wiring.ts")).copilotWiring,
}
