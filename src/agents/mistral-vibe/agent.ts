import type { Agent } from "../agent.ts"
import { vibeRoots } from "./roots.ts"

export const mistralVibe: Agent = {
  source: "mistral_vibe",
  name: "Mistral Vibe",
  aliases: ["vibe"],
  roots: vibeRoots,
  basis: "description",
  connector: async () => (await import("./connector.ts")).mistralVibeConnector,
  resume: (id) => ["vibe", "--resume", id],
  open: ["vibe"],
  printedMarks: ["tool_call_id"],
}
