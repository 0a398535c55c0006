import { type HookStart, hookStart } from "./start.ts"
import type { Bin, JsonAddition } from "./wiring.ts"

/** A command hook as Claude Code and Gemini CLI write them. */
export function syncHook(event: string, bin: Bin, how: HookStart): JsonAddition[] {
  if (bin.sync === undefined) return []
  return [{ type: "item", path: ["hooks", event], value: commandHook(hookStart(bin.sync, [], bin, how)) }]
}

export function commandHook(start: { command: string; args?: string[] }) {
  return { hooks: [{ type: "command", ...start }] }
}

/** A line for a shell that reads what is new: nobody waits for it, nothing is printed, it ends within a minute. */
export function syncLine(dex: string): string {
  return `${dex} sync --no-wait --max-seconds 60 </dev/null >/dev/null 2>&1 &`
}
