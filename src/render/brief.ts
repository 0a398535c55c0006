import { describeToolCall } from "../core/call-words.ts"
import { answersOf, plansOf, type Todo, todosOf } from "./brief-calls.ts"
import {
  type BriefCall,
  type BriefMessage,
  type BriefPrompt,
  type FileWork,
  type Quote,
  type WorkCommand,
  type WorkProduct,
  withoutAddedInstructions,
  workOf,
} from "./brief-work.ts"

/**
 * A plan that the person approved, a question that they answered, their words when they stopped a tool, or other words of a
 * prompt that sound like a decision. These other words are found with a list of phrases, so some are missed, and some that are
 * found decide nothing.
 */
export type BriefDecision = Quote & { kind: "plan" | "answer" | "refusal" | "words"; question?: string }
export type OpenEnd = Quote & { kind: "request" | "call" | "question" | "todo" | "step" | "command" }

/** The facts about a conversation that the next agent needs. Everything is quoted or counted, nothing is guessed. */
export type Brief = {
  /** The prompt that states the task, later prompts that redirect the work, and the last prompt, oldest first. */
  goal: BriefPrompt[]
  /** The number of prompts that only answered ("yes", "commit this"). They are not in the goal. */
  replies: number
  /** The agent's last text and, if that is short, also the last longer one before it. */
  last_words: Quote[]
  /** The number of tool calls after the last words. */
  calls_after: number
  /** The summary of a compaction. */
  summary?: Quote
  todos: Todo[]
  /** Oldest first. */
  decisions: BriefDecision[]
  /** Newest first. */
  edited: FileWork[]
  /** Newest first. Empty if any file was edited. */
  read: Quote[]
  commands: CommandRun[]
  made: WorkProduct[]
  open_ends: OpenEnd[]
}

/** A command whose outcome the next agent should know. */
export type CommandRun = Omit<WorkCommand, "kinds"> & {
  /** Set after a failure if the same kinds of commands were run later and did not fail. */
  later?: { number: number; outcome: "succeeded" | "unknown" }
}

/** The same messages always give the same brief. It never contains injected text or text from the web. */
export function briefOf(messages: BriefMessage[], roots: string[] = []): Brief {
  const { places, prompts, spoken, calls, made, last, ...work } = workOf(messages, roots)
  const isAfter = (number: number, other: number | undefined) =>
    other === undefined || places.get(number)! > places.get(other)!
  const task = prompts.find(({ text }) => !isReply(text)) ?? prompts[0]
  const words = prompts.flatMap((prompt) => decidingWords(prompt, prompt === task))
  const decidingPrompts = new Set(words.filter(({ isEntirePrompt }) => isEntirePrompt).map(({ number }) => number))
  const laterPrompts = prompts.filter(
    (prompt) => prompt !== task && isAfter(prompt.number, task?.number) && !decidingPrompts.has(prompt.number),
  )
  const isOmittedReply = (prompt: BriefPrompt) => isReply(prompt.text) && prompt !== prompts.at(-1)
  const lastWords = lastSubstantialTexts(spoken)
  const lastText = lastWords.at(-1)
  const todos = todosOf(calls)
  const commands = commandRuns(work.commands)
  const lastPrompt = prompts.at(-1)
  return {
    goal: [...(task ? [task] : []), ...laterPrompts.filter((prompt) => !isOmittedReply(prompt))],
    replies: laterPrompts.filter(isOmittedReply).length,
    last_words: lastWords,
    calls_after: calls.filter(({ number }) => isAfter(number, lastText?.number)).length,
    summary: last.summary && { number: last.summary.number, text: summaryIn(last.summary.text) },
    todos,
    decisions: [
      ...plansOf(calls).map((plan): BriefDecision => ({ kind: "plan", ...plan })),
      ...answersOf(calls).map(
        ({ number, question, answer }): BriefDecision => ({ kind: "answer", number, question, text: answer }),
      ),
      ...words.map(({ isEntirePrompt: _, ...decision }) => decision),
    ].sort((a, b) => places.get(a.number)! - places.get(b.number)!),
    edited: [...work.edited.values()].reverse(),
    read: work.edited.size > 0 ? [] : [...work.read.values()].reverse(),
    commands,
    made,
    open_ends: [
      // The agent did nothing after the person's last prompt.
      ...(lastPrompt && (last.assistant === undefined || isAfter(lastPrompt.number, last.assistant))
        ? [{ kind: "request" as const, number: lastPrompt.number, text: lastPrompt.text }]
        : []),
      ...calls.filter((call) => call.number === last.message).flatMap(unfinishedCall),
      ...(lastText ? openEndsIn(lastText, !prompts.some(({ number }) => isAfter(number, lastText.number))) : []),
      ...todos.filter(({ status }) => status !== "done").map(({ text, number }) => openTodo(text, number)),
      ...commands
        .filter((run) => run.outcome === "failed" && !run.later && run.exit_status !== COMMAND_NOT_FOUND)
        .filter(({ number }) => isAfter(number, last.commit))
        .map(({ number, command }) => ({ kind: "command" as const, number, text: command })),
    ],
  }
}

/** A shell's exit code for a program that does not exist. Such a command was a mistake, not unfinished work. */
const COMMAND_NOT_FOUND = 127

const openTodo = (text: string, number: number): OpenEnd => ({ kind: "todo", number, text })

/** True for agreement, thanks and "commit this", which continue the work without changing its direction. */
function isReply(text: string): boolean {
  if (text.length > 100) return false
  const words = text.toLowerCase().split(/[\s,.!]+/)
  return words.every((word) => REPLY_WORDS.has(word) || /^\d*$/.test(word))
}

const REPLY_WORDS = new Set(
  "yes yeah yep ok okay sure please thanks thank you perfect great nice cool good go ahead for continue do it that this the changes commit push and try again now works done lgtm".split(
    " ",
  ),
)

/** Matches phrases of decisions in short prompts. In a longer prompt, which may contain pasted text, they mean little. */
const DECISION_PHRASE =
  /\b(?:let'?s (?:use|go|keep|not|do|make|switch|drop|remove|rename|move|stick|skip|leave|add|start)|instead|rather than|decided|never|always|must(?:n'?t)?|prefer|go with|should(?:n'?t)?|no need|i want|i(?:'d| would) like|we (?:don'?t|do not) (?:need|want))\b|(?<!\b(?:i|we|you|they|it|that|this|tests?|still) )\b(?:don'?t|do not)\b(?! (?:we|you|i|they|the)\b)/i
const COMPLETE_DECISION =
  /\b(?:let'?s|we decided|we should(?:n'?t)?|i want|i(?:'d| would) (?:like|prefer|rather)|please (?:don'?t|do not|use|keep)|make sure|no need)\b|^(?:don'?t|do not|never|always)\b/i
const CHANGE_OF_DIRECTION = /^(?:no|nope|actually|only)\b[, ]/i
const SHORT_TEXT_LENGTH = 300
/** The maximum number of characters of a typed prompt. A longer one is mostly pasted. */
const MAX_TYPED_LENGTH = 3000

/** The words of a prompt that decide something. `isEntirePrompt` is true if the goal need not quote the prompt too. */
function decidingWords(
  { number, text, by, refused }: BriefPrompt,
  isTask: boolean,
): (BriefDecision & { isEntirePrompt: boolean })[] {
  if (by === "agent") return []
  if (refused) return [{ kind: "refusal", number, text, isEntirePrompt: !isTask }]
  if (text.length > MAX_TYPED_LENGTH || (isTask && text.length <= 2 * SHORT_TEXT_LENGTH)) return []
  const isShort = text.length <= SHORT_TEXT_LENGTH
  const sentences = text
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence, i) => {
      if (sentence.length > SHORT_TEXT_LENGTH || sentence.endsWith("?")) return false
      return (
        (isShort ? DECISION_PHRASE : COMPLETE_DECISION).test(sentence) ||
        (i === 0 && CHANGE_OF_DIRECTION.test(sentence))
      )
    })
  const length = sentences.join("\n").length
  if (length === 0) return []
  if (isShort && !isTask) return [{ kind: "words", number, text, isEntirePrompt: true }]
  // If most of the prompt decides something, the goal quotes these words already.
  if (2 * length > text.length) return []
  return [{ kind: "words", number, text: sentences.join("\n"), isEntirePrompt: false }]
}

/** The summary without the reasoning that Claude Code writes before it. */
function summaryIn(text: string): string {
  const heading = /^[ \t]*Summary:[ \t]*$/m.exec(text)
  return withoutAddedInstructions(heading ? text.slice(heading.index + heading[0].length) : text)
}

const SUBSTANTIAL_TEXT_LENGTH = 120

function lastSubstantialTexts(texts: Quote[]): Quote[] {
  const last = texts.at(-1)
  if (!last) return []
  if (last.text.length >= SUBSTANTIAL_TEXT_LENGTH) return [last]
  const longer = texts.findLast(({ text }) => text.length >= SUBSTANTIAL_TEXT_LENGTH)
  return longer ? [longer, last] : [last]
}

/** A call at the very end without a result: the conversation broke off while a tool ran. */
function unfinishedCall({ number, tool, text, call_id, result }: BriefCall): OpenEnd[] {
  return call_id === undefined || result
    ? []
    : [{ kind: "call", number, text: `${tool}: ${describeToolCall(text).what}` }]
}

const STEPS_HEADING =
  /^[#*\s]*(?:next steps?|remaining|to ?do|follow[- ]?ups?|open (?:questions|issues|points|items|ends)|not (?:yet )?done|still (?:to do|open|missing)|outstanding|left to do|what'?s left)\b[^\n]{0,40}$/i
const LIST_ITEM = /^\s*(?:[-*+]|\d+[.)])\s+(?:\[ \]\s*)?(\S.*)$/

const MAX_STEPS = 20

/** The open ends in the last words: a list of next steps, or an unanswered question. */
function openEndsIn({ number, text }: Quote, isLast: boolean): OpenEnd[] {
  const lines = text.split("\n")
  const headingIndex = lines.findIndex((line) => line.length < 80 && STEPS_HEADING.test(line))
  const rest = headingIndex === -1 ? [] : lines.slice(headingIndex + 1)
  const end = rest.findIndex((line) => line.trim() !== "" && !LIST_ITEM.test(line) && !/^\s{2}/.test(line))
  const listedSteps = rest.slice(0, end === -1 ? undefined : end).flatMap((line) => LIST_ITEM.exec(line)?.[1] ?? [])
  const markedSteps = lines
    .filter((line) => /\bTODO\b|^[-*] \[ \]/.test(line))
    .map((line) => LIST_ITEM.exec(line)?.[1] ?? line)
  const steps = [...new Set([...listedSteps, ...markedSteps])]
    .slice(0, MAX_STEPS)
    .map((step): OpenEnd => ({ kind: "step", number, text: step.trim() }))
  if (!isLast) return steps
  const question = text
    .split(/\n{2,}/)
    .slice(-3)
    .flatMap((paragraph) => paragraph.split(/(?<=[.!?])\s+|\n/))
    .findLast((sentence) => /\?[*_)"'`]*$/.test(sentence.trim()))
  return question === undefined ? steps : [{ kind: "question", number, text: question.trim() }, ...steps]
}

/** The maximum number of runs that are examined, newest first. Older runs say nothing about the current state. */
const MAX_RUNS = 1000
const CHECK_COMMAND =
  /\b(?:tests?|lint|build|check|fmt|format|vet|tsc|typecheck|ci|compile|verify|vitest|jest|pytest|clippy)\b/i

/**
 * Selects the runs worth mentioning, newest first: the last run of each kind of command if it failed or ran a check, and the last
 * failure of all.
 */
function commandRuns(all: WorkCommand[]): CommandRun[] {
  const runs = all.slice(-MAX_RUNS)
  const keys = runs.map(({ kinds }) => kinds.join(" && "))
  const lastOfKey = new Map(keys.map((key, i) => [key, i]))
  const lastFailure = runs.findLastIndex(({ outcome }) => outcome === "failed")
  const coveredKinds = new Set<string>()
  const notableRuns: CommandRun[] = []
  for (const [i, { kinds, ...run }] of [...runs.entries()].reverse()) {
    const isLast = lastOfKey.get(keys[i]!) === i && !kinds.every((kind) => coveredKinds.has(kind))
    if (run.outcome === "failed" && (isLast || i === lastFailure))
      notableRuns.push({ ...run, later: laterSuccess(runs, i) })
    else if (isLast && kinds.some((kind) => CHECK_COMMAND.test(kind))) notableRuns.push(run)
    for (const kind of kinds) coveredKinds.add(kind)
  }
  return notableRuns
}

/** Finds the later run that fixed a failure: if `a && b` failed, both `a` and `b` must have run later without failing. */
function laterSuccess(runs: WorkCommand[], at: number): CommandRun["later"] {
  const laterNonFailures = runs.slice(at + 1).filter(({ outcome }) => outcome !== "failed")
  const laterRuns = runs[at]!.kinds.map((kind) => {
    const sameKind = laterNonFailures.filter(({ kinds }) => kinds.includes(kind))
    return sameKind.find(({ outcome }) => outcome === "succeeded") ?? sameKind[0]
  })
  if (laterRuns.includes(undefined)) return undefined
  const last = laterRuns.reduce((latest, run) =>
    laterNonFailures.indexOf(run!) > laterNonFailures.indexOf(latest!) ? run : latest,
  )!
  const outcome = laterRuns.every((run) => run!.outcome === "succeeded") ? "succeeded" : "unknown"
  return { number: last.number, outcome }
}
