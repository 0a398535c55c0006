import type { Agent } from "../agent.ts"
import { opencodeRoots } from "./roots.ts"

export const opencode: Agent = {
  source: "opencode",
  name: "OpenCode",
  roots: opencodeRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).opencodeConnector,
  resume: (id) => ["opencode", "--session", id],
  open: ["opencode", "--prompt"],
  hooks: async () => (await import("./hooks.ts")).opencodeHooks,
  headless: async () => (await import("./headless.ts")).opencodeHeadless,
  wiring: async () => (await import("./wiring.ts")).opencodeWiring,
}
