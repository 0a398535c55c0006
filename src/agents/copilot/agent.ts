import type { Agent } from "../agent.ts"

export const copilot: Agent = {
  source: "copilot",
  name: "Copilot CLI",
  wiring: async () => (await import("./wiring.ts")).copilotWiring,
}
