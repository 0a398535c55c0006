import type { Agent } from "../agent.ts"
import { crushRoots } from "./roots.ts"

export const crush: Agent = {
  source: "crush",
  name: "Crush",
  roots: crushRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).crushConnector,
  resume: (id) => ["crush", "--session", id],
}
