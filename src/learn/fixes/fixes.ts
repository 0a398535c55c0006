import { callInputs } from "../../core/call-words.ts"
import { commandParts } from "../../core/command.ts"
import type { Effect, Hunk, Part } from "../../core/conversation.ts"
import { errorLines, locationInError, normaliseError } from "../../core/error-text.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import { fileNameOf } from "../paths.ts"

// Finds fixes: a command fails, edits follow, and a similar command passes.

export type FixEdit = {
  path: string
  /** The number of the message that made the edit, in the conversation itself or in the named subagent. */
  number: number
  subagent?: string
  added: number
  removed: number
  hunks: Hunk[]
}

export type Fix = {
  command: string
  error: string
  normalised: string
  /** The error lines about the edited files. `error` is the first of them, which is the most informative one. */
  lines: string[]
  /** The number of the message in which the command failed. */
  failed_at: number
  /** The number of the message in which it succeeded. Undefined if it is not known to have succeeded. */
  fixed_at?: number
  /** Edits after the failure and before the next run. Files that the output names come first. */
  edits: FixEdit[]
  at?: number
}

/** A subagent. `call_id` is the call that started it, which contains its task. */
export type Subagent = { id: string; call_id?: string; messages: StoredMessage[] }

/** The maximum number of messages between two steps. Steps that are further apart are seldom about the same error. */
const MAX_MESSAGES_BETWEEN = 200

/**
 * Finds every error in the conversation that was followed by edits. A failure that disappeared without an edit is not a fix, and
 * an error that came back after an edit was not fixed by that edit.
 */
export function fixesIn(messages: StoredMessage[], subagents: Subagent[] = []): Fix[] {
  const steps = stepsOf(messages, subagents)
  return steps.flatMap((step, i) => (step.type === "run" && step.outcome === "failed" ? fixOf(steps, i, step) : []))
}

type CommandRunStep = {
  type: "run"
  /** The position of the message. The agent decided all steps of one message at once. */
  place: number
  number: number
  at?: number
  command: string
  parsed: ParsedCommand
  outcome: "failed" | "succeeded" | "unknown"
  lines: string[]
  /** The error lines with their details masked. */
  masked: string[]
  output: string
}
type Step = CommandRunStep | { type: "edit"; place: number; edit: FixEdit }

function fixOf(steps: Step[], from: number, failed: CommandRunStep): Fix[] {
  const normalised = failed.masked[0]
  if (normalised === undefined) return []
  const failedCommand = failedPart(failed)
  const edits: FixEdit[] = []
  let hasRunAgain = false
  let passedRun: CommandRunStep | undefined
  for (let i = from + 1; i < steps.length; i++) {
    const step = steps[i]!
    if (step.place - failed.place > MAX_MESSAGES_BETWEEN) break
    if (step.type === "edit") {
      if (step.place > failed.place && !hasRunAgain) edits.push(step.edit)
      continue
    }
    if (!isRepeatOf(failedCommand, step.parsed)) continue
    if (step.outcome === "failed") {
      if (step.masked.includes(normalised)) return [] // the later failure reports this error instead
      hasRunAgain ||= edits.length > 0
    } else if (step.outcome === "succeeded") {
      passedRun = step
      break
    }
  }
  if (edits.length === 0) return []
  const lines = errorsInEditedFiles(edits, failed.lines)
  return [
    {
      command: failed.command,
      error: lines[0]!,
      normalised: normaliseError(lines[0]!),
      lines,
      failed_at: failed.number,
      fixed_at: passedRun?.number,
      edits: orderByMention(edits, failed.output),
      at: passedRun?.at ?? failed.at,
    },
  ]
}

/** Returns the errors in the edited files. An error in another file was fixed elsewhere, if at all. */
function errorsInEditedFiles(edits: FixEdit[], lines: string[]): string[] {
  const edited = new Set(edits.map(({ path }) => fileName(path)))
  const isElsewhere = (line: string) => {
    const location = locationInError(line)
    return location !== undefined && !edited.has(fileName(location.file))
  }
  const errorsHere = lines.filter((line) => !isElsewhere(line))
  return errorsHere.length > 0 ? errorsHere : lines
}

function fileName(path: string): string {
  return fileNameOf(path.replaceAll("\\", "/"))
}

/** Matches the lines in which task runners name the failed task. */
const FAILED_TASK =
  /^\[([\w:.-]+)\] ERROR\b|^make(?:\[\d+\])?: \*\*\* \[(?:[^\]\s]{1,200}: )?([\w:.-]+)\] Error\b|\bscript "([\w:.-]+)" exited\b|\bFailed to run task "([\w:.-]+)"|\bLifecycle script `([\w:.-]+)` failed\b/gm

/**
 * Returns the part of `fmt && lint` that failed, if the output names it, because only that part has to pass later. Otherwise,
 * returns the complete command.
 */
function failedPart({ parsed, output }: CommandRunStep): ParsedCommand {
  if (parsed.parts.length < 2) return parsed
  const tasks = [...output.matchAll(FAILED_TASK)].map((match) => match.slice(1).find((name) => name !== undefined)!)
  const part = parsed.parts.find(({ kind }) => tasks.some((task) => isTask(kind.split(" ").at(-1)!, task)))
  return part === undefined ? parsed : { ...parsed, parts: [part] }
}

/** Whether the failed task is the named one or a part of it, as `test:unit` is a part of `test`. */
function isTask(named: string, failed: string): boolean {
  return failed === named || failed.startsWith(`${named}:`)
}

function orderByMention(edits: FixEdit[], output: string): FixEdit[] {
  const isNamed = ({ path }: FixEdit) => output.includes(fileName(path))
  return [...edits.filter(isNamed), ...edits.filter((edit) => !isNamed(edit))]
}

type ToolResultPart = Part & { type: "tool_result" }

function stepsOf(messages: StoredMessage[], subagents: Subagent[]): Step[] {
  const live = messages.filter(({ superseded, copied, abandoned }) => !superseded && !copied && !abandoned)
  const results = resultsOf(live)
  const calls = callInputs(live)
  const byCall = Map.groupBy(subagents, ({ call_id }) => call_id)
  return live.flatMap((message, place) => {
    const ownSteps = message.effects.flatMap((effect) => stepOf(effect, message, place, { results, calls }))
    const called = message.parts.flatMap((part) => (part.type === "tool_call" ? (part.call_id ?? []) : []))
    const subagentEdits = called
      .flatMap((call) => byCall.get(call) ?? [])
      .flatMap(({ id, messages }) => editsOf(id, messages))
    return [...ownSteps, ...subagentEdits.map((edit): Step => ({ type: "edit", place, edit }))]
  })
}

function editsOf(subagent: string, messages: StoredMessage[]): FixEdit[] {
  return stepsOf(messages, []).flatMap((step) => (step.type === "edit" ? [{ ...step.edit, subagent }] : []))
}

function resultsOf(messages: StoredMessage[]): Map<string, ToolResultPart> {
  return new Map(
    messages.flatMap(({ parts }) =>
      parts.flatMap((part) =>
        part.type === "tool_result" && part.call_id !== undefined ? [[part.call_id, part] as const] : [],
      ),
    ),
  )
}

/** The change as the call describes it, without line numbers. Used if the result does not report it. */
function hunksOfCall(path: string, text: string | undefined): Hunk[] {
  if (text === undefined || !text.includes('"old_string"')) return []
  try {
    const { old_string, new_string } = JSON.parse(text) as Record<string, unknown>
    if (typeof old_string !== "string" || typeof new_string !== "string") return []
    const [before, after] = [old_string, new_string].map((side) => (side === "" ? [] : side.split("\n"))) as [
      string[],
      string[],
    ]
    const lines = [...before.map((line) => `-${line}`), ...after.map((line) => `+${line}`)]
    return [{ path, old_start: 0, old_lines: before.length, new_start: 0, new_lines: after.length, lines }]
  } catch {
    return []
  }
}

type CallsAndResults = { results: Map<string, ToolResultPart>; calls: Map<string, string> }

function stepOf(
  effect: Effect,
  { number, at }: StoredMessage,
  place: number,
  { results, calls }: CallsAndResults,
): Step[] {
  const id = "call_id" in effect ? effect.call_id : undefined
  const result = id === undefined ? undefined : results.get(id)
  if (effect.type === "file" && effect.action === "edited") {
    const { path, added = 0, removed = 0 } = effect
    const reported = result?.hunks?.filter((hunk) => hunk.path === path) ?? []
    const hunks = reported.length > 0 || id === undefined ? reported : hunksOfCall(path, calls.get(id))
    return [{ type: "edit", place, edit: { path, number, added, removed, hunks } }]
  }
  if (effect.type !== "command" || effect.failed === undefined) return []
  const { command } = effect
  const parsed = parseCommand(command)
  if (!isFixable(parsed)) return []
  const output = result?.text || effect.error || ""
  const outcome = outcomeOf(effect.failed, parsed, output)
  const lines = outcome === "failed" ? errorLines(output) : []
  const masked = lines.map(normaliseError)
  return [{ type: "run", place, number, at, command, parsed, outcome, lines, masked, output }]
}

/** Matches commands whose failure an edit cannot fix. */
const UNFIXABLE_COMMAND = /^(?:git(?! commit)|gh|curl|wget|ssh|scp|brew|apt|apt-get|pkill|killall|open)\b/
const NOT_AN_ERROR =
  /nothing to commit|no changes added to commit|\[Request interrupted|doesn't want to (?:proceed|take)|\bcd:.{0,200}no such file or directory|: command not found$/im

/** Returns false for a command that only reads, or whose failure no edit can fix. */
export function isFixableCommand(command: string): boolean {
  return isFixable(parseCommand(command))
}

function isFixable({ parts }: ParsedCommand): boolean {
  return parts.some(({ kind }) => !UNFIXABLE_COMMAND.test(kind))
}

function outcomeOf(failed: boolean, { piped }: ParsedCommand, output: string): CommandRunStep["outcome"] {
  // The exit status of a pipe is that of its last program: `test | grep x` fails if grep finds nothing.
  if (piped) return failed && FAILURE_WORD.test(output) ? "failed" : "unknown"
  if (!failed) return "succeeded"
  return NOT_AN_ERROR.test(output) ? "unknown" : "failed"
}

const FAILURE_WORD = /\b(?:error|failed|failure|fatal|exception|panic)\b/i

/** The parts of a command line, and the folder in which they run. */
type ParsedCommand = ReturnType<typeof commandParts> & { folder?: string }

function parseCommand(command: string): ParsedCommand {
  const folder = /(?:^|&&|;)\s*cd\s+["']?([^\s"';&|]+)/.exec(command)?.[1]?.replace(/^\.\/|\/$/g, "")
  return { ...commandParts(command), folder }
}

/** Whether the later command does the same as the failed one, on the same targets or on all of them. */
export function isSimilarCommand(failed: string, later: string): boolean {
  return isRepeatOf(parseCommand(failed), parseCommand(later))
}

function isRepeatOf(failed: ParsedCommand, later: ParsedCommand): boolean {
  if (failed.parts.length === 0 || !isSameFolder(failed.folder, later.folder)) return false
  return failed.parts.every(({ kind, args }) =>
    later.parts.some((part) => part.kind === kind && covers(part.args, args, kind)),
  )
}

/**
 * Whether the later arguments include the failed ones. Without arguments, `cargo test` runs everything, but `node` runs nothing.
 */
function covers(later: string[], failed: string[], kind: string): boolean {
  if (later.length === 0) return failed.length === 0 || kind.includes(" ")
  return failed.length > 0 && failed.every((arg) => later.includes(arg))
}

function isSameFolder(a: string | undefined, b: string | undefined): boolean {
  return a === undefined || b === undefined || a === b || a.endsWith(`/${b}`) || b.endsWith(`/${a}`)
}
