import type { Bin } from "./agent.ts"
import type { JsonAddition } from "./edit-json.ts"

/** A command hook as Claude Code and Gemini CLI write them. None where there is no program for it (Windows). */
export function syncHook(event: string, { sync }: Bin): JsonAddition[] {
  if (sync === undefined) return []
  return [{ type: "item", path: ["hooks", event], value: { hooks: [{ type: "command", command: shellWord(sync) }] } }]
}

function shellWord(path: string): string {
  return /^[\w/.@+-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
