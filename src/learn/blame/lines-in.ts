import { hunksOfDiff, parsePatch, patchIn } from "../../agents/kit/effects.ts"
import type { Part } from "../../core/conversation.ts"
import { isRecord, string } from "../../core/record.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import type { EditWrite, LinesWrite } from "../../store/knowledge/lines.ts"
import { lineKey } from "./line-key.ts"

const MINUTE = 60_000
/** The most lines of one edit. Longer edits are generated. */
const MAX_LINES = 20_000

/**
 * Collects the lines that a conversation wrote into its project's files, the commits that it ran, and the times when it was
 * active. `below` maps a path into the project. Some agents date only the session; its edits then count as made at `startedAt`.
 * Pure.
 */
export function linesWrittenIn(
  messages: readonly StoredMessage[],
  belongsTo: string,
  below: (path: string) => string | undefined,
  startedAt?: number,
): LinesWrite {
  const settled = settledCalls(messages)
  const edits: EditWrite[] = []
  const commits: LinesWrite["commits"] = []
  const active = new Map<number, number>()
  for (const { number, at: writtenAt, parts, effects } of messages) {
    const at = writtenAt ?? startedAt
    if (at === undefined) continue
    if (writtenAt !== undefined)
      active.set(Math.floor(at / MINUTE), Math.max(at, active.get(Math.floor(at / MINUTE)) ?? 0))
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
    said: [...active.values()].map((at) => Math.floor(at / 1000)).sort((a, b) => a - b),
  }
}

function keysOf(edits: ShellEdit[]): { added: number[]; removed: number[] } {
  const keys = (lines: string[]) =>
    lines.slice(0, MAX_LINES).flatMap((line) => {
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

/** A quick check whether a call may write through a shell. Most do not. */
function mayWrite(call: string): boolean {
  const isShell = call.includes('"command"') || call.includes('"cmd"') || call.includes('"script"')
  return isShell && WRITES.some((sign) => call.includes(sign))
}

const WRITES = ["<<", "*** Begin Patch", "sed -", "echo ", "printf "]

function splitHunk(lines: string[]): { added: string[]; removed: string[] } {
  const of = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1))
  return { added: of("+"), removed: of("-") }
}

/** The command line of a shell call, for any agent's name of the field. */
function commandOf(text: string): string | undefined {
  if (!text.startsWith("{")) return undefined
  try {
    const input: unknown = JSON.parse(text)
    if (!isRecord(input)) return undefined
    const value = input.command ?? input.cmd ?? input.script
    return Array.isArray(value) ? value.filter((word) => typeof word === "string").at(-1) : string(value)
  } catch {
    return undefined // the text of a freeform tool
  }
}

/** The ids of calls that failed, and of calls whose result already contains the edits. */
function settledCalls(messages: readonly StoredMessage[]): Set<string> {
  const settled = new Set<string>()
  for (const { parts } of messages)
    for (const part of parts)
      if (part.type === "tool_result" && part.call_id !== undefined && (part.is_error || part.hunks !== undefined))
        settled.add(part.call_id)
  return settled
}

type ShellEdit = { path: string; added: string[]; removed: string[] }

/** The longest command that is parsed, in characters. A longer one contains a document. */
const MAX_LENGTH = 400_000
/** The longest line before a here-document, in characters. Searching it for the file name takes quadratic time. */
const MAX_HEAD_LENGTH = 4_000
const HEREDOC = /<<(-?)\s*(?:'([\w.-]{1,60})'|"([\w.-]{1,60})"|\\?([\w.-]{1,60}))/g

/**
 * Finds the edits in the text of a command line: here-documents written to a file, patches, lines that sed inserts and that echo
 * appends. Changes by other programs, such as formatters and scripts, are not visible there. Pure.
 */
export function shellEdits(command: string): ShellEdit[] {
  if (command.length > MAX_LENGTH) return []
  const patch = patchIn(command)
  if (patch !== undefined) return byFile(parsePatch(patch).hunks)
  const edits: ShellEdit[] = []
  let rest = command
  for (const { head, body } of hereDocuments(command)) {
    rest = rest.replace(body, "")
    edits.push(...writtenBy(head, body))
  }
  return [...edits, ...partsOf(rest).flatMap((part) => [...putIn(part), ...appended(part)])]
}

/** Splits a command line. A `;` before a quotation mark may be inside the quotation. */
function partsOf(command: string): string[] {
  const quoted = Math.max(command.lastIndexOf("'"), command.lastIndexOf('"')) + 1
  return `${command.slice(0, quoted)}${command.slice(quoted).replaceAll(";", "\n")}`.split(/\n|&&/)
}

type HereDocument = { head: string; body: string }

/** Returns each here-document with the command line before it. */
function hereDocuments(command: string): HereDocument[] {
  const found: HereDocument[] = []
  let after = 0
  for (const match of command.matchAll(HEREDOC)) {
    if (match.index < after) continue // inside another here-document
    const word = match[2] ?? match[3] ?? match[4]!
    const start = command.indexOf("\n", match.index)
    if (start === -1) break
    const head = command.slice(command.lastIndexOf("\n", match.index) + 1, start)
    const lines = command.slice(start + 1).split("\n")
    const end = lines.findIndex((line) => (match[1] === "-" ? line.trimStart() : line) === word)
    const body = lines.slice(0, end === -1 ? lines.length : end).join("\n")
    after = start + 1 + body.length
    found.push({ head, body })
  }
  return found
}

const WORD = `(?:'([^'\\n]{1,400})'|"([^"\\n]{1,400})"|([^\\s'"<>|;&]{1,400}))`
const CAT = new RegExp(`\\bcat\\b[^|;&]*?>>?\\s*${WORD}`)
const TEE = new RegExp(`\\btee\\s+(?:-a\\s+)?${WORD}`)

function writtenBy(head: string, body: string): ShellEdit[] {
  if (head.length > MAX_HEAD_LENGTH) return []
  if (/\b(?:git\s+apply|patch)\b/.test(head)) return byFile(hunksOfDiff(body))
  const match = CAT.exec(head) ?? TEE.exec(head)
  const path = match && wordOf(match)
  return path ? [{ path, added: body.split("\n"), removed: [] }] : []
}

const SED = new RegExp(`\\bsed\\s+(?:-[A-Za-z]+\\s+)*-i\\S*\\s+(?:''\\s+|-e\\s+)*(?:'([^']*)'|"([^"]*)")\\s+${WORD}`)

/** Finds the lines that sed's `a`, `i` and `c` insert. The result of `s` is not visible. */
function putIn(part: string): ShellEdit[] {
  const match = SED.exec(part)
  if (!match) return []
  const script = match[1] ?? match[2] ?? ""
  const path = match[3] ?? match[4] ?? match[5]
  const text = /^(?:\d+|\$|\/(?:[^/\\]|\\.)*\/)(?:,(?:\d+|\$|\/(?:[^/\\]|\\.)*\/))?\s*[aic]\\?\s*(.+)$/s.exec(
    script,
  )?.[1]
  return path === undefined || text === undefined
    ? []
    : [{ path, added: text.replaceAll("\\t", "\t").split(/\\n|\\?\n/), removed: [] }]
}

const APPENDED = new RegExp(`\\b(?:echo|printf)\\s+(?:-[ne]+\\s+)?(?:'([^']*)'|"([^"]*)")\\s*>>?\\s*${WORD}`)

function appended(part: string): ShellEdit[] {
  const match = APPENDED.exec(part)
  const path = match?.[3] ?? match?.[4] ?? match?.[5]
  if (!match || path === undefined || path.startsWith("/dev/")) return []
  return [{ path, added: (match[1] ?? match[2] ?? "").split(/\\n|\n/), removed: [] }]
}

function wordOf(match: RegExpExecArray): string | undefined {
  const path = match[1] ?? match[2] ?? match[3]
  return path?.startsWith("/dev/") ? undefined : path
}

function byFile(hunks: { path: string; lines: string[] }[]): ShellEdit[] {
  return hunks.map(({ path, lines }) => ({
    path,
    added: lines.filter((line) => line.startsWith("+")).map((line) => line.slice(1)),
    removed: lines.filter((line) => line.startsWith("-")).map((line) => line.slice(1)),
  }))
}
