import { type HookStart, hookStart } from "./start.ts"
import type { Bin, JsonAddition } from "./wiring.ts"

/** An event at which dex is asked, for some of the agent's tools only where `tools` names them. */
export type HookEvent = { event: string; tools?: string }

/** Behind dex's own quarter of a second; no agent waits longer than this, whatever happens. */
export const HOOK_TIMEOUT_MS = 1_000
/** PowerShell, which some agents start on Windows before dex, may take most of a second by itself. */
const SHELL_FACTOR = 3

/** Command hooks, as Claude Code, Codex and Gemini CLI write them. None where hooks were not wanted. */
export function proactiveHooks(
  source: string,
  events: readonly HookEvent[],
  timeoutOfProgram: number,
  bin: Bin,
  how: HookStart,
): JsonAddition[] {
  const { hook, windows } = bin
  if (hook === undefined) return []
  const timeout = windows && how !== "program" ? timeoutOfProgram * SHELL_FACTOR : timeoutOfProgram
  return events.map(({ event, tools }) => ({
    type: "item",
    path: ["hooks", event],
    value: {
      matcher: tools,
      hooks: [{ type: "command", ...hookStart(hook, [source, event], bin, how), timeout }],
    },
  }))
}
