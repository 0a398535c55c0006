import { formatRef, type Ref, siblingRef } from "../core/ref.ts"
import { decisionsIn } from "../learn/decisions/decisions.ts"
import { pathRootsOf } from "../learn/paths.ts"
import { testRunsIn } from "../learn/test-runs/runs.ts"
import { type Brief, briefOf } from "../render/brief.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { TestRunWrite } from "../store/knowledge/test-runs.ts"
import { findOpenChecks } from "./left-open.ts"
import { blocksIn, isAnnouncement, statementsIn } from "./statements.ts"

/** A conversation with all its messages, and the numbers of those in which it wrote the requested lines. */
export type WriterMessages = {
  row: ConversationRow
  messages: StoredMessage[]
  /** The numbers of the messages with the edits. For a subagent's edit, the message that started the subagent. */
  edits: number[]
  /** The message in which it made the commit, if it did. */
  committed?: number
}

export type QuotedWords = { ref: string; text: string }
export type TestOutcome = { ref: string; command: string; outcome: "passed" | "failed"; failed_before: number }

/**
 * The reasons why lines were written, taken only from what the conversations recorded. Nothing is guessed, and each fact names
 * its message.
 */
export type WhyFacts = {
  /** The person's task, and the last request before the first edit. */
  asked: QuotedWords[]
  decided: (QuotedWords & { kind: string })[]
  /** The person's words when they stopped a tool. */
  rejected: QuotedWords[]
  /** The agent's report of its work. An older hub does not send it. */
  done?: QuotedWords[]
  tests: TestOutcome[]
  /** Questions, steps and failures that were open when the conversation ended. */
  open: (QuotedWords & { kind: string })[]
}

/** A conversation that wrote some of the lines, and why. */
export type Explanation = WhyFacts & {
  ref: string
  title: string
  source: string
  date: string
  level: "proved" | "likely"
  /** How many of the lines the conversation wrote, proved and likely together. */
  lines: number
  proved: number
  likely: number
}

const MAX_DECIDED = 4
const MAX_REJECTED = 2
const MAX_TESTS = 3
const MAX_OPEN = 3

export function whyFacts({ row, messages: allMessages, edits, committed }: WriterMessages): WhyFacts {
  const messages = allMessages.filter(({ abandoned, superseded, copied }) => !abandoned && !superseded && !copied)
  const stretch = stretchOf(messages, edits, committed)
  const numbersInStretch = new Set(messages.slice(stretch.start, stretch.end + 1).map(({ number }) => number))
  const refOf = (number: number) => formatRef({ ...row.ref, number })
  const brief = briefOf(messages.slice(0, stretch.end + 1))
  return {
    asked: requestsIn(brief, messages, stretch.firstEdit).map(({ number, text }) => ({ ref: refOf(number), text })),
    decided: decisionsIn(row, messages)
      .filter(({ number, kind }) => numbersInStretch.has(number) && kind !== "breaking" && kind !== "revert")
      .slice(-MAX_DECIDED)
      .map(({ number, kind, quote }) => ({ ref: refOf(number), kind, text: quote })),
    rejected: brief.decisions
      .filter(({ kind, number }) => kind === "refusal" && numbersInStretch.has(number))
      .slice(-MAX_REJECTED)
      .map(({ number, text }) => ({ ref: refOf(number), text })),
    done: doneIn(messages, stretch).map(({ number, text }) => ({ ref: refOf(number), text })),
    tests: outcomesOf(testRunsIn(messages.slice(stretch.start, stretch.end + 1), pathRootsOf(row)), refOf),
    open: openEnds(row, messages, refOf),
  }
}

/** Positions in the list of messages. A message's number identifies it, but does not say when it was written. */
type MessageStretch = { start: number; firstEdit: number; lastEdit: number; end: number }

/**
 * The messages that led to the edits: from the commit before the first edit to the commit that includes the edits, or to the
 * end.
 */
function stretchOf(messages: StoredMessage[], edits: number[], committed: number | undefined): MessageStretch {
  const editNumbers = new Set(edits)
  const last = messages.length - 1
  const places = messages.flatMap(({ number }, place) => (editNumbers.has(number) ? [place] : []))
  const commitPlace = committed === undefined ? -1 : messages.findIndex(({ number }) => number === committed)
  const firstEdit = places[0] ?? (commitPlace < 0 ? last : commitPlace)
  const lastEdit = places.at(-1) ?? firstEdit
  const commits = messages.flatMap(({ effects }, place) =>
    effects.some(({ type }) => type === "commit") ? [place] : [],
  )
  const commitBefore = commits.findLast((place) => place < firstEdit && place !== commitPlace)
  const commitAfter = commitPlace >= lastEdit ? commitPlace : commits.find((place) => place >= lastEdit)
  return { start: commitBefore === undefined ? 0 : commitBefore + 1, firstEdit, lastEdit, end: commitAfter ?? last }
}

const NOT_DONE = /\b(?:next|remaining|todo|later|left|open)\b/i
const STILL_TO_DO = /^\W*(?:what(?:'s| is| remains)|still|left|next|remaining|todo|not)\b/i
const MIN_DONE_WORDS = 4

/** The last thing that the agent reported between the last edit and the person's next message after the commit. */
function doneIn(messages: StoredMessage[], { lastEdit, end }: MessageStretch): { number: number; text: string }[] {
  const isTyped = ({ parts }: StoredMessage) => parts.some(({ type, origin }) => type === "text" && origin === "person")
  const next = messages.findIndex((message, i) => i > end && isTyped(message))
  for (const { number, parts } of messages.slice(lastEdit, next < 0 ? undefined : next).reverse())
    for (const part of parts) {
      if (part.type !== "text" || part.origin !== "agent") continue
      const statements = statementsIn(part.text)
      const index = statements.findIndex(
        ({ text, kind, lead, headings }) =>
          (kind === "sentence" || kind === "item") &&
          text.split(/\s+/).length >= MIN_DONE_WORDS &&
          !/[?:][*_`\s]*$/.test(text) &&
          !isAnnouncement(text) &&
          !STILL_TO_DO.test(text) &&
          !NOT_DONE.test([lead, ...headings].join(" ")),
      )
      if (index < 0) continue
      const [, last] = blocksIn(part.text, statements)[index]!
      return [{ number, text: part.text.slice(statements[index]!.start, statements[last]!.end) }]
    }
  return []
}

/** The conversation's task, and the last request before the first edit if it differs from the task. */
function requestsIn({ goal }: Brief, messages: StoredMessage[], firstEdit: number) {
  const places = new Map(messages.map(({ number }, place) => [number, place]))
  const earlier = goal.filter(({ number }) => places.get(number)! <= firstEdit)
  const [task, request] = [goal.find(isMeaningful), earlier.findLast(isMeaningful)]
  return [...(task ? [task] : []), ...(request && request !== task ? [request] : [])]
}

/** False for a bare command of an agent, such as `/review`, which means nothing to people who do not have that command. */
function isMeaningful({ text }: { text: string }): boolean {
  return !/^\/[\w:-]+$/.test(text.trim())
}

/** Lists each test command once, with its last outcome. */
function outcomesOf(runs: TestRunWrite[], refOf: (number: number) => string): TestOutcome[] {
  const byCommand = Map.groupBy(runs, ({ command }) => shortenCommand(command))
  return [...byCommand]
    .map(([command, commandRuns]) => {
      const last = commandRuns.at(-1)!
      const failed_before = commandRuns.slice(0, -1).filter(({ outcome }) => outcome === "failed").length
      return { at: runs.indexOf(last), ref: refOf(last.number), command, outcome: last.outcome, failed_before }
    })
    .sort((a, b) => a.at - b.at)
    .slice(-MAX_TESTS)
    .map(({ at: _, ...outcome }) => outcome)
}

/** The command without `2>&1` and what follows it, and without a final pipe to tail, head or grep. */
function shortenCommand(command: string): string {
  return command
    .replace(/\s+/g, " ")
    .replace(/\s*(?:2>&1.*|\| (?:tail|head|grep)\b.*)$/, "")
    .trim()
}

/**
 * Lists the open ends of a conversation: failed commands first, then unfinished steps and unanswered questions. Failures before the
 * last test run that passed are left out, because they were most likely fixed by then.
 */
function openEnds(
  row: ConversationRow,
  messages: StoredMessage[],
  refOf: (number: number) => string,
): WhyFacts["open"] {
  const passed = testRunsIn(messages, pathRootsOf(row)).findLast(({ outcome }) => outcome === "passed")
  const sinceIndex = passed === undefined ? 0 : messages.findIndex(({ number }) => number === passed.number)
  const failing = findOpenChecks(row.project ?? "", [
    { messages: messages.slice(sinceIndex), refOf, ended_at: row.ended_at ?? 0 },
  ]).map(({ ref, command }) => ({ ref, kind: "command", text: shortenCommand(command) }))
  const fromBrief = briefOf(messages)
    .open_ends.filter(({ kind }) => kind === "step" || kind === "question" || kind === "todo" || kind === "request")
    .map(({ number, kind, text }) => ({ ref: refOf(number), kind, text }))
  return [...failing, ...fromBrief].slice(0, MAX_OPEN)
}

/**
 * A conversation that wrote lines, the messages in which it or its subagents wrote them, and the message that made the commit.
 */
export type LineWriter = { ref: Ref; edits: { id: string; number: number }[]; committed?: number }

/** Explains why the lines were written. Undefined if the conversation is missing. */
export async function reasonsFor(
  store: HistoryReader,
  { ref, edits, committed }: LineWriter,
): Promise<{ row: ConversationRow; messages: StoredMessage[]; facts: WhyFacts } | undefined> {
  const row = await store.conversation(ref)
  if (!row) return undefined
  const messages = await store.messages(ref)
  const numbers = await editsIn(store, ref, messages, edits)
  const facts = whyFacts({ row, messages, edits: numbers, committed })
  return { row, messages, facts }
}

/** The messages that wrote the lines. For a subagent's lines, the last message before the subagent started. */
async function editsIn(
  store: HistoryReader,
  conversation: Ref,
  messages: StoredMessage[],
  edits: LineWriter["edits"],
): Promise<number[]> {
  const numbers = new Set<number>()
  for (const [id, editsOfConversation] of Map.groupBy(edits, ({ id }) => id)) {
    if (id === conversation.id) {
      for (const { number } of editsOfConversation) numbers.add(number)
      continue
    }
    const started = (await store.conversation(siblingRef(conversation, id)))?.started_at
    const messageBefore = messages.findLast(({ at }) => at !== undefined && started !== undefined && at <= started)
    if (messageBefore) numbers.add(messageBefore.number)
  }
  return [...numbers]
}
