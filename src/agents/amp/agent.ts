import type { Agent } from "../agent.ts"
import { ampRoots } from "./roots.ts"

/** Given a prompt, it answers and ends: so there is no `open`. */
export const amp: Agent = {
  source: "amp",
  name: "Amp",
  roots: ampRoots,
  basis: "description",
  connector: async () => (await import("./connector.ts")).ampConnector,
  resume: (id) => ["amp", "threads", "continue", id],
  printedMarks: ["tool_result"],
}
