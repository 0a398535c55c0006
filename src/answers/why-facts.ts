import { formatRef, type Ref, siblingRef } from "../core/ref.ts"
import { decisionsIn } from "../learn/decisions/decisions.ts"
import { testRunsIn } from "../learn/test-runs/runs.ts"
import { type Brief, briefOf } from "../render/brief.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import type { TestRunWrite } from "../store/knowledge/test-runs.ts"
import { findOpenChecks } from "./left-open.ts"

/** A conversation, and the messages in which it wrote the requested lines. */
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

/** Why something was written, only from the records. Nothing is guessed, and each fact names its message. */
export type WhyFacts = {
  /** The person's task, and the last request before the first edit. */
  asked: QuotedWords[]
  decided: (QuotedWords & { kind: string })[]
  /** The person's words when they stopped a tool. */
  rejected: QuotedWords[]
  tests: TestOutcome[]
  /** Open ends of the conversation. */
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

export function whyFacts({ row, messages: all, edits, committed }: WriterMessages): WhyFacts {
  const messages = all.filter(({ abandoned, superseded, copied }) => !abandoned && !superseded && !copied)
  const stretch = stretchOf(messages, edits, committed)
  const within = new Set(messages.slice(stretch.start, stretch.end + 1).map(({ number }) => number))
  const refOf = (number: number) => formatRef({ ...row.ref, number })
  const brief = briefOf(messages.slice(0, stretch.end + 1))
  const project = row.project ?? ""
  return {
    asked: requestsIn(brief, messages, stretch.firstEdit).map(({ number, text }) => ({ ref: refOf(number), text })),
    decided: decisionsIn(row, messages)
      .filter(({ number, kind }) => within.has(number) && kind !== "breaking" && kind !== "revert")
      .slice(-MAX_DECIDED)
      .map(({ number, kind, quote }) => ({ ref: refOf(number), kind, text: quote })),
    rejected: brief.decisions
      .filter(({ kind, number }) => kind === "refusal" && within.has(number))
      .slice(-MAX_REJECTED)
      .map(({ number, text }) => ({ ref: refOf(number), text })),
    tests: outcomesOf(testRunsIn(messages.slice(stretch.start, stretch.end + 1), project), refOf),
    open: openEnds(row, messages, refOf),
  }
}

/** Positions in the list of messages. A message's number identifies it, but does not say when it was written. */
type MessageStretch = { start: number; firstEdit: number; end: number }

/** The messages that led to the edits: from the commit before the first edit to the commit that includes them, or to the end. */
function stretchOf(messages: StoredMessage[], edits: number[], committed: number | undefined): MessageStretch {
  const wanted = new Set(edits)
  const last = messages.length - 1
  const places = messages.flatMap(({ number }, place) => (wanted.has(number) ? [place] : []))
  const own = committed === undefined ? -1 : messages.findIndex(({ number }) => number === committed)
  const firstEdit = places[0] ?? (own < 0 ? last : own)
  const lastEdit = places.at(-1) ?? firstEdit
  const commits = messages.flatMap(({ effects }, place) =>
    effects.some(({ type }) => type === "commit") ? [place] : [],
  )
  const before = commits.findLast((place) => place < firstEdit && place !== own)
  const after = own >= lastEdit ? own : commits.find((place) => place >= lastEdit)
  return { start: before === undefined ? 0 : before + 1, firstEdit, end: after ?? last }
}

/** The conversation's task, and the last request before the first edit if that is another one. */
function requestsIn({ goal }: Brief, messages: StoredMessage[], firstEdit: number) {
  const places = new Map(messages.map(({ number }, place) => [number, place]))
  const before = goal.filter(({ number }) => places.get(number)! <= firstEdit)
  const [task, request] = [goal.find(isMeaningful), before.findLast(isMeaningful)]
  return [...(task ? [task] : []), ...(request && request !== task ? [request] : [])]
}

/** False for the name of an agent's command, which means nothing to people who do not have that command. */
function isMeaningful({ text }: { text: string }): boolean {
  return !/^\/[\w:-]+$/.test(text.trim())
}

/** The outcomes of tests: each command once, with its last outcome. */
function outcomesOf(runs: TestRunWrite[], refOf: (number: number) => string): TestOutcome[] {
  const byCommand = Map.groupBy(runs, ({ command }) => shownCommand(command))
  return [...byCommand]
    .map(([command, own]) => {
      const last = own.at(-1)!
      const failed_before = own.slice(0, -1).filter(({ outcome }) => outcome === "failed").length
      return { at: runs.indexOf(last), ref: refOf(last.number), command, outcome: last.outcome, failed_before }
    })
    .sort((a, b) => a.at - b.at)
    .slice(-MAX_TESTS)
    .map(({ at: _, ...outcome }) => outcome)
}

/** The command without pipes and redirections of its output. */
function shownCommand(command: string): string {
  return command
    .replace(/\s+/g, " ")
    .replace(/\s*(?:2>&1.*|\| (?:tail|head|grep)\b.*)$/, "")
    .trim()
}

/** Leaves out failures before the last run that passed: they were most likely fixed, such as a test that is written first. */
function openEnds(
  row: ConversationRow,
  messages: StoredMessage[],
  refOf: (number: number) => string,
): WhyFacts["open"] {
  const passed = testRunsIn(messages, row.project ?? "").findLast(({ outcome }) => outcome === "passed")
  const since = passed === undefined ? 0 : messages.findIndex(({ number }) => number === passed.number)
  const failing = findOpenChecks(row.project ?? "", [
    { messages: messages.slice(since), refOf, ended_at: row.ended_at ?? 0 },
  ]).map(({ ref, command }) => ({ ref, kind: "command", text: shownCommand(command) }))
  const openEnds = briefOf(messages)
    .open_ends.filter(({ kind }) => kind === "step" || kind === "question" || kind === "todo" || kind === "request")
    .map(({ number, kind, text }) => ({ ref: refOf(number), kind, text }))
  return [...failing, ...openEnds].slice(0, MAX_OPEN)
}

/** A conversation that wrote lines, the messages in which it or its subagents wrote them, and the one with the commit. */
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
  own: Ref,
  messages: StoredMessage[],
  edits: LineWriter["edits"],
): Promise<number[]> {
  const numbers = new Set<number>()
  for (const [id, some] of Map.groupBy(edits, ({ id }) => id)) {
    if (id === own.id) {
      for (const { number } of some) numbers.add(number)
      continue
    }
    const started = (await store.conversation(siblingRef(own, id)))?.started_at
    const before = messages.findLast(({ at }) => at !== undefined && started !== undefined && at <= started)
    if (before) numbers.add(before.number)
  }
  return [...numbers]
}
