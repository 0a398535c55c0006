import type { Agent } from "../agent.ts"

export const vscode: Agent = {
  source: "vscode",
  name: "VS Code",
  aliases: ["code"],
  wiring: async () => (await import("./wiring.ts")).vscodeWiring,
}
