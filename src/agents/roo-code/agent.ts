import type { Agent } from "../agent.ts"
import { rooCodeRoots } from "./roots.ts"

export const rooCode: Agent = {
  source: "roo_code",
  name: "Roo Code",
  aliases: ["roo"],
  roots: rooCodeRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).rooCodeConnector,
}
