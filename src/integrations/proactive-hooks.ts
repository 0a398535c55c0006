import type { Bin } from "./agent.ts"
import type { JsonAddition } from "./edit-json.ts"
import { shellWord } from "./sync-hook.ts"

/** An event at which dex is asked, for some of the agent's tools only where `tools` names them. */
export type HookEvent = { event: string; tools?: string }

/** Behind dex's own stop after 250 ms; no agent waits longer than this, whatever happens. */
export const HOOK_TIMEOUT_MS = 1_000

/** Command hooks, as Claude Code, Codex and Gemini CLI write them. None where hooks were not wanted, or on Windows. */
export function proactiveHooks(
  source: string,
  events: readonly HookEvent[],
  timeout: number,
  { hook }: Bin,
): JsonAddition[] {
  if (hook === undefined) return []
  return events.map(({ event, tools }) => ({
    type: "item",
    path: ["hooks", event],
    value: {
      ...(tools !== undefined && { matcher: tools }),
      hooks: [{ type: "command", command: `${shellWord(hook)} ${source} ${event}`, timeout }],
    },
  }))
}
