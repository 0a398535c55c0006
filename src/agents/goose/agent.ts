import type { Agent } from "../agent.ts"
import { gooseRoots } from "./roots.ts"

export const goose: Agent = {
  source: "goose",
  name: "Goose",
  roots: gooseRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).gooseConnector,
  resume: (id) => ["goose", "session", "--resume", "--session-id", id],
  open: ["goose", "run", "--interactive", "--text"],
}
