import { commandParts } from "../core/command.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import { parseQuery } from "../search/query.ts"
import type { Filters } from "../search/scope.ts"
import { type SearchOutcome, search } from "../search/search.ts"
import type { SearchIndex } from "../store/search-index.ts"
import type { ConversationRow, Store } from "../store/store.ts"
import { type ErrorText, errorLines, errorText, likeness } from "./error-text.ts"
import { type Fix, fixesIn, type Subagent } from "./fixes.ts"

/** A fix that is like what was asked. `error` is the line of its output that is closest. */
export type FoundFix = Fix & { row: ConversationRow; likeness: number }

export type FoundFixes = {
  /** Best first. */
  solved: FoundFix[]
  unsolved: FoundFix[]
  /** Conversations whose messages hold the words, and how many of them were read. */
  candidates: number
  read: number
  outcome: SearchOutcome
}

/** Each is read whole. */
const MOST_CONVERSATIONS = 30
const MOST_SUBAGENTS = 20
const MOST_ASKED_LINES = 10
/** Below this the two share little more than common words. */
const LEAST_LIKENESS = 0.6
/** An output's most telling line is what was asked; the others may say more of it. */
const FURTHER_LINE = 0.9
/** What was solved here goes before what was solved as well elsewhere. */
const HERE = 0.1
/** One edit says what fixed it; of forty it may be any. */
const EACH_EDIT = 0.01

/** What fixed an error, or made a command pass, in the conversations that speak of it. */
export async function findFixes(
  store: Store,
  index: SearchIndex | undefined,
  asked: string,
  filters: Pick<Filters, "project" | "inside">,
): Promise<FoundFixes> {
  const question = questionOf(asked)
  const outcome = await firstFound(question.words, (words) =>
    search(store, index, {
      ...filters,
      among: "history",
      query: parseQuery(words, () => false),
      by: "conversation",
      limit: MOST_CONVERSATIONS,
      offset: 0,
    }),
  )
  const rows = await rowsOf(store, outcome)
  const found: FoundFix[] = []
  for (const row of rows) {
    const fixes = fixesIn(await store.messages(row.ref), await subagentsOf(store, row, filters.inside))
    found.push(...fixes.flatMap((fix) => matched(fix, row, question)))
  }
  const score = ({ likeness, row, edits }: FoundFix) =>
    likeness + (row.project === filters.inside ? HERE : 0) - Math.min(HERE, EACH_EDIT * edits.length)
  found.sort((a, b) => score(b) - score(a) || (b.at ?? 0) - (a.at ?? 0) || a.failed_at - b.failed_at)
  return {
    solved: found.filter(({ fixed_at }) => fixed_at !== undefined),
    unsolved: found.filter(({ fixed_at }) => fixed_at === undefined),
    candidates: outcome.candidates,
    read: rows.length,
    outcome,
  }
}

type Question = {
  lines: ErrorText[]
  /** What was asked, where it may be a command. */
  command?: string
  /** What to search for; each where the one before found nothing. */
  words: string[]
}

function questionOf(asked: string): Question {
  const lines = errorLines(asked).slice(0, MOST_ASKED_LINES).map(errorText)
  const [first] = lines
  const named = first ? [...first.words, ...first.particulars] : []
  // Names that nobody ever said must not hide the error that they stand in.
  const plainly = [...(first?.words ?? [])]
  const all = lines.flatMap(({ words }) => [...words])
  const command = asked.trim()
  return {
    lines,
    ...(!command.includes("\n") && { command }),
    words: [named, plainly, all].map((words) => plain(words.join(" "))).filter((words) => words.trim() !== ""),
  }
}

/** What reads as an operator of a query is only text here. */
function plain(text: string): string {
  return text.replaceAll('"', " ").replaceAll(/(^|\s)-+/g, " ")
}

async function firstFound(words: string[], find: (words: string) => Promise<SearchOutcome>): Promise<SearchOutcome> {
  const [first = "", ...others] = words
  let outcome = await find(first)
  for (const other of others) {
    if (outcome.hits.length > 0) break
    outcome = await find(other)
  }
  return outcome
}

/** Those whose best message is a copy of another's are no row of a search, but they may have solved it. */
async function rowsOf(store: Store, { hits, skipped }: SearchOutcome): Promise<ConversationRow[]> {
  const rows = hits.map(({ row }) => row)
  const known = new Set(rows.map(({ ref }) => formatRef(ref)))
  const copies = skipped.filter(({ ref, reason }) => reason === "duplicate" && !known.has(formatRef(ref)))
  const room = MOST_CONVERSATIONS - rows.length
  const more = await Promise.all(copies.slice(0, Math.max(0, room)).map(({ ref }) => store.conversation(bare(ref))))
  return [...rows, ...more.filter((row) => row !== undefined)]
}

function bare({ source, id }: Ref): Ref {
  return { source, id }
}

async function subagentsOf(store: Store, { ref, kind }: ConversationRow, inside = ""): Promise<Subagent[]> {
  if (kind === "subagent") return []
  const { rows } = await store.list({
    conversation: ref,
    kinds: ["subagent"],
    limit: MOST_SUBAGENTS,
    offset: 0,
    inside,
  })
  const shown = rows.filter((row) => !row.private || row.project === inside)
  return Promise.all(
    shown.map(async ({ ref, parent }) => ({
      id: formatRef(ref),
      ...(parent?.call_id !== undefined && { call_id: parent.call_id }),
      messages: await store.messages(ref),
    })),
  )
}

function matched(fix: Fix, row: ConversationRow, question: Question): FoundFix[] {
  const byCommand = question.command === undefined ? 0 : commandLikeness(question.command, fix.command)
  let best = { line: fix.error, likeness: byCommand }
  for (const line of fix.lines) {
    const known = errorText(line)
    const close = Math.max(
      0,
      ...question.lines.map((asked, i) => likeness(asked, known) * (i === 0 ? 1 : FURTHER_LINE)),
    )
    if (close > best.likeness) best = { line, likeness: close }
  }
  if (best.likeness < LEAST_LIKENESS) return []
  return [{ ...fix, error: best.line, row, likeness: best.likeness }]
}

/** The same things done: on the same files, on others, or `npm` where it was `npm test`. */
function commandLikeness(asked: string, ran: string): number {
  const [a, b] = [commandParts(asked).parts, commandParts(ran).parts]
  if (a.length === 0) return 0
  const each = a.map(({ kind, args }) => {
    const same = b.filter((part) => part.kind === kind)
    if (same.some((part) => args.length === part.args.length && args.every((arg) => part.args.includes(arg)))) return 1
    if (same.length > 0) return args.length === 0 ? 0.9 : 0.8
    return b.some((part) => part.kind.startsWith(`${kind} `)) && args.length === 0 ? 0.7 : 0
  })
  return Math.min(...each)
}
