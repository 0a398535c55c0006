import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import {
  codexSubagent,
  HOOK_TIMEOUT_MS,
  type HookEvent,
  openSkill,
  proactiveHooks,
  RETRIEVAL_AGENT,
  serverStart,
  shellStart,
  type Wiring,
} from "../kit/wiring.ts"

/** The hooks that dex adds. Codex's hooks use the name Bash for its shell tool. */
export const CODEX_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "UserPromptSubmit" },
  { event: "PreToolUse", tools: "apply_patch" },
  { event: "PostToolUse", tools: "Bash" },
  { event: "PreCompact" },
]

export const codexWiring: Wiring = {
  signs: (machine) => ({ paths: [folder(machine)], program: "codex" }),
  formerFiles: (machine) => [join(folder(machine), "skills", "dex", "SKILL.md")],
  files: (machine, bin) => [
    {
      path: join(folder(machine), "config.toml"),
      additions: [
        {
          type: "table",
          path: ["mcp_servers", "dex"],
          // Without `required`, Codex may send its first request before it knows the tools.
          values: { ...serverStart(bin), required: true },
        },
      ],
    },
    ...(bin.hook === undefined
      ? []
      : [
          {
            path: join(folder(machine), "hooks.json"),
            additions: proactiveHooks("codex", CODEX_HOOKS, HOOK_TIMEOUT_MS / 1000, bin, "any shell"),
          },
        ]),
    openSkill(machine),
    {
      path: join(folder(machine), "agents", `${RETRIEVAL_AGENT}.toml`),
      additions: [codexSubagent(shellStart(bin))],
      role: "subagent",
    },
  ],
  note: (_, { hook }) =>
    hook === undefined
      ? "no sync hook: Codex skips hooks that you have not trusted"
      : 'Codex skips hooks until you trust them: start codex, and when it says "Hooks need review", choose "Trust all and continue" (later: /hooks). It asks again when they change.',
}

function folder({ home, env }: Machine): string {
  return env.CODEX_HOME || join(home, ".codex")
}
