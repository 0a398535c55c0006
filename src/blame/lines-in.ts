import type { Part } from "../core/conversation.ts"
import { isRecord, string } from "../core/record.ts"
import type { StoredMessage } from "../store/history/store.ts"
import type { EditWrite, LinesWrite } from "../store/knowledge/lines.ts"
import { lineKey } from "./line-key.ts"
import { type ShellEdit, shellEdits } from "./shell-edits.ts"

const MINUTE = 60_000
/** Of one edit; what is longer was generated. */
const MOST_LINES = 20_000

/**
 * What a conversation wrote into the files of its project, the commits it ran, and when it was at work. `below` says where in
 * the project a path is. Some agents date a session and not its messages: what those did was done at `startedAt` or later. Pure.
 */
export function linesIn(
  messages: readonly StoredMessage[],
  belongsTo: string,
  below: (path: string) => string | undefined,
  startedAt?: number,
): LinesWrite {
  const settled = settledCalls(messages)
  const edits: EditWrite[] = []
  const commits: LinesWrite["commits"] = []
  const said = new Map<number, number>()
  for (const { number, at: saidAt, parts, effects } of messages) {
    const at = saidAt ?? startedAt
    if (at === undefined) continue
    if (saidAt !== undefined) said.set(Math.floor(at / MINUTE), Math.max(at, said.get(Math.floor(at / MINUTE)) ?? 0))
    for (const effect of effects)
      if (effect.type === "commit") commits.push({ number, hash: effect.hash, subject: effect.subject, at })
    for (const part of parts)
      for (const [path, own] of Map.groupBy(editsOf(part, settled), (edit) => below(edit.path)))
        if (path !== undefined) edits.push({ path, number, at, ...keysOf(own) })
  }
  return {
    belongs_to: belongsTo,
    edits: edits.filter(({ added, removed }) => added.length + removed.length > 0),
    commits,
    said: [...said.values()].map((at) => Math.floor(at / 1000)).sort((a, b) => a - b),
  }
}

function keysOf(edits: ShellEdit[]): { added: number[]; removed: number[] } {
  const keys = (lines: string[]) =>
    lines.slice(0, MOST_LINES).flatMap((line) => {
      const key = lineKey(line)
      return key === 0 ? [] : [key]
    })
  return { added: keys(edits.flatMap(({ added }) => added)), removed: keys(edits.flatMap(({ removed }) => removed)) }
}

function editsOf(part: Part, settled: Set<string>): ShellEdit[] {
  if (part.type === "tool_result") return (part.hunks ?? []).map(({ path, lines }) => ({ path, ...splitHunk(lines) }))
  if (part.type !== "tool_call" || settled.has(part.call_id ?? "") || !mayWrite(part.text)) return []
  const command = commandOf(part.text)
  return command === undefined ? [] : shellEdits(command)
}

/** Most calls write nothing through a shell, and need no closer look. */
function mayWrite(call: string): boolean {
  const isShell = call.includes('"command"') || call.includes('"cmd"') || call.includes('"script"')
  return isShell && WRITES.some((sign) => call.includes(sign))
}

const WRITES = ["<<", "*** Begin Patch", "sed -", "echo ", "printf "]

function splitHunk(lines: string[]): { added: string[]; removed: string[] } {
  const of = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1))
  return { added: of("+"), removed: of("-") }
}

/** The command line of a call to a shell, whatever its agent calls the field. */
function commandOf(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined
  try {
    const input: unknown = JSON.parse(text)
    if (!isRecord(input)) return undefined
    const said = input.command ?? input.cmd ?? input.script
    return Array.isArray(said) ? said.filter((word) => typeof word === "string").at(-1) : string(said)
  } catch {
    return undefined // a freeform tool's words
  }
}

/** Calls that did nothing, and those whose result tells what they did. */
function settledCalls(messages: readonly StoredMessage[]): Set<string> {
  const settled = new Set<string>()
  for (const { parts } of messages)
    for (const part of parts)
      if (part.type === "tool_result" && part.call_id !== undefined && (part.is_error || part.hunks !== undefined))
        settled.add(part.call_id)
  return settled
}
