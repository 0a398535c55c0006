import { isoDate } from "../core/dates.ts"
import { withoutUndefined } from "../core/defined.ts"
import { formatRef } from "../core/ref.ts"
import type { CommitHead } from "../git/commit-diffs.ts"
import type { BlameFacts, Worker } from "../learn/blame/facts.ts"
import type { LineOwner } from "../learn/blame/owners.ts"
import { many } from "../render/words.ts"
import type { HistoryReader } from "../store/history/store.ts"
import { countsOf } from "../tools/blame/owner-facts.ts"
import { type OwnersOfTarget, ownersOfTarget } from "../tools/blame/owners-of-target.ts"
import type { TeamHub } from "../tools/blame/team-facts.ts"
import type { Dex } from "../tools/context.ts"
import { checkAnswer, textWithSources } from "./ask.run.ts"
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

/** The maximum number of conversations to explain. The ones that wrote the most lines are chosen. */
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

/** Explains why lines were written, given the conversations that own them. */
export async function explainOwners(dex: Dex, input: WhyInput, owned: OwnersOfTarget, hub?: TeamHub) {
  const { owners, makers, commits, facts, notes } = owned
  const authors = authorsOf(owners, makers)
  const explanations: AuthorExplanation[] = []
  for (const author of authors.slice(0, MAX_CONVERSATIONS)) {
    const writer = lineWriterOf(author, commits, facts)
    const explained = await (hub && writer.ref.owner !== undefined
      ? explainOnHub(hub, writer)
      : explainLocally(await dex.store(), writer))
    if (explained) explanations.push({ ...explained, explanation: { ...shareOf(author), ...explained.explanation } })
  }
  const shortened = shortenToOneMinute(explanations.map(({ explanation }) => explanation))
  const unshownCount = authors.length - shortened.length
  // Only a person gets prose: an agent uses its own model.
  const answer =
    input.facts || dex.caller !== undefined || explanations.length === 0
      ? undefined
      : await writeProse(dex, input, commits, explanations, hub)
  return withoutUndefined({
    target: input.target,
    commits: commits.slice(0, MAX_COMMITS).map(({ hash, subject, at }) => ({ hash, subject, date: isoDate(at) })),
    lines: owners.length,
    unknown: owners.filter(({ level }) => level === "unknown").length,
    conversations: shortened,
    answer: answer?.text ? answer : undefined,
    notes: [
      ...notes,
      ...(commits.length > MAX_COMMITS ? [`${many(commits.length - MAX_COMMITS, "older commit")} not listed.`] : []),
      ...(unshownCount > 0 ? [`${many(unshownCount, "more conversation")} wrote some of these lines.`] : []),
      ...(answer?.notes ?? []),
    ],
  })
}

type Author = { worker: Worker; owners: LineOwner[] }

/** Sorts the authors by the number of lines they wrote. Those who made the commit but wrote none of its lines come last. */
function authorsOf(owners: readonly LineOwner[], makers: readonly LineOwner[]): Author[] {
  const ownersByWorker = Map.groupBy(owners.filter(isKnown), ({ worker }) => worker)
  const committers = new Set(makers.filter(isKnown).map(({ worker }) => worker))
  return [
    ...[...ownersByWorker]
      .map(([worker, own]) => ({ worker, owners: own }))
      .sort((a, b) => b.owners.length - a.owners.length),
    ...[...committers].filter((worker) => !ownersByWorker.has(worker)).map((worker) => ({ worker, owners: [] })),
  ]
}

function isKnown(owner: LineOwner): owner is LineOwner & { worker: Worker } {
  return owner.worker !== undefined
}

type AuthorExplanation = { explanation: Explanation; passages(library: PassageLibrary): Promise<Passage[]> }

function lineWriterOf({ worker, owners }: Author, commits: readonly CommitHead[], facts: BlameFacts): LineWriter {
  const commitRun = facts.commitRuns.find(
    (one) => one.ref.id === worker.ref.id && commits.some(({ hash }) => hash.startsWith(one.hash)),
  )
  return { ref: worker.ref, edits: owners.flatMap(({ number }) => number ?? []), committed: commitRun?.ref.number }
}

type LineShare = Pick<Explanation, "level" | "lines" | "proved" | "likely">

function shareOf({ owners }: Author): LineShare {
  const { total, proved, likely } = countsOf(owners.map(({ level }) => level))
  return { level: proved > 0 ? "proved" : "likely", lines: total, proved, likely }
}

type ExplanationWithoutShare = {
  explanation: Omit<Explanation, keyof LineShare>
  passages: AuthorExplanation["passages"]
}

async function explainLocally(store: HistoryReader, written: LineWriter): Promise<ExplanationWithoutShare | undefined> {
  const reasons = await reasonsFor(store, written)
  if (!reasons) return undefined
  const { row, messages, facts } = reasons
  const quoted = new Set(quotedRefs(facts))
  return {
    explanation: { ...headOf(row), ...facts },
    passages: async (library) =>
      messages
        .filter(({ number }) => quoted.has(formatRef({ ...row.ref, number })))
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
      const passages: Passage[] = []
      for (const one of new Set(quotedRefs(facts)))
        passages.push(...(await library.read(one)).filter((passage) => passage.ref === one))
      return passages
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

function quotedRefs({ asked, decided, rejected, done = [], tests, open }: WhyFacts): string[] {
  return [...asked, ...decided, ...rejected, ...done, ...tests, ...open].map(({ ref }) => ref)
}

/** Lets the model write an explanation, and drops sentences that their sources do not support. Undefined if there is no model. */
async function writeProse(
  dex: Dex,
  input: WhyInput,
  commits: readonly CommitHead[],
  explanations: AuthorExplanation[],
  hub: TeamHub | undefined,
) {
  const { configuredModel } = await import("../tools/model.ts")
  const model = await configuredModel(dex, { model: input.model })
  if (!model) return undefined
  const scope = { among: "history" } as const
  const library = await openLibrary(dex, scope, hub && teamHistory(hub))
  const firstPassages: Passage[] = []
  for (const { passages } of explanations) firstPassages.push(...(await passages(library)))
  const subject = commits.length === 1 ? `the commit “${commits[0]!.subject}”` : input.target
  const loopResult = await runLoop(model, library, {
    question: `Why was ${subject} written? Say what was asked for, what was decided and rejected, how it was tested, and what is left open.`,
    firstPassages: firstPassages,
    caps: DEFAULT_CAPS,
    signal: dex.signal,
  })
  return {
    ...textWithSources(checkAnswer(loopResult.text, library), library),
    notes: [
      ...(loopResult.stopped === undefined ? [] : [`Stopped early: ${loopResult.stopped}.`]),
      ...library.unreadNotes,
    ],
  }
}
