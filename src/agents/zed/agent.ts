import type { Agent } from "../agent.ts"
import { zedRoots } from "./roots.ts"

export const zed: Agent = {
  source: "zed",
  name: "Zed",
  roots: zedRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).zedConnector,
}
