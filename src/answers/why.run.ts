import type { BlameFacts, Worker } from "../blame/facts.ts"
import type { LineOwner } from "../blame/owners.ts"
import { isoDate } from "../core/dates.ts"
import { besideOf, formatRef, type Ref } from "../core/ref.ts"
import type { CommitHead } from "../git/commit-diffs.ts"
import type { ConversationRow, HistoryReader, StoredMessage } from "../store/history/store.ts"
import { type OwnersOfTarget, ownersOfTarget } from "../tools/blame/owners-of-target.ts"
import type { Dex } from "../tools/context.ts"
import { checkedAnswer } from "./ask.run.ts"
import { openLibrary } from "./library.ts"
import { DEFAULT_CAPS, runLoop } from "./loop.ts"
import type { Passage } from "./passages.ts"
import { type Explanation, whyFacts } from "./why-facts.ts"
import { withinAMinute } from "./why-page.ts"

export type WhyInput = { target: string; rev?: string; pr: boolean; facts: boolean; model?: string }

/** More of them wrote too little of it to explain it. */
const MOST_CONVERSATIONS = 3
const MOST_COMMITS = 5

export async function run(dex: Dex, input: WhyInput) {
  return explainOwned(dex, input, await ownersOfTarget(dex, input))
}

/** The same for whoever knows already whose the lines are. */
export async function explainOwned(dex: Dex, input: WhyInput, owned: OwnersOfTarget) {
  const { owners, makers, commits, facts, notes } = owned
  const store = await dex.store()
  const authors = authorsOf(owners, makers)
  const found: Explained[] = []
  for (const author of authors.slice(0, MOST_CONVERSATIONS)) {
    const explained = await explain(store, author, commits, facts)
    if (explained) found.push(explained)
  }
  const shown = withinAMinute(found.map(({ told }) => told))
  const more = authors.length - shown.length
  // An agent has a model of its own.
  const answer =
    input.facts || dex.caller !== undefined || found.length === 0
      ? undefined
      : await asProse(dex, input, commits, found)
  return {
    target: input.target,
    commits: commits.slice(0, MOST_COMMITS).map(({ hash, subject, at }) => ({ hash, subject, date: isoDate(at) })),
    lines: owners.length,
    unknown: owners.filter(({ level }) => level === "unknown").length,
    conversations: shown,
    ...(answer?.text && { answer }),
    notes: [
      ...notes,
      ...(commits.length > MOST_COMMITS ? [`${commits.length - MOST_COMMITS} older commits are not named.`] : []),
      ...(more > 0 ? [`${more} more ${more === 1 ? "conversation" : "conversations"} wrote a part of it.`] : []),
      ...(answer?.notes ?? []),
    ],
  }
}

type Author = { worker: Worker; owners: LineOwner[] }

/** Who wrote the most first; then who made the commit, where that wrote no line of it. */
function authorsOf(owners: readonly LineOwner[], makers: readonly LineOwner[]): Author[] {
  const wrote = Map.groupBy(owners.filter(isKnown), ({ worker }) => worker)
  const made = new Set(makers.filter(isKnown).map(({ worker }) => worker))
  return [
    ...[...wrote].map(([worker, own]) => ({ worker, owners: own })).sort((a, b) => b.owners.length - a.owners.length),
    ...[...made].filter((worker) => !wrote.has(worker)).map((worker) => ({ worker, owners: [] })),
  ]
}

function isKnown(owner: LineOwner): owner is LineOwner & { worker: Worker } {
  return owner.worker !== undefined
}

type Explained = { told: Explanation; row: ConversationRow; messages: StoredMessage[] }

async function explain(
  store: HistoryReader,
  { worker, owners }: Author,
  commits: readonly CommitHead[],
  facts: BlameFacts,
): Promise<Explained | undefined> {
  const row = await store.conversation(worker.ref)
  if (!row) return undefined
  const messages = await store.messages(worker.ref)
  const edits = await editsIn(store, worker.ref, messages, owners)
  const ran = facts.ran.find(
    (one) => one.ref.id === worker.ref.id && commits.some(({ hash }) => hash.startsWith(one.hash)),
  )
  return {
    row,
    messages,
    told: {
      ref: formatRef(row.ref),
      title: row.title?.text ?? "(no title)",
      source: row.ref.source,
      date: isoDate(row.ended_at ?? row.started_at ?? 0),
      level: owners.some(({ level }) => level === "proved") ? "proved" : "likely",
      lines: owners.length,
      ...whyFacts({ row, messages, edits, ...(ran && { committed: ran.ref.number }) }),
    },
  }
}

/** The messages that wrote the lines. For what a subagent wrote, the last one that was said before it started. */
async function editsIn(
  store: HistoryReader,
  own: Ref,
  messages: StoredMessage[],
  owners: readonly LineOwner[],
): Promise<number[]> {
  const numbers = new Set<number>()
  for (const [id, some] of Map.groupBy(
    owners.flatMap(({ number }) => number ?? []),
    ({ id }) => id,
  )) {
    if (id === own.id) {
      for (const { number } of some) numbers.add(number)
      continue
    }
    const started = (await store.conversation(besideOf(own, id)))?.started_at
    const before = messages.findLast(({ at }) => at !== undefined && started !== undefined && at <= started)
    if (before) numbers.add(before.number)
  }
  return [...numbers]
}

/** The same as prose, by a model; every sentence is checked against what it cites. */
async function asProse(dex: Dex, input: WhyInput, commits: readonly CommitHead[], found: Explained[]) {
  const { configuredModel } = await import("../tools/model.ts")
  const model = await configuredModel(dex, input.model === undefined ? {} : { model: input.model })
  if (!model) return undefined
  const library = await openLibrary(dex, { among: "history" })
  const first = found.flatMap(({ row, messages, told }) => {
    const wanted = new Set(
      [...told.asked, ...told.decided, ...told.rejected, ...told.tests, ...told.open].map(({ ref }) => ref),
    )
    return messages
      .filter(({ number }) => wanted.has(formatRef({ ...row.ref, number })))
      .flatMap((message): Passage[] => {
        const passage = library.passages.add(row, message)
        return passage ? [passage] : []
      })
  })
  const what = commits.length === 1 ? `the commit “${commits[0]!.subject}”` : input.target
  const done = await runLoop(model, library, {
    question: `Why was ${what} written? Say what was asked for, what was decided and rejected, how it was tested, and what is left open.`,
    first,
    caps: DEFAULT_CAPS,
    ...(dex.signal && { signal: dex.signal }),
  })
  const { kept } = checkedAnswer(done.text, library)
  const numbers = [...new Set(kept.flatMap((one) => one.numbers))].sort((a, b) => a - b)
  return {
    text: kept.map(({ text }) => text).join(" "),
    sources: numbers.flatMap((n) => {
      const passage = library.passages.get(n)
      return passage ? [{ n, ref: passage.ref }] : []
    }),
    notes: done.stopped === undefined ? [] : [`Stopped early: ${done.stopped}.`],
  }
}
