import { withoutUndefined } from "../core/defined.ts"
import { DexError } from "../core/error.ts"
import { collectionOf, formatRef, parseRef } from "../core/ref.ts"
import { estimateTokens } from "../core/tokens.ts"
import type { Model } from "../llm/model.ts"
import { redactText } from "../redact/redact.ts"
import { toJson } from "../render/json.ts"
import { safe } from "../render/terminal.ts"
import { parseQuery } from "../search/query.ts"
import type { Dex } from "../tools/context.ts"
import { containsAskedKind } from "./answering.ts"
import { type CheckedAnswer, type CitedPiece, checkCitations } from "./cited.ts"
import { type AnswerStatement, quotedText, quoteStatements } from "./extract.ts"
import { openLibrary, type PassageLibrary } from "./library.ts"
import { type Caps, DEFAULT_CAPS, type LoopResult, runLoop, type Step } from "./loop.ts"
import { teamHistory } from "./passage-source.ts"
import { dayOf, newestFirst, type Passage } from "./passages.ts"

export type AskInput = {
  query: string
  use_case?: string
  collections?: string[]
  no_global?: boolean
  in: "all" | "history" | "docs"
  model?: string
  quotes?: boolean
  max_tokens: number
  where?: "team"
}

type AnswerRequest = Pick<AskInput, "query" | "max_tokens">
export type AskAnswer = Awaited<ReturnType<typeof buildQuotedAnswer>>

/** How to report the progress of an answer, and how much the answer may cost. */
type AskHooks = { onStep?: (step: Step) => void; caps?: Caps }

export const NO_MODEL = "No model is set up, so these are quotes."
const NOT_FOUND = "No answer was found."
/** The maximum number of notes about older sources. The sources show their dates, so more notes would be noise. */
const MAX_OLDER_NOTES = 1
/** How many conversations are named if there is no answer. */
const MAX_LIKELY = 3

export async function run(dex: Dex, input: AskInput, hooks: AskHooks = {}): Promise<AskAnswer> {
  const scope = { among: input.in, collections: input.collections, noGlobal: input.no_global }
  if (input.where !== "team") return answerWith(dex, input, hooks, await openLibrary(dex, scope))
  if (input.in === "docs" || input.collections)
    throw new DexError("usage", "A team shares conversations but no documents. Omit --team to search documents.")
  const { withTeam } = await import("../tools/hub/ask-team.ts")
  return withTeam(dex, async (hub) => answerWith(dex, input, hooks, await openLibrary(dex, scope, teamHistory(hub))))
}

async function answerWith(dex: Dex, input: AskInput, hooks: AskHooks, library: PassageLibrary) {
  const statements = await library.statements(input.query)
  const quoteWith = (notes: string[]) => buildQuotedAnswer(input, library, statements, { extractive: true, notes })
  if (input.quotes) return quoteWith([])
  const { configuredModel } = await import("../tools/model.ts")
  const model = await configuredModel(dex, { model: input.model })
  if (!model) return quoteWith((await mayMentionModels(dex)) ? [NO_MODEL] : [])
  const run = await runLoop(model, library, {
    question: input.query,
    use_case: input.use_case,
    firstPassages: await firstPassages(library, input.query, statements),
    caps: hooks.caps ?? DEFAULT_CAPS,
    signal: dex.signal,
    onStep: hooks.onStep,
  })
  return buildModelAnswer(input, library, statements, model, run, checkAnswer(run.text, library))
}

/** False if the person said that they never want a model. */
async function mayMentionModels({ home }: Dex): Promise<boolean> {
  return (await import("../config/agent-offer.ts")).agentOfferAnswer(home.dir) !== "never"
}

/** The passages that the model sees first: those that search finds, and those of the best statements. */
export async function firstPassages(
  library: PassageLibrary,
  query: string,
  statements: AnswerStatement[],
): Promise<Passage[]> {
  const { found: passages } = await library.search(query)
  return [...new Set([...passages, ...statements.flatMap(({ candidate }) => candidate.cite() ?? [])])]
}

/** Redacts secrets in the model's text, and removes the sentences that their sources do not support. */
export function checkAnswer(text: string, library: PassageLibrary): CheckedAnswer {
  return checkCitations(
    redactText(
      safe(text)
        .replace(/^\s*NOT FOUND\.?\s*$/m, "")
        .trim(),
    ),
    library.passages.get,
  )
}

/** The sentences that were kept, as one text, and the passages that they cite. */
export function textWithSources({ kept }: CheckedAnswer, { passages }: PassageLibrary) {
  const numbers = [...new Set(kept.flatMap((one) => one.numbers))].sort((a, b) => a - b)
  return {
    text: kept.map((one) => one.text).join(" "),
    sources: numbers.flatMap((n) => passages.get(n) ?? []).map(({ n, ref }) => ({ n, ref })),
  }
}

export async function buildModelAnswer(
  input: AnswerRequest,
  library: PassageLibrary,
  statements: AnswerStatement[],
  model: Pick<Model, "id" | "used">,
  run: Omit<LoopResult, "text">,
  checked: CheckedAnswer,
) {
  const usage = modelUsageOf(model, run.steps.length)
  const stopNotes = run.stopped === undefined ? [] : [`Stopped early: ${run.stopped}.`]
  const partial = run.stopped !== undefined
  const dropNotes = droppedNotes(checked)
  if (checked.kept.length === 0 && dropNotes.length === 0 && !partial)
    return finishAnswer(input, library, [], statements, { extractive: false, notes: [], used: usage })
  const notes = [...stopNotes, ...dropNotes]
  if (checked.kept.length > 0)
    return finishAnswer(input, library, checked.kept, statements, {
      extractive: false,
      partial,
      doubtful: dropNotes.length > 0,
      notes,
      used: usage,
    })
  return buildQuotedAnswer(input, library, statements, {
    extractive: true,
    partial,
    notes: [...notes, ...(partial ? [] : ["The model's answer could not be verified; these are quotes."])],
    used: usage,
  })
}

export function modelUsageOf({ id, used }: Pick<Model, "id" | "used">, calls: number) {
  const { input, output, is_estimate, cost_usd } = used()
  return withoutUndefined({ model: id, calls, input_tokens: input, output_tokens: output, is_estimate, cost_usd })
}

/** Builds an answer from quotes of the best statements. Says that none was found if they are unlikely to answer the question. */
export async function buildQuotedAnswer(
  input: AnswerRequest,
  library: PassageLibrary,
  statements: AnswerStatement[],
  details: AnswerDetails,
) {
  if (!isUnanswered(input.query, statements))
    return finishAnswer(input, library, quoteStatements(statements), statements, details)
  const answer = await finishAnswer(input, library, [], statements, details)
  const likely = await likelyConversations(library, input.query)
  return likely.length > 0 ? { ...answer, likely } : answer
}

/** The conversations in which a person may look if there is no answer. */
async function likelyConversations(library: PassageLibrary, query: string) {
  const { found } = await library.search(query)
  const byConversation = new Map(found.map((passage) => [formatRef(passage.conversation), passage]))
  return [...byConversation.values()]
    .slice(0, MAX_LIKELY)
    .map((passage) => withoutUndefined({ ref: passage.ref, title: shortTitle(passage), date: dayOf(passage) }))
}

function shortTitle({ title }: Passage): string {
  return title.length > 60 ? `${title.slice(0, 59)}…` : title
}

type AnswerDetails = {
  extractive: boolean
  partial?: boolean
  /** True if some of the model's sentences were not supported, which makes the remaining ones less certain. */
  doubtful?: boolean
  notes: string[]
  used?: ReturnType<typeof modelUsageOf>
}

/** Builds the output with as many of the sentences as fit into `max_tokens`, and their sources. */
export async function finishAnswer(
  input: AnswerRequest,
  library: PassageLibrary,
  cited: CitedPiece[],
  statements: AnswerStatement[],
  details: AnswerDetails,
) {
  const older = await findOlderSources(library, citedBy(cited, library))
  const buildWith = (count: number) => {
    const sentences = cited.slice(0, count)
    const sources = citedBy(sentences, library)
    const omittedCount = cited.length - count
    const notes = [
      ...details.notes.filter((one) => sentences.length > 0 || one !== NO_MODEL),
      ...library.unreadNotes,
      ...(isOnlyFromWeb(sources) ? ["This comes only from text on the web."] : []),
      ...older
        .filter(({ n, newer }) => [n, newer].every((one) => sources.some((source) => source.n === one)))
        .slice(0, MAX_OLDER_NOTES)
        .map((one) => one.note),
      ...(omittedCount > 0
        ? [
            `${omittedCount} more ${details.extractive ? "quote" : "sentence"}${omittedCount === 1 ? " was" : "s were"} left out to stay within ${input.max_tokens} tokens.`,
          ]
        : []),
    ]
    const evidence = evidenceOf(statements)
    const confidence = confidenceOf(input.query, statements)
    const probability = sentences.length === 0 ? 0 : Number(probabilityOf(evidence).toFixed(2))
    return withoutUndefined({
      answer:
        sentences.length === 0 ? NOT_FOUND : sentences.map(({ text }) => text).join(details.extractive ? "\n" : " "),
      sources: sources.map(describeSource),
      confidence:
        sentences.length === 0 ? ("none" as const) : details.doubtful ? limitToMedium(confidence) : confidence,
      probability,
      extractive: details.extractive,
      partial: details.partial || undefined,
      note: notes.length > 0 ? notes.join(" ") : undefined,
      used: details.used,
    })
  }
  let count = cited.length
  while (count > 0 && estimateTokens(`${toJson(buildWith(count))}\n`) > input.max_tokens) count--
  return buildWith(count)
}

function citedBy(sentences: CitedPiece[], library: PassageLibrary): Passage[] {
  const numbers = [...new Set(sentences.flatMap((one) => one.numbers))]
  return numbers.flatMap((n) => library.passages.get(n) ?? []).sort((a, b) => a.n - b.n)
}

function describeSource(passage: Passage) {
  const { n, ref, origins, at, file, changed } = passage
  const query = file ? undefined : parseRef(ref)
  const collection = query?.source === "docs" ? collectionOf(query.prefix) : undefined
  return withoutUndefined({
    n,
    ref,
    collection,
    document: collection === undefined ? file?.path : query?.prefix.slice(collection.length + 1),
    section: (file ?? query)?.section,
    title: shortTitle(passage),
    origin: origins.join(", "),
    // The date of a project file says little about the age of its text.
    date: file ? undefined : dayOf({ at }),
    ...changed,
  })
}

function isOnlyFromWeb(sources: Passage[]): boolean {
  return sources.length > 0 && sources.every(({ origins }) => origins.every((origin) => origin === "web"))
}

function droppedNotes({ dropped }: CheckedAnswer): string[] {
  const reasons = {
    no_source: "without a source",
    wrong_quote: "with a quotation that is in no source",
    foreign_link: "with a link that is in no source",
    unsupported: "with a name, path, number or command that is in no source",
    unrelated: "about something other than its source",
    contradicted: "that its source seems to contradict",
  }
  return Object.entries(dropped).flatMap(([reason, count]) =>
    count > 0
      ? [
          `${count} ${count === 1 ? "sentence" : "sentences"} ${reasons[reason as keyof typeof reasons]} ${count === 1 ? "was" : "were"} left out.`,
        ]
      : [],
  )
}

export type OlderSource = { n: number; newer: number; note: string }

/** Finds cited passages that are older than another cited passage about the same document or edited file. */
async function findOlderSources(library: PassageLibrary, cited: Passage[]): Promise<OlderSource[]> {
  const isDocument = ({ conversation }: Passage) => conversation.source === "docs"
  const fromConversations = cited.filter((passage) => !isDocument(passage))
  const edited =
    fromConversations.length === 0
      ? []
      : await library.editedBy(fromConversations.map(({ conversation }) => conversation))
  const subjects = new Map([
    ...cited.filter(isDocument).map(({ n, conversation }) => [n, new Set([formatRef(conversation)])] as const),
    ...fromConversations.map(({ n }, i) => [n, new Set(edited[i])] as const),
  ])
  const olderSources: OlderSource[] = []
  const sorted = newestFirst(cited)
  for (const [i, old] of sorted.entries()) {
    const newer = sorted
      .slice(0, i)
      .find((one) => dayOf(one) !== dayOf(old) && findSharedFile(subjects, one, old) !== undefined)
    if (!newer || newer.at === undefined || old.at === undefined) continue
    const sharedFile = findSharedFile(subjects, newer, old)
    olderSources.push({
      n: old.n,
      newer: newer.n,
      note: `[${old.n}] (${dayOf(old)}) is older than [${newer.n}], which is also about ${sharedFile}.`,
    })
  }
  return olderSources
}

function findSharedFile(subjects: Map<number, Set<string>>, a: Passage, b: Passage): string | undefined {
  return [...(subjects.get(a.n) ?? [])].find((subject) => subjects.get(b.n)?.has(subject))
}

/** The evidence for the confidence. */
export type AnswerEvidence = {
  /** The share of the question that the first block contains, from 0 to 1. Rare words count more. */
  covered: number
}

export type Confidence = "high" | "medium" | "low"

/** `npm run eval:answers -- --fit` computes these from half of the labelled questions, some of which have no answer. */
const WEIGHTS = { base: -3.49, covered: 5.45 }
const MIN_HIGH_PROBABILITY = 0.8
const MIN_MEDIUM_PROBABILITY = 0.5
const MIN_WORDS_FOR_HIGH = 3
/** The lowest probability at which quotes are shown. Below it, "not found" is the better answer. */
const MIN_PROBABILITY = 0.22
/** The same if what is asked for, such as a number, is not in the first block. More of the question must be in it then. */
const MIN_PROBABILITY_OTHERWISE = 0.38

export function evidenceOf(statements: AnswerStatement[]): AnswerEvidence {
  return { covered: statements[0]?.covered ?? 0 }
}

/** The probability that one of the blocks contains the answer. It is computed from their words; no model is called. */
export function probabilityOf({ covered }: AnswerEvidence, weights = WEIGHTS): number {
  return 1 / (1 + Math.exp(-(weights.base + weights.covered * covered)))
}

export function isUnanswered(query: string, statements: AnswerStatement[]): boolean {
  const least = hasWantedKind(query, statements) ? MIN_PROBABILITY : MIN_PROBABILITY_OTHERWISE
  return probabilityOf(evidenceOf(statements)) < least
}

function hasWantedKind(query: string, [first]: AnswerStatement[]): boolean {
  if (first === undefined) return false
  const text = quotedText(first)
  return containsAskedKind(query, first.features.code === 1 ? `\`${text}\`` : text)
}

/**
 * Short questions never get "high": a block with both words of a two-word question may still not answer it. Neither does a block
 * without what is asked for, such as a reason for "why".
 */
function confidenceOf(query: string, statements: AnswerStatement[]): Confidence {
  const probability = probabilityOf(evidenceOf(statements))
  const isSure =
    probability >= MIN_HIGH_PROBABILITY &&
    parseQuery(query).words.length >= MIN_WORDS_FOR_HIGH &&
    hasWantedKind(query, statements)
  if (isSure) return "high"
  return probability >= MIN_MEDIUM_PROBABILITY ? "medium" : "low"
}

function limitToMedium(confidence: Confidence): Confidence {
  return confidence === "high" ? "medium" : confidence
}
