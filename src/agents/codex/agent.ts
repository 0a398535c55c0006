import type { Agent } from "../agent.ts"
import { codexRoots } from "./roots.ts"
import { threadOfCall } from "./thread-of-call.ts"

export const codex: Agent = {
  source: "codex",
  name: "Codex",
  roots: codexRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).codexConnector,
  resume: (id) => ["codex", "resume", id],
  open: ["codex"],
  session: { variable: "CODEX_THREAD_ID", inCall: threadOfCall },
  printedMarks: ["function_call_output", "custom_tool_call_output"],
  hooks: async () => (await import("./hooks.ts")).codexHooks,
  headless: async () => (await import("./headless.ts")).codexHeadless,
  wiring: async () => (await import("./wiring.ts")).codexWiring,
}
