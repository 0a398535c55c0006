import type { Agent } from "../agent.ts"
import { clineRoots } from "./roots.ts"

export const cline: Agent = {
  source: "cline",
  name: "Cline",
  roots: clineRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).clineConnector,
  resume: (id) => ["cline", "--id", id],
  open: ["cline"],
  printedMarks: ["tool_result"],
}
