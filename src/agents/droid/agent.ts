import type { Agent } from "../agent.ts"
import { droidRoots } from "./roots.ts"

export const droid: Agent = {
  source: "droid",
  name: "Factory Droid",
  aliases: ["factory"],
  roots: droidRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).droidConnector,
  resume: (id) => ["droid", "--resume", id],
  open: ["droid"],
  printedMarks: ["tool_result"],
}
