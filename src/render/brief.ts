import { callWords } from "../core/call-words.ts"
import {
  answersOf,
  type BriefCall,
  type BriefMessage,
  briefCalls,
  isRefusal,
  plansOf,
  type Todo,
  todosOf,
} from "./brief-calls.ts"
import { type CommandRun, commandRuns } from "./brief-commands.ts"

/** Words, and the message that holds them. */
export type Quote = { number: number; text: string }
/** `by` an agent: a subagent's task, or a plan that was accepted and begun in a conversation of its own. */
export type BriefPrompt = Quote & { by: "person" | "agent"; refused: boolean }
export type FileWork = { number: number; path: string; added: number; removed: number }
export type Made = Quote & { kind: "commit" | "pull_request"; name: string; branch?: string }
/**
 * A plan that the person approved, a question that they answered, what they said on stopping a tool, or words of theirs
 * that are put as decisions are: these are found by a list of phrases, so some are missed and some decide nothing.
 */
export type BriefDecision = Quote & { kind: "plan" | "answer" | "refusal" | "words"; question?: string }
export type OpenEnd = Quote & { kind: "request" | "call" | "question" | "todo" | "step" | "command" }

/** What there is to say of a conversation to whoever takes the work up. Everything is quoted or counted, nothing is guessed. */
export type Brief = {
  /** The prompt that states the task, later ones that redirect it, and the last one, oldest first. */
  goal: BriefPrompt[]
  /** Prompts that only answered ("yes", "commit this"), and are not in the goal. */
  replies: number
  /** The agent's last words; where these are few, the last longer ones before them too. */
  last_words: Quote[]
  /** Tool calls after the last words. */
  calls_after: number
  /** A compaction's summary of what came before it. */
  summary?: Quote
  todos: Todo[]
  /** Oldest first. */
  decisions: BriefDecision[]
  /** Newest first. */
  edited: FileWork[]
  /** Newest first; only where none was edited. */
  read: Quote[]
  commands: CommandRun[]
  made: Made[]
  open_ends: OpenEnd[]
}

/** Pure: the same messages give the same brief. Text of origin web or injected is never in it. */
export function briefOf(all: BriefMessage[], roots: string[] = []): Brief {
  const messages = all.filter(({ abandoned, superseded }) => !abandoned && !superseded)
  const calls = briefCalls(messages)
  const prompts = promptsOf(messages)
  // By place: a number tells which record it is, not when it was said.
  const places = new Map(messages.map(({ number }, place) => [number, place]))
  const isAfter = (one: { number: number }, other: { number: number } | undefined) =>
    other === undefined || places.get(one.number)! > places.get(other.number)!
  const task = prompts.find(({ text }) => !isReply(text)) ?? prompts[0]
  const words = prompts.flatMap((prompt) => decidingWords(prompt, prompt === task))
  const lastCommit = messages.findLast(({ effects }) => effects?.some(({ type }) => type === "commit"))
  const wholly = new Set(words.filter(({ whole }) => whole).map(({ number }) => number))
  const later = prompts.filter((prompt) => prompt !== task && isAfter(prompt, task))
  const isPassed = (prompt: BriefPrompt) => isReply(prompt.text) && prompt !== prompts.at(-1)
  const said = messages.flatMap(agentWords)
  const lastWords = lastSubstantial(said)
  const summary = messages.flatMap(({ number, parts }) =>
    parts.filter(({ type }) => type === "summary").map(({ text }) => ({ number, text: summaryIn(text) })),
  )
  const todos = todosOf(calls)
  const commands = commandRuns(messages)
  const edited = editedFiles(messages, roots)
  const ending = lastWords.at(-1)
  return {
    goal: [...(task ? [task] : []), ...later.filter((prompt) => !wholly.has(prompt.number) && !isPassed(prompt))],
    replies: later.filter((prompt) => !wholly.has(prompt.number) && isPassed(prompt)).length,
    last_words: lastWords,
    calls_after: calls.filter((call) => isAfter(call, ending)).length,
    ...(summary.length > 0 && { summary: summary.at(-1)! }),
    todos,
    decisions: [
      ...plansOf(calls).map((plan): BriefDecision => ({ kind: "plan", ...plan })),
      ...answersOf(calls).map(
        ({ number, question, answer }): BriefDecision => ({ kind: "answer", number, question, text: answer }),
      ),
      ...words.map(({ whole: _, ...decision }) => decision),
    ].sort((a, b) => places.get(a.number)! - places.get(b.number)!),
    edited,
    read: edited.length > 0 ? [] : readFiles(messages, roots),
    commands,
    made: messages.flatMap(madeIn),
    open_ends: [
      ...unanswered(prompts, messages),
      ...unfinished(calls, messages),
      ...(ending ? openIn(ending, !prompts.some((prompt) => isAfter(prompt, ending))) : []),
      ...todos.filter(({ status }) => status !== "done").map(({ text, number }) => todoEnd(text, number)),
      ...commands
        .filter((run) => run.outcome === "failed" && !run.later && run.exit_status !== NOT_FOUND)
        .filter((run) => isAfter(run, lastCommit))
        .map(({ number, command }) => ({ kind: "command" as const, number, text: command })),
    ],
  }
}

/** A program that is not there was asked for by mistake. */
const NOT_FOUND = 127

const todoEnd = (text: string, number: number): OpenEnd => ({ kind: "todo", number, text })

/** What the agent was given to do, without what only steers its interface; a plan that was given again counts once. */
function promptsOf(messages: BriefMessage[]): BriefPrompt[] {
  const prompts = messages.flatMap(({ number, role, parts }): BriefPrompt[] => {
    if (role !== "user") return []
    const by = parts.some((part) => part.type === "text" && part.origin === "person") ? "person" : "agent"
    const written = parts
      .filter((part) => part.type === "text" && part.origin === by)
      .map((part) => part.text)
      .join("\n\n")
      .trim()
    const text = by === "agent" ? withoutCharge(written) : written
    if (text === "" || INTERFACE.test(text) || text.startsWith("!")) return []
    return [{ number, text, by, refused: parts.some(isRefusal) }]
  })
  const first = new Map(prompts.toReversed().map((prompt) => [prompt.text, prompt]))
  return prompts.filter((prompt) => prompt.by === "person" || first.get(prompt.text) === prompt)
}

const INTERFACE =
  /^\/(?:exit|quit|clear|new|ide|mcp|skills|help|model|login|logout|config|cost|usage|context|compact|resume|release-notes|status|theme|vim|hooks|agents|memory|permissions|plugin|doctor|terminal-setup|rewind)\b[^\n]{0,40}$/

/** Agreement, thanks and "commit this": they move the work on and do not change where it goes. */
function isReply(text: string): boolean {
  if (text.length > 100) return false
  const words = text.toLowerCase().split(/[\s,.!]+/)
  return words.every((word) => REPLIES.has(word) || /^\d*$/.test(word))
}

const REPLIES = new Set(
  "yes yeah yep ok okay sure please thanks thank you perfect great nice cool good go ahead for continue do it that this the changes commit push and try again now works done lgtm".split(
    " ",
  ),
)

/** In a short prompt; a longer one holds pasted text, in which these words mean nothing. */
const DECIDES =
  /\b(?:let'?s (?:use|go|keep|not|do|make|switch|drop|remove|rename|move|stick|skip|leave|add|start)|instead|rather than|decided|never|always|must(?:n'?t)?|prefer|go with|should(?:n'?t)?|no need|i want|i(?:'d| would) like|we (?:don'?t|do not) (?:need|want))\b|(?<!\b(?:i|we|you|they|it|that|this|tests?|still) )\b(?:don'?t|do not)\b(?! (?:we|you|i|they|the)\b)/i
const DECIDES_ALONE =
  /\b(?:let'?s|we decided|we should(?:n'?t)?|i want|i(?:'d| would) (?:like|prefer|rather)|please (?:don'?t|do not|use|keep)|make sure|no need)\b|^(?:don'?t|do not|never|always)\b/i
const TURNS = /^(?:no|nope|actually|only)\b[, ]/i
const SHORT = 300
/** Beyond this a prompt is mostly something that was pasted. */
const TYPED = 3000

/** `whole`: nothing else is in the prompt. */
function decidingWords(
  { number, text, by, refused }: BriefPrompt,
  isTask: boolean,
): (BriefDecision & { whole: boolean })[] {
  if (by === "agent") return []
  if (refused) return [{ kind: "refusal", number, text, whole: !isTask }]
  if (text.length > TYPED || (isTask && text.length <= 2 * SHORT)) return []
  const short = text.length <= SHORT
  const sentences = text
    .split(/(?<=[.!?])\s+|\n+/)
    .map((sentence) => sentence.trim())
    .filter((sentence, i) => {
      if (sentence.length > SHORT || sentence.endsWith("?")) return false
      return (short ? DECIDES : DECIDES_ALONE).test(sentence) || (i === 0 && TURNS.test(sentence))
    })
  const length = sentences.join("\n").length
  if (length === 0) return []
  if (short && !isTask) return [{ kind: "words", number, text, whole: true }]
  // The request itself says it.
  if (2 * length > text.length) return []
  return [{ kind: "words", number, text: sentences.join("\n"), whole: false }]
}

function agentWords({ number, role, parts }: BriefMessage): Quote[] {
  if (role !== "assistant") return []
  const text = parts
    .filter((part) => part.type === "text" && part.origin === "agent")
    .map((part) => part.text)
    .join("\n\n")
    .trim()
  return text === "" ? [] : [{ number, text }]
}

/** Claude Code puts its reasoning before a compaction's summary. */
function summaryIn(text: string): string {
  const title = /^[ \t]*Summary:[ \t]*$/m.exec(text)
  return withoutCharge(title ? text.slice(title.index + title[0].length) : text)
}

/** And after what an agent wrote for another one, it tells that one how to go about it: in no one's words but its own. */
function withoutCharge(text: string): string {
  const charge = /^[ \t]*(?:If you need specific details from before|Please continue the conversation from)/m.exec(text)
  return text.slice(0, charge?.index).trim()
}

const SUBSTANTIAL = 120

function lastSubstantial(said: Quote[]): Quote[] {
  const last = said.at(-1)
  if (!last) return []
  if (last.text.length >= SUBSTANTIAL) return [last]
  const longer = said.findLast(({ text }) => text.length >= SUBSTANTIAL)
  return longer ? [longer, last] : [last]
}

function editedFiles(messages: BriefMessage[], roots: string[]): FileWork[] {
  const files = new Map<string, FileWork>()
  for (const { number, effects } of messages)
    for (const effect of effects ?? []) {
      if (effect.type !== "file" || effect.action !== "edited") continue
      const path = shortened(effect.path, roots)
      const before = files.get(path)
      files.delete(path)
      files.set(path, {
        number,
        path,
        added: (before?.added ?? 0) + (effect.added ?? 0),
        removed: (before?.removed ?? 0) + (effect.removed ?? 0),
      })
    }
  return [...files.values()].reverse()
}

function readFiles(messages: BriefMessage[], roots: string[]): Quote[] {
  const files = new Map<string, number>()
  for (const { number, effects } of messages)
    for (const effect of effects ?? []) {
      if (effect.type !== "file" || effect.action !== "read") continue
      const path = shortened(effect.path, roots)
      files.delete(path)
      files.set(path, number)
    }
  return [...files].map(([text, number]) => ({ number, text })).reverse()
}

function shortened(path: string, roots: string[]): string {
  const root = roots.find((candidate) => path.startsWith(`${candidate}/`))
  return root === undefined ? path : path.slice(root.length + 1)
}

function madeIn({ number, effects }: BriefMessage): Made[] {
  return (effects ?? []).flatMap((effect): Made[] => {
    if (effect.type === "pull_request") return [{ kind: "pull_request", number, name: effect.url, text: "" }]
    if (effect.type !== "commit") return []
    const { hash, subject, branch } = effect
    return [{ kind: "commit", number, name: hash, text: subject, ...(branch !== undefined && { branch }) }]
  })
}

/** The person's last words, where the agent has said and done nothing after them. */
function unanswered(prompts: BriefPrompt[], messages: BriefMessage[]): OpenEnd[] {
  const last = prompts.at(-1)
  if (!last) return []
  const at = messages.findIndex(({ number }) => number === last.number)
  const answered = messages.slice(at + 1).some(({ role }) => role === "assistant")
  return answered ? [] : [{ kind: "request", number: last.number, text: last.text }]
}

/** A call at the very end whose result is not known: the conversation broke off while a tool ran. */
function unfinished(calls: BriefCall[], messages: BriefMessage[]): OpenEnd[] {
  const end = messages.at(-1)
  return calls
    .filter(({ number, call_id, result }) => number === end?.number && call_id !== undefined && !result)
    .map(({ number, tool, text }) => ({ kind: "call", number, text: `${tool}: ${callWords(text).what}` }))
}

const STEPS =
  /^[#*\s]*(?:next steps?|remaining|to ?do|follow[- ]?ups?|open (?:questions|issues|points|items|ends)|not (?:yet )?done|still (?:to do|open|missing)|outstanding|left to do|what'?s left)\b[^\n]{0,40}$/i
const LISTED = /^\s*(?:[-*+]|\d+[.)])\s+(?:\[ \]\s*)?(\S.*)$/

const MOST_STEPS = 20

/** What the last words leave open: a list of next steps, a question that nobody answered. */
function openIn({ number, text }: Quote, isLast: boolean): OpenEnd[] {
  const lines = text.split("\n")
  const title = lines.findIndex((line) => line.length < 80 && STEPS.test(line))
  const rest = title === -1 ? [] : lines.slice(title + 1)
  const end = rest.findIndex((line) => line.trim() !== "" && !LISTED.test(line) && !/^\s{2}/.test(line))
  const listed = rest.slice(0, end === -1 ? undefined : end).flatMap((line) => LISTED.exec(line)?.[1] ?? [])
  const marked = lines.filter((line) => /\bTODO\b|^[-*] \[ \]/.test(line)).map((line) => LISTED.exec(line)?.[1] ?? line)
  const steps = [...new Set([...listed, ...marked])]
    .slice(0, MOST_STEPS)
    .map((step): OpenEnd => ({ kind: "step", number, text: step.trim() }))
  if (!isLast) return steps
  const question = text
    .split(/\n{2,}/)
    .slice(-3)
    .flatMap((paragraph) => paragraph.split(/(?<=[.!?])\s+|\n/))
    .findLast((sentence) => /\?[*_)"'`]*$/.test(sentence.trim()))
  return question === undefined ? steps : [{ kind: "question", number, text: question.trim() }, ...steps]
}
