import type { Agent } from "../agent.ts"
import { vscodeRoots } from "./roots.ts"

export const vscode: Agent = {
  source: "vscode",
  name: "VS Code",
  aliases: ["code", "copilot_chat"],
  roots: vscodeRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).vscodeConnector,
  open: ["code", "chat"],
  wiring: async () => (await import("./wiring.ts")).vscodeWiring,
}
