import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"
import {
  claudeCodeSubagent,
  HOOK_TIMEOUT_MS,
  type HookEvent,
  hookStart,
  proactiveHooks,
  RETRIEVAL_AGENT,
  SKILL_FILE,
  serverStart,
  shellStart,
  syncHook,
  type Wiring,
} from "../kit/wiring.ts"

/** The hooks that dex adds. SessionStart also fires on resume, after `/clear` and after a compaction. */
export const CLAUDE_CODE_HOOKS: readonly HookEvent[] = [
  { event: "SessionStart" },
  { event: "UserPromptSubmit" },
  { event: "PreToolUse", tools: "Read|Edit|Write|MultiEdit" },
  { event: "PostToolUseFailure", tools: "Bash" },
  { event: "SubagentStart" },
  { event: "PreCompact" },
]

export const claudeCodeWiring: Wiring = {
  signs: (machine) => ({ paths: [configFolder(machine), settingsFile(machine)], program: "claude" }),
  trust: "lets the dex-retrieval sub-agent run dex commands that only read, without asking you.",
  files: (machine, bin) => [
    {
      path: settingsFile(machine),
      additions: [
        {
          type: "property",
          path: ["mcpServers", "dex"],
          value: { type: "stdio", ...serverStart(bin), env: {} },
        },
      ],
    },
    {
      path: join(configFolder(machine), "settings.json"),
      additions: [
        ...["SessionStart", "SessionEnd"].flatMap((event) => syncHook(event, bin, "program")),
        ...proactiveHooks("claude_code", CLAUDE_CODE_HOOKS, HOOK_TIMEOUT_MS / 1000, bin, "program"),
      ],
    },
    { path: join(configFolder(machine), "skills", "dex", "SKILL.md"), additions: [SKILL_FILE] },
    {
      path: join(configFolder(machine), "agents", `${RETRIEVAL_AGENT}.md`),
      additions: [
        claudeCodeSubagent(shellStart(bin), {
          server: "mcp__dex",
          guard: bin.guard === undefined ? undefined : hookStart(bin.guard, [], bin, "program"),
        }),
      ],
      role: "subagent",
    },
  ],
}

function configFolder({ home, env }: Machine): string {
  return env.CLAUDE_CONFIG_DIR || join(home, ".claude")
}

/** The file that configures MCP servers. It is next to the configuration folder, or inside it if CLAUDE_CONFIG_DIR is set. */
function settingsFile({ home, env }: Machine): string {
  return join(env.CLAUDE_CONFIG_DIR || home, ".claude.json")
}
