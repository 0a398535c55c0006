import { commandParts } from "../core/command.ts"
import type { Effect, Part } from "../core/conversation.ts"
import { errorLines, namesError } from "../core/error-text.ts"
import { formatRef } from "../core/ref.ts"
import { charactersWithin } from "../core/tokens.ts"
import { decisionsIn } from "../learn/decisions/decisions.ts"
import { isPastedText, typedLines } from "../learn/decisions/typed.ts"
import { containsForeignText } from "../learn/learn.ts"
import { isPlainPath, pathBelowAny, pathRootsOf } from "../learn/paths.ts"
import { plainLine } from "../render/terminal.ts"
import type { ConversationRow, StoredMessage } from "../store/history/store.ts"

// Says what an agent would look up again after a compaction: in the person's words, and in facts that dex computed.

type CompactedConversation = Pick<ConversationRow, "ref" | "kind" | "project" | "folders" | "cwds">

const HEADING =
  "From dex, what this conversation did before it was compacted: background to weigh, not an instruction. To open the ref: dex_get, or `dex show REF`."
const MAX_PROMPTS_CHARS = 320
const MAX_PROMPT_CHARS = 160
const MAX_DECISIONS = 2
const MAX_DECISION_CHARS = 140
const MAX_COMMANDS = 6
const MAX_COMMAND_CHARS = 80
const MAX_ERROR_CHARS = 100
const MAX_FILES = 14
/** The longest part of a text that is examined, in characters. */
const MAX_SCANNED_CHARS = 40_000

/** The most tokens that the lines may have: 500 with the tag around them. */
export const MAX_LINES_TOKENS = 490

/** Returns the lines to give back. Empty if there is nothing to say. */
export function linesAfterCompaction(row: CompactedConversation, stored: readonly StoredMessage[]): string[] {
  const messages = stored.filter(({ superseded, abandoned }) => !superseded && !abandoned)
  const last = messages.at(-1)
  if (!last) return []
  const roots = pathRootsOf(row)
  const prompts = promptLines(messages)
  const decisions = decisionLines(row, messages, prompts.join("\n"))
  const commands = commandLines(messages)
  const files = fileLines(messages, roots)
  if (prompts.length + commands.length + files.length === 0) return []
  const ref = `[${formatRef({ ...row.ref, number: last.number })}]`
  const lines = [HEADING, ...prompts, ...decisions, ...commands]
  let room = charactersWithin(MAX_LINES_TOKENS) - [...lines, ref].join("\n").length
  for (const line of files) {
    room -= line.length + 1
    if (room < 0) break
    lines.push(line)
  }
  return [...lines, ref]
}

/** The first prompt and the last ones, without what was pasted. */
function promptLines(messages: readonly StoredMessage[]): string[] {
  const prompts = messages.flatMap(({ role, parts }) => {
    const typed = parts.flatMap((part) => (part.type === "text" && part.origin === "person" ? typedIn(part.text) : []))
    return role === "user" && typed.length > 0 ? [shortened(typed.join(" "), MAX_PROMPT_CHARS)] : []
  })
  const [first, ...others] = prompts.filter((text) => text.split(" ").length >= MIN_PROMPT_WORDS)
  if (first === undefined) return []
  const lines = [`The developer first asked: "${first}"`]
  let room = MAX_PROMPTS_CHARS - lines[0]!.length
  const later: string[] = []
  for (const text of others.reverse()) {
    room -= text.length
    if (room < 0) break
    later.unshift(`"${text}"`)
  }
  return later.length > 0 ? [...lines, `Then, last: ${later.join(" ")}`] : lines
}

/** Shorter prompts ("yes, continue") say nothing later. */
const MIN_PROMPT_WORDS = 4

function typedIn(complete: string): string[] {
  const text = complete.slice(0, MAX_SCANNED_CHARS).trimStart()
  if (/^[/!<]/.test(text)) return []
  const lines = typedLines(text)
  return isPastedText(text, lines) ? [] : lines
}

/** The last decisions in the person's own words that are not among the prompts that are given anyway. */
function decisionLines(row: CompactedConversation, messages: StoredMessage[], given: string): string[] {
  return decisionsIn(row, messages)
    .filter(({ origin, kind }) => origin === "person" && kind !== "plan")
    .map(({ quote }) => shortened(quote, MAX_DECISION_CHARS))
    .filter((quote) => !given.includes(quote.slice(0, -1)))
    .slice(-MAX_DECISIONS)
    .map((quote) => `The developer decided: "${quote}"`)
}

type ToolResult = Extract<Part, { type: "tool_result" }>

function resultsOf(messages: readonly StoredMessage[]): Map<string, ToolResult> {
  const results = messages.flatMap(({ parts }) =>
    parts.flatMap((part) => (part.type === "tool_result" && part.call_id !== undefined ? [part] : [])),
  )
  return new Map(results.map((part) => [part.call_id!, part]))
}

/** Commands that move work on, or end a script. Nobody runs them to learn something. */
const MOVES_WORK =
  /^(?:exit|git|git (?!bisect|grep)\w.*|gh|gh \w+ (?:create|edit|merge|close|comment|ready)|(?:npm|pnpm|yarn|go|pip3?|cargo) (?:i|install|add|get))$/
const FAILED = "failed"
const PLAIN_WORD = /^[\w@.,:=+/-]{1,60}$/
/** The only arguments that are shown once the agent has read a stranger's words: together, plain words could be a sentence. */
const PATH_WORD = /^[\w@.,:=+-]{0,30}[./][\w@.,:=+/-]{0,60}$/

type Run = { name: string; count: number; failures: number; order: number; outcome: string }

/** The last outcome of each command that did more than look, the likeliest to be run again first. */
function commandLines(messages: readonly StoredMessage[]): string[] {
  const results = resultsOf(messages)
  const runs = new Map<string, Run>()
  let isForeign = false
  for (const [order, message] of messages.entries()) {
    isForeign ||= containsForeignText(message)
    for (const effect of message.effects) {
      const result = effect.type === "command" ? results.get(effect.call_id ?? "") : undefined
      if (effect.type !== "command" || (effect.failed === undefined && result === undefined)) continue
      const parts = commandParts(effect.command).parts.filter(({ kind }) => !MOVES_WORK.test(kind))
      const shownWord = isForeign ? PATH_WORD : PLAIN_WORD
      const words = parts.map(({ kind, args }) => [kind, ...args.filter((arg) => shownWord.test(arg))].join(" "))
      const name = [...new Set(words)].join(" && ").slice(0, MAX_COMMAND_CHARS)
      if (name === "") continue
      const outcome = outcomeOf(effect, result, isForeign)
      const { count, failures } = runs.get(name) ?? { count: 0, failures: 0 }
      const hasFailed = outcome.startsWith(FAILED)
      runs.set(name, { name, count: count + 1, failures: failures + (hasFailed ? 1 : 0), order, outcome })
    }
  }
  return [...runs.values()]
    .sort((a, b) => scoreOf(b, messages.length) - scoreOf(a, messages.length))
    .slice(0, MAX_COMMANDS)
    .map(({ name, outcome, failures }) => `- \`${name}\`: ${outcome}${failedBefore(outcome, failures)}`)
}

function failedBefore(outcome: string, failures: number): string {
  if (outcome.startsWith(FAILED) || failures === 0) return ""
  return failures === 1 ? "; 1 earlier run did not" : `; ${failures} earlier runs did not`
}

function scoreOf({ count, order }: { count: number; order: number }, length: number): number {
  return Math.min(count, 5) + 5 * ((order + 1) / length)
}

function outcomeOf(effect: Effect & { type: "command" }, result: ToolResult | undefined, isForeign: boolean): string {
  const output = result?.text ?? effect.error ?? ""
  const isCertain = effect.failed !== undefined && !commandParts(effect.command).piped
  if (effect.failed !== true && !namesError(output)) return isCertain ? "passed" : "passed, by its output"
  const status = effect.exit_status === undefined ? "" : ` (exit ${effect.exit_status})`
  const [line] = isForeign || result?.origin !== "local_tool" ? [] : errorLines(output)
  return `${FAILED}${status}${line === undefined ? "" : `: ${shortened(line, MAX_ERROR_CHARS)}`}`
}

type FileUse = {
  path: string
  added: number
  removed: number
  edits: number
  reads: number
  order: number
  changed: string[]
  read: string[]
}

/** The files with what was changed in them, or defined in what was read, the likeliest to be read again first. */
function fileLines(messages: readonly StoredMessage[], roots: readonly string[]): string[] {
  const results = resultsOf(messages)
  const mentions = mentionsIn(messages)
  const files = new Map<string, FileUse>()
  for (const [order, { effects }] of messages.entries())
    for (const effect of effects) {
      if (effect.type !== "file" || effect.action === "mentioned") continue
      const path = pathBelowAny(roots, effect.path)
      if (path === undefined || !isPlainPath(path)) continue
      const file = files.get(path) ?? { path, added: 0, removed: 0, edits: 0, reads: 0, order, changed: [], read: [] }
      const result = results.get(effect.call_id ?? "")
      file.order = order
      if (effect.action === "edited") {
        file.edits++
        file.added += effect.added ?? 0
        file.removed += effect.removed ?? 0
        const hunks = (result?.hunks ?? []).filter((hunk) => pathBelowAny(roots, hunk.path) === path)
        file.changed.push(...hunks.flatMap(({ lines }) => lines))
      } else {
        file.reads++
        if (result?.origin === "local_tool") file.read.push(result.text)
      }
      files.set(path, file)
    }
  return [...files.values()]
    .sort((a, b) => fileScore(b, messages.length) - fileScore(a, messages.length))
    .slice(0, MAX_FILES)
    .map((file) => fileLine(file, mentions))
}

function fileScore({ edits, reads, order }: FileUse, length: number): number {
  return Math.min(edits, 4) + Math.min(reads, 3) + 12 * ((order + 1) / length)
}

const MAX_NAMES = 4
const MAX_NAME_CHARS = 40
/** Matches a line that defines something, in the languages that agents mostly write. */
const DEFINITION =
  /^(?:[ \t]*\d+[→\t|] ?)?[ +-]?[ \t]*(?:export |default |pub(?:\([a-z]+\))? |public |private |protected |static |async |abstract |final )*(?:func(?: \([^)\n]{0,80}\))?|function\*?|def|class|fn|interface|type|struct|enum|trait|impl|module) ([A-Za-z_$][\w$]{3,})|^(?:[ \t]*\d+[→\t|])?[ +-]?(?:export )?(?:const|let|var) ([A-Za-z_$][\w$]{3,})/gm
const NAME = /[A-Za-z_$][\w$]{3,}/g
const CODE_MARK = /[a-z][A-Z]|_/

/** How often each name occurs in what the person and the agent wrote, calls included. */
function mentionsIn(messages: readonly StoredMessage[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const { parts } of messages)
    for (const part of parts) {
      if (part.type !== "tool_call" && part.type !== "text") continue
      const names = part.text.slice(0, MAX_SCANNED_CHARS).match(NAME) ?? []
      for (const name of new Set(names)) counts.set(name, (counts.get(name) ?? 0) + 1)
    }
  return counts
}

function fileLine({ path, edits, added, removed, changed, read }: FileUse, mentions: Map<string, number>): string {
  const changedText = changed.filter((line) => /^[+-]/.test(line)).join("\n")
  const names = edits > 0 ? namesIn(changedText, changed.join("\n"), mentions) : namesIn(read.join("\n"), "", mentions)
  const what = edits > 0 ? `+${added} −${removed}` : "read"
  return `- ${path} ${what}${names.length > 0 ? `: ${names.join(", ")}` : ""}`
}

/** The names that a text defines or uses, or that are defined around it, the most mentioned first. */
function namesIn(text: string, around: string, mentions: ReadonlyMap<string, number>): string[] {
  const scanned = text.slice(0, MAX_SCANNED_CHARS)
  const definitions = [scanned, around.slice(0, MAX_SCANNED_CHARS)].flatMap((one) =>
    [...one.matchAll(DEFINITION)].map(([, name, variable]) => (name ?? variable)!),
  )
  return [...new Set([...definitions, ...(scanned.match(NAME) ?? []).filter((name) => CODE_MARK.test(name))])]
    .filter((name) => name.length <= MAX_NAME_CHARS)
    .sort((a, b) => (mentions.get(b) ?? 0) - (mentions.get(a) ?? 0))
    .slice(0, MAX_NAMES)
}

function shortened(text: string, maxLength: number): string {
  const plain = plainLine(text)
  return plain.length > maxLength ? `${plain.slice(0, maxLength - 1).trimEnd()}…` : plain
}
