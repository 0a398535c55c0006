import type { Bin } from "./agent.ts"
import type { JsonAddition } from "./edit-json.ts"

/** A command hook as Claude Code and Gemini CLI write them. None where there is no program for it (Windows). */
export function syncHook(event: string, { sync }: Bin): JsonAddition[] {
  if (sync === undefined) return []
  return [{ type: "item", path: ["hooks", event], value: commandHook(shellWord(sync)) }]
}

export function commandHook(command: string) {
  return { hooks: [{ type: "command", command }] }
}

/** A line for a shell that reads what is new: nobody waits for it, nothing is printed, it ends within a minute. */
export function syncLine(dex: string): string {
  return `${dex} sync --max-seconds 60 </dev/null >/dev/null 2>&1 &`
}

/** A path as a shell reads it. */
export function shellWord(path: string): string {
  return /^[\w/.@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
