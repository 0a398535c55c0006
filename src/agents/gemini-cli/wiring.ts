import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import {
  geminiSubagent,
  HOOK_TIMEOUT_MS,
  type HookEvent,
  openSkill,
  proactiveHooks,
  RETRIEVAL_AGENT,
  serverStart,
  shellStart,
  syncHook,
  type Wiring,
} from "../kit/wiring.ts"

/**
 * The hooks that dex adds. BeforeTool is missing, because text from that hook does not reach the model. Gemini CLI reports an automatic
 * compression before every request, even if it then compresses nothing, so dex waits only for the person's.
 */
export const GEMINI_CLI_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "BeforeAgent" },
  { event: "AfterTool", tools: "run_shell_command|read_file" },
  { event: "PreCompress", tools: "manual" },
]

export const geminiCliWiring: Wiring = {
  signs: (machine) => ({ paths: [folder(machine)], program: "gemini" }),
  trust:
    "calls dex's tools without asking you, since dex is marked as trusted. They change nothing but dex's own records.",
  formerFiles: (machine) => [join(folder(machine), "skills", "dex", "SKILL.md")],
  files: (machine, bin) => [
    {
      path: join(folder(machine), "settings.json"),
      additions: [
        // The server is trusted, because dex's tools change nothing but dex's own records.
        { type: "property", path: ["mcpServers", "dex"], value: { ...serverStart(bin), trust: true } },
        ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin, "powershell")),
        ...proactiveHooks("gemini_cli", GEMINI_CLI_HOOKS, HOOK_TIMEOUT_MS, bin, "powershell"),
      ],
    },
    openSkill(machine),
    {
      path: join(folder(machine), "agents", `${RETRIEVAL_AGENT}.md`),
      additions: [geminiSubagent(shellStart(bin))],
      role: "subagent",
    },
  ],
}

function folder({ home, env }: Machine): string {
  return join(env.GEMINI_CLI_HOME || home, ".gemini")
}
