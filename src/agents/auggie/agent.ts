import type { Agent } from "../agent.ts"
import { auggieRoots } from "./roots.ts"

export const auggie: Agent = {
  source: "auggie",
  name: "Auggie",
  roots: auggieRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).auggieConnector,
}
