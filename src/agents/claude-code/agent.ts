import type { Agent } from "../agent.ts"
import { claudeCodeRoots } from "./roots.ts"

export const claudeCode: Agent = {
  source: "claude_code",
  name: "Claude Code",
  aliases: ["claude"],
  roots: claudeCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./connector.ts")).claudeCodeConnector,
  resume: (id) => ["claude", "--resume", id],
  open: ["claude"],
  session: { variable: "CLAUDE_CODE_SESSION_ID" },
  printedMarks: ["tool_result", "toolUseResult"],
  hooks: async () => (await import("./hooks.ts")).claudeCodeHooks,
  headless: async () => (await import("./headless.ts")).claudeCodeHeadless,
  wiring: async () => (await import("./wiring.ts")).claudeCodeWiring,
}
