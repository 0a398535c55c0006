import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import {
  geminiSubagent,
  HOOK_TIMEOUT_MS,
  type HookEvent,
  proactiveHooks,
  RETRIEVAL_AGENT,
  serverStart,
  shellStart,
  skillFile,
  syncHook,
  type Wiring,
} from "../kit/wiring.ts"

/** The hooks that dex adds. BeforeTool is missing, because the text it adds does not reach the model. */
export const GEMINI_CLI_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "BeforeAgent" },
  { event: "AfterTool", tools: "run_shell_command|read_file" },
]

export const geminiCliWiring: Wiring = {
  signs: (machine) => ({ paths: [folder(machine)], program: "gemini" }),
  trust:
    "calls dex's tools without asking you, since dex is marked as trusted. They change nothing but dex's own records.",
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
    { path: join(folder(machine), "skills", "dex", "SKILL.md"), additions: [skillFile({ subagent: true })] },
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
