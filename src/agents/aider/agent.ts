import type { Agent } from "../agent.ts"
import { aiderRoots } from "./roots.ts"

export const aider: Agent = {
  source: "aider",
  name: "Aider",
  roots: aiderRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).aiderConnector,
  resume: (_, path) => ["aider", "--chat-history-file", path, "--restore-chat-history"],
}
