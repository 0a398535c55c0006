import type { Agent } from "../agent.ts"
import { cursorRoots } from "./roots.ts"

export const cursor: Agent = {
  source: "cursor",
  name: "Cursor",
  roots: cursorRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).cursorConnector,
  resume: (id) => ["cursor-agent", `--resume=${id}`],
  // Not verified.
  open: ["cursor-agent"],
  wiring: async () => (await import("./wiring.ts")).cursorWiring,
}
