import { hunksOfDiff, parsePatch, patchIn } from "../../agents/kit/effects.ts"
import type { Part } from "../../core/conversation.ts"
import { isRecord, string } from "../../core/record.ts"
import type { ConversationRow, StoredMessage } from "../../store/history/store.ts"
import type { EditWrite, LinesWrite } from "../../store/knowledge/lines.ts"
import { pathBelowAny, pathRootsOf } from "../paths.ts"
import { lineKey } from "./line-key.ts"

const MINUTE_MS = 60_000
/** The maximum number of lines of one edit that are stored. Longer edits are generated code. */
const MAX_LINES = 20_000

/**
 * Collects the lines that a conversation wrote into its project's files, the commits that it made, and the times when it was
 * active. `messages` are its own, without superseded ones and copies. Pure.
 */
export function linesOfConversation(row: ConversationRow, messages: readonly StoredMessage[]): LinesWrite {
  const roots = pathRootsOf(row)
  const toProjectPath = (path: string) => pathBelowAny(roots, path)
  return linesWrittenIn(messages, row.parent?.id ?? row.ref.id, toProjectPath, row.started_at)
}

/**
 * `toProjectPath` makes a path relative to the project, or returns undefined if the file is outside. Some agents date only the
 * session; its edits then count as made at `startedAt`.
 */
function linesWrittenIn(
  messages: readonly StoredMessage[],
  belongsTo: string,
  toProjectPath: (path: string) => string | undefined,
  startedAt?: number,
): LinesWrite {
  const settledCallIds = settledCalls(messages)
  const edits: EditWrite[] = []
  const commits: LinesWrite["commits"] = []
  const activeByMinute = new Map<number, number>()
  for (const { number, at: writtenAt, parts, effects } of messages) {
    const at = writtenAt ?? startedAt
    if (at === undefined) continue
    if (writtenAt !== undefined)
      activeByMinute.set(Math.floor(at / MINUTE_MS), Math.max(at, activeByMinute.get(Math.floor(at / MINUTE_MS)) ?? 0))
    for (const effect of effects)
      if (effect.type === "commit") commits.push({ number, hash: effect.hash, subject: effect.subject, at })
    for (const part of parts)
      for (const [path, editsOfPath] of Map.groupBy(editsOf(part, settledCallIds), (edit) => toProjectPath(edit.path)))
        if (path !== undefined) edits.push({ path, number, at, ...keysOf(editsOfPath) })
  }
  return {
    belongs_to: belongsTo,
    edits: edits.filter(({ added, removed }) => added.length + removed.length > 0),
    commits,
    said: [...activeByMinute.values()].map((at) => Math.floor(at / 1000)).sort((a, b) => a - b),
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

function editsOf(part: Part, settledCallIds: Set<string>): ShellEdit[] {
  if (part.type === "tool_result") return (part.hunks ?? []).map(({ path, lines }) => ({ path, ...splitHunk(lines) }))
  if (part.type !== "tool_call" || settledCallIds.has(part.call_id ?? "") || !mayWrite(part.text)) return []
  const command = commandOf(part.text)
  return command === undefined ? [] : shellEdits(command)
}

/** Checks quickly whether a call may write through a shell, because most calls do not. */
function mayWrite(call: string): boolean {
  const isShell = call.includes('"command"') || call.includes('"cmd"') || call.includes('"script"')
  return isShell && WRITE_FRAGMENTS.some((fragment) => call.includes(fragment))
}

const WRITE_FRAGMENTS = ["<<", "*** Begin Patch", "sed -", "echo ", "printf "]

function splitHunk(lines: string[]): { added: string[]; removed: string[] } {
  const linesWith = (sign: string) => lines.filter((line) => line.startsWith(sign)).map((line) => line.slice(1))
  return { added: linesWith("+"), removed: linesWith("-") }
}

/** The command line of a shell call. Agents use different names for the field. */
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

/** The longest command that is parsed, in characters. A longer one contains a complete document. */
const MAX_COMMAND_LENGTH = 400_000
/** The longest line before a here-document that is searched for a file name, in characters. The search takes quadratic time. */
const MAX_HEAD_LENGTH = 4_000
const HEREDOC = /<<(-?)\s*(?:'([\w.-]{1,60})'|"([\w.-]{1,60})"|\\?([\w.-]{1,60}))/g

/**
 * Finds the edits in the text of a command line: here-documents written to a file, patches, lines that sed inserts and that echo
 * appends. Changes by other programs, such as formatters and scripts, are not visible there. Pure.
 */
export function shellEdits(command: string): ShellEdit[] {
  if (command.length > MAX_COMMAND_LENGTH) return []
  const patch = patchIn(command)
  if (patch !== undefined) return editsOfHunks(parsePatch(patch).hunks)
  const edits: ShellEdit[] = []
  let rest = command
  for (const { head, body } of hereDocuments(command)) {
    rest = rest.replace(body, "")
    edits.push(...editsOfHereDocument(head, body))
  }
  return [...edits, ...splitCommands(rest).flatMap((part) => [...sedEdits(part), ...echoEdits(part)])]
}

/**
 * Splits a command line at line breaks, `&&` and `;`. A `;` before the last quotation mark may be inside a quotation, so it is
 * ignored.
 */
function splitCommands(command: string): string[] {
  const lastQuoteEnd = Math.max(command.lastIndexOf("'"), command.lastIndexOf('"')) + 1
  return `${command.slice(0, lastQuoteEnd)}${command.slice(lastQuoteEnd).replaceAll(";", "\n")}`.split(/\n|&&/)
}

type HereDocument = { head: string; body: string }

/** Finds the here-documents in a command. `head` is the command line to which the text is passed. */
function hereDocuments(command: string): HereDocument[] {
  const documents: HereDocument[] = []
  let bodyEnd = 0
  for (const match of command.matchAll(HEREDOC)) {
    if (match.index < bodyEnd) continue // inside another here-document
    const word = match[2] ?? match[3] ?? match[4]!
    const start = command.indexOf("\n", match.index)
    if (start === -1) break
    const head = command.slice(command.lastIndexOf("\n", match.index) + 1, start)
    const lines = command.slice(start + 1).split("\n")
    const end = lines.findIndex((line) => (match[1] === "-" ? line.trimStart() : line) === word)
    const body = lines.slice(0, end === -1 ? lines.length : end).join("\n")
    bodyEnd = start + 1 + body.length
    documents.push({ head, body })
  }
  return documents
}

const WORD = `(?:'([^'\\n]{1,400})'|"([^"\\n]{1,400})"|([^\\s'"<>|;&]{1,400}))`
const CAT_TO_FILE = new RegExp(`\\bcat\\b[^|;&]*?>>?\\s*${WORD}`)
const TEE_TO_FILE = new RegExp(`\\btee\\s+(?:-a\\s+)?${WORD}`)

function editsOfHereDocument(head: string, body: string): ShellEdit[] {
  if (head.length > MAX_HEAD_LENGTH) return []
  if (/\b(?:git\s+apply|patch)\b/.test(head)) return editsOfHunks(hunksOfDiff(body))
  const match = CAT_TO_FILE.exec(head) ?? TEE_TO_FILE.exec(head)
  const path = match && pathIn(match)
  return path ? [{ path, added: body.split("\n"), removed: [] }] : []
}

const SED_IN_PLACE = new RegExp(
  `\\bsed\\s+(?:-[A-Za-z]+\\s+)*-i\\S*\\s+(?:''\\s+|-e\\s+)*(?:'([^']*)'|"([^"]*)")\\s+${WORD}`,
)

/** Finds the lines that sed's `a`, `i` and `c` insert. The lines that `s` produces are not in the command. */
function sedEdits(part: string): ShellEdit[] {
  const match = SED_IN_PLACE.exec(part)
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

const ECHO_TO_FILE = new RegExp(`\\b(?:echo|printf)\\s+(?:-[ne]+\\s+)?(?:'([^']*)'|"([^"]*)")\\s*>>?\\s*${WORD}`)

function echoEdits(part: string): ShellEdit[] {
  const match = ECHO_TO_FILE.exec(part)
  const path = match?.[3] ?? match?.[4] ?? match?.[5]
  if (!match || path === undefined || path.startsWith("/dev/")) return []
  return [{ path, added: (match[1] ?? match[2] ?? "").split(/\\n|\n/), removed: [] }]
}

function pathIn(match: RegExpExecArray): string | undefined {
  const path = match[1] ?? match[2] ?? match[3]
  return path?.startsWith("/dev/") ? undefined : path
}

function editsOfHunks(hunks: { path: string; lines: string[] }[]): ShellEdit[] {
  return hunks.map(({ path, lines }) => ({
    path,
    added: lines.filter((line) => line.startsWith("+")).map((line) => line.slice(1)),
    removed: lines.filter((line) => line.startsWith("-")).map((line) => line.slice(1)),
  }))
}
