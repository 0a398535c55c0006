import type { Agent } from "../agent.ts"
import { openclawRoots } from "./roots.ts"

/** A session is taken up by its key (`agent:main:main`), which stays when it gets a new id: so there is no `resume`. */
export const openclaw: Agent = {
  source: "openclaw",
  name: "OpenClaw",
  aliases: ["clawdbot", "moltbot"],
  roots: openclawRoots,
  basis: "sample",
  connector: async () => (await import("./connector.ts")).openclawConnector,
  open: ["openclaw", "tui", "--message"],
  printedMarks: ["toolResult", "bashExecution"],
}
