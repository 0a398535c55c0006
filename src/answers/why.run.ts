import { isoDate } from "../core/dates.ts"
import { withoutUndefined } from "../core/defined.ts"
import { formatRef } from "../core/ref.ts"
import type { CommitHead } from "../git/commit-diffs.ts"
import type { BlameFacts, Worker } from "../learn/blame/facts.ts"
import type { LineOwner } from "../learn/blame/owners.ts"
import type { HistoryReader } from "../store/history/store.ts"
import { countsOf } from "../tools/blame/owner-facts.ts"
import { type OwnersOfTarget, ownersOfTarget } from "../tools/blame/owners-of-target.ts"
import type { TeamHub } from "../tools/blame/team-facts.ts"
import type { Dex } from "../tools/context.ts"
import { checkAnswer } from "./ask.run.ts"
import { openLibrary, type PassageLibrary } from "./library.ts"
import { DEFAULT_CAPS, runLoop } from "./loop.ts"
import { teamHistory } from "./passage-source.ts"
import type { Passage } from "./passages.ts"
import type { ReasonsRow, SentReasons } from "./team-questions.ts"
import { type Explanation, type LineWriter, reasonsFor, type WhyFacts } from "./why-facts.ts"
import { shortenToOneMinute } from "./why-page.ts"

export type WhyInput = {
  target: string
  rev?: string
  pr: boolean
  facts: boolean
  model?: string
  where?: "team"
}

/** The most conversations to explain. Others wrote too little of the lines. */
const MAX_CONVERSATIONS = 3
const MAX_COMMITS = 5

export async function run(dex: Dex, input: WhyInput) {
  if (input.where === "team") {
    const { withTeam } = await import("../tools/hub/ask-team.ts")
    return withTeam(dex, async (hub) => explainOwners(dex, input, await ownersOfTarget(dex, input, hub), hub))
  }
  const output = await explainOwners(dex, input, await ownersOfTarget(dex, input))
  if (output.conversations.length > 0) return output
  const { teamHint } = await import("../tools/hub/team-hint.ts")
  return { ...output, notes: [...output.notes, ...teamHint(dex)] }
}

/** For callers that already know who wrote the lines. */
export async function explainOwners(dex: Dex, input: WhyInput, owned: OwnersOfTarget, hub?: TeamHub) {
  const { owners, makers, commits, facts, notes } = owned
  const authors = authorsOf(owners, makers)
  const found: AuthorExplanation[] = []
  for (const author of authors.slice(0, MAX_CONVERSATIONS)) {
    const written = writtenIn(author, commits, facts)
    const explained = await (hub && written.ref.owner !== undefined
      ? explainOnHub(hub, written)
      : explainLocally(await dex.store(), written))
    if (explained) found.push({ ...explained, explanation: { ...shareOf(author), ...explained.explanation } })
  }
  const shown = shortenToOneMinute(found.map(({ explanation }) => explanation))
  const more = authors.length - shown.length
  // Only a person gets prose: an agent uses its own model.
  const answer =
    input.facts || dex.caller !== undefined || found.length === 0
      ? undefined
      : await writeProse(dex, input, commits, found, hub)
  return withoutUndefined({
    target: input.target,
    commits: commits.slice(0, MAX_COMMITS).map(({ hash, subject, at }) => ({ hash, subject, date: isoDate(at) })),
    lines: owners.length,
    unknown: owners.filter(({ level }) => level === "unknown").length,
    conversations: shown,
    answer: answer?.text ? answer : undefined,
    notes: [
      ...notes,
      ...(commits.length > MAX_COMMITS ? [`${commits.length - MAX_COMMITS} older commits are not named.`] : []),
      ...(more > 0 ? [`${more} more ${more === 1 ? "conversation" : "conversations"} wrote a part of it.`] : []),
      ...(answer?.notes ?? []),
    ],
  })
}

type Author = { worker: Worker; owners: LineOwner[] }

/** The authors of the lines: those that wrote the most first, then those that made the commit but wrote none of its lines. */
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

type AuthorExplanation = { explanation: Explanation; passages(library: PassageLibrary): Promise<Passage[]> }

function writtenIn({ worker, owners }: Author, commits: readonly CommitHead[], facts: BlameFacts): LineWriter {
  const ran = facts.ran.find(
    (one) => one.ref.id === worker.ref.id && commits.some(({ hash }) => hash.startsWith(one.hash)),
  )
  return { ref: worker.ref, edits: owners.flatMap(({ number }) => number ?? []), committed: ran?.ref.number }
}

type Share = Pick<Explanation, "level" | "lines" | "proved" | "likely">

function shareOf({ owners }: Author): Share {
  const { total, proved, likely } = countsOf(owners.map(({ level }) => level))
  return { level: proved > 0 ? "proved" : "likely", lines: total, proved, likely }
}

type ExplanationWithoutShare = { explanation: Omit<Explanation, keyof Share>; passages: AuthorExplanation["passages"] }

async function explainLocally(store: HistoryReader, written: LineWriter): Promise<ExplanationWithoutShare | undefined> {
  const found = await reasonsFor(store, written)
  if (!found) return undefined
  const { row, messages, facts } = found
  const wanted = new Set(quotedRefs(facts))
  return {
    explanation: { ...headOf(row), ...facts },
    passages: async (library) =>
      messages
        .filter(({ number }) => wanted.has(formatRef({ ...row.ref, number })))
        .flatMap((message) => library.passages.add(row, message) ?? []),
  }
}

/** Explains a colleague's conversation: the hub reads it and finds the reasons, as this machine does for its own. */
async function explainOnHub(hub: TeamHub, { ref, ...rest }: LineWriter): Promise<ExplanationWithoutShare | undefined> {
  const { found } = await hub.ask<SentReasons>("reasons", { id: formatRef(ref), ...rest })
  if (!found) return undefined
  const { id: _, row, facts } = found
  return {
    explanation: { ...headOf(row), ...facts },
    passages: async (library) => {
      const read: Passage[] = []
      for (const one of new Set(quotedRefs(facts)))
        read.push(...(await library.read(one)).filter((passage) => passage.ref === one))
      return read
    },
  }
}

function headOf({ ref, title, started_at, ended_at }: ReasonsRow) {
  return {
    ref: formatRef(ref),
    title: title?.text ?? "(no title)",
    source: ref.source,
    date: isoDate(ended_at ?? started_at ?? 0),
  }
}

function quotedRefs({ asked, decided, rejected, tests, open }: WhyFacts): string[] {
  return [...asked, ...decided, ...rejected, ...tests, ...open].map(({ ref }) => ref)
}

/** The explanation as prose, written by a model. Every sentence is checked against its sources. */
async function writeProse(
  dex: Dex,
  input: WhyInput,
  commits: readonly CommitHead[],
  found: AuthorExplanation[],
  hub: TeamHub | undefined,
) {
  const { configuredModel } = await import("../tools/model.ts")
  const model = await configuredModel(dex, { model: input.model })
  if (!model) return undefined
  const scope = { among: "history" } as const
  const library = await openLibrary(dex, scope, hub && teamHistory(hub))
  const first: Passage[] = []
  for (const { passages } of found) first.push(...(await passages(library)))
  const what = commits.length === 1 ? `the commit “${commits[0]!.subject}”` : input.target
  const done = await runLoop(model, library, {
    question: `Why was ${what} written? Say what was asked for, what was decided and rejected, how it was tested, and what is left open.`,
    first,
    caps: DEFAULT_CAPS,
    signal: dex.signal,
  })
  const { kept } = checkAnswer(done.text, library)
  const numbers = [...new Set(kept.flatMap((one) => one.numbers))].sort((a, b) => a - b)
  return {
    text: kept.map(({ text }) => text).join(" "),
    sources: numbers.flatMap((n) => {
      const passage = library.passages.get(n)
      return passage ? [{ n, ref: passage.ref }] : []
    }),
    notes: [...(done.stopped === undefined ? [] : [`Stopped early: ${done.stopped}.`]), ...library.notRead],
  }
}
