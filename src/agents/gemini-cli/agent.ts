import type { Agent } from "../agent.ts"
import { geminiCliRoots } from "./roots.ts"

export const geminiCli: Agent = {
  source: "gemini_cli",
  name: "Gemini CLI",
  aliases: ["gemini"],
  roots: geminiCliRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).geminiCliConnector,
  resume: (id) => ["gemini", "--resume", id],
  open: ["gemini", "--prompt-interactive"],
  printedMarks: ["functionResponse"],
  hooks: async () => (await import("./hooks.ts")).geminiCliHooks,
  headless: async () => (await import("./headless.ts")).geminiCliHeadless,
  wiring: async () => (await import("./wiring.ts")).geminiCliWiring,
}
