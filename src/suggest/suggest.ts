import { errorLines } from "../core/error-text.ts"
import type { Item, ItemKind, Moment } from "../core/suggestion.ts"
import { estimateTokens } from "../core/tokens.ts"
import { subjectOf } from "../learn/decisions/subject.ts"
import { pathBelow } from "../learn/paths.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { adjustedRelevance } from "./feedback/feedback.ts"
import {
  findChange,
  findCommittedTogether,
  findNeighbourChange,
  findNews,
  isNews,
  isPushedNews,
} from "./finders/change.ts"
import { findDeprecated, findDocument, findUses, TESTS_PREFIX } from "./finders/code.ts"
import { findDecision, findNote, NOTE_PREFIX } from "./finders/decision.ts"
import type { Candidate, Finder, Session, Sources } from "./finders/finder.ts"
import { findFix } from "./finders/fix.ts"
import { findFailingTests, findOpenWork } from "./finders/open-work.ts"
import { findConversation, findConversationNaming, findRelated } from "./finders/related.ts"
import { type RelevanceWeights, relevanceOf } from "./relevance.ts"

/** The finders of each kind. Finders of kinds that are switched off do not run. */
const FINDERS: readonly [ItemKind, Finder][] = [
  ["fix", findFix],
  ["related_code", findRelated],
  ["related_code", findCommittedTogether],
  ["related_code", findUses],
  ["decision", findDecision],
  ["decision", findNote],
  ["warning", findDeprecated],
  ["warning", findFailingTests],
  ["change", findNeighbourChange],
  ["change", findChange],
  ["change", findNews],
  ["document", findDocument],
  ["conversation", findConversationNaming],
  ["conversation", findConversation],
  ["conversation", findOpenWork],
]

type SuggestOptions = {
  weights: RelevanceWeights
  /** Weights learned from this user's feedback. */
  learned?: Record<string, number>
  /** The minimum relevance of an item that is shown unasked. Pushed news and notes are exempt. */
  floor: number
  maxItems: number
  kinds?: ReadonlySet<ItemKind>
}

export const MAX_ITEMS = 5
export const MAX_SUGGESTED_TOKENS = 500
/** How many places are reserved for news: changes since somebody last looked. */
const MAX_NEWS = 2

/**
 * Returns the few items that matter now; may be empty. On request, they have a fixed order. Unasked, some news comes first, then
 * the rest, likeliest to be used first.
 */
export function suggestItems(sources: Sources, moment: Moment, session: Session, options: SuggestOptions): Item[] {
  const candidates = candidatesFor(sources, moment, session, options.kinds)
  const found = candidates.map((candidate) => itemOf(candidate, options))
  const maxItems = Math.min(options.maxItems, MAX_ITEMS)
  if (moment.event === "asked") return inOrder(found, maxItems)
  const items = found
    .filter((item) => item.relevance >= options.floor || isPushedNews(item) || item.key.startsWith(NOTE_PREFIX))
    .sort((a, b) => b.relevance - a.relevance)
  const news = items.filter(isNews).slice(0, MAX_NEWS)
  const others = items.filter((item) => !isNews(item) || !news.includes(item))
  return withinTokens(withoutRepeats([...news, ...others], "decision"), maxItems)
}

/**
 * Whether an item is shown in the silent week too, in which dex otherwise only records what it would say: fixes, notes, and decisions
 * that the developer typed.
 */
export function speaksFromFirstDay({ kind, key, features }: Item): boolean {
  return kind === "fix" || key.startsWith(NOTE_PREFIX) || (kind === "decision" && features.typed === 1)
}

/**
 * A place in the answer to somebody who asks, and the most rows that it has. They are in the finder's order, unless `rank` says
 * which come first.
 */
type Place = { includes(item: Item): boolean; most: number; rank?(item: Item): number }

/** The places, first to last. An item has the first place that includes it. */
const PLACES: readonly Place[] = [
  { includes: ({ kind }) => kind === "fix", most: 2 },
  { includes: ({ key }) => key.startsWith(NOTE_PREFIX), most: 3 },
  { includes: ({ kind }) => kind === "warning", most: 3 },
  { includes: ({ kind }) => kind === "decision", most: 3 },
  { includes: ({ kind }) => kind === "change", most: 3 },
  { includes: ({ kind }) => kind === "document", most: 2 },
  { includes: isUse, most: 3 },
  { includes: ({ key }) => key.startsWith(TESTS_PREFIX), most: 1 },
  { includes: ({ kind }) => kind === "related_code", most: 2, rank: shareOfEdits },
  { includes: ({ kind }) => kind === "conversation", most: 2 },
]

/** True for a row about one file that imports or uses what was asked about. */
function isUse({ features }: Item): boolean {
  return features.uses === 1 || features.imports === 1
}

/** Of the conversations or commits that changed the file, the share that changed the other one too. */
function shareOfEdits({ features }: Item): number {
  return features.together ?? features.committed_together ?? 0
}

/**
 * Returns the items in the order of their places, without repeats. If not all can be shown, each place gives one before any gives
 * a second.
 */
function inOrder(items: readonly Item[], maxItems: number): Item[] {
  const byPlace = Map.groupBy(items, (item) => PLACES.findIndex(({ includes }) => includes(item)))
  const keys = new Set<string>()
  const rows = PLACES.map(({ most, rank }, place) => {
    const found = byPlace.get(place) ?? []
    const ranked = rank ? found.toSorted((a, b) => rank(b) - rank(a)) : found
    const once = ranked.filter(({ key }) => !keys.has(key) && keys.add(key))
    return withoutRepeats(withoutRepeats(once, "decision"), "warning").slice(0, most)
  })
  const longest = Math.max(...rows.map(({ length }) => length))
  const rounds = Array.from({ length: longest }, (_, round) => rows.flatMap((row) => row.slice(round, round + 1)))
  const chosen = new Set(withinTokens(rounds.flat(), maxItems))
  return rows.flat().filter((item) => chosen.has(item))
}

/** The first of these items that fit. */
function withinTokens(items: Item[], maxItems: number): Item[] {
  const chosen: Item[] = []
  let tokens = 0
  for (const item of items) {
    if (chosen.length === maxItems) break
    if (tokens + item.estimated_tokens > MAX_SUGGESTED_TOKENS) continue
    tokens += item.estimated_tokens
    chosen.push(item)
  }
  return chosen
}

const MIN_ALIKE_SHARE = 0.6

/** Removes items of this kind that say the same thing as an earlier one in similar words. */
function withoutRepeats(items: Item[], only: ItemKind): Item[] {
  const shown: Set<string>[] = []
  return items.filter(({ kind, summary }) => {
    if (kind !== only) return true
    const words = new Set(subjectOf(summary))
    if (words.size > 0 && shown.some((before) => isAlike(before, words))) return false
    shown.push(words)
    return true
  })
}

function isAlike(a: Set<string>, b: Set<string>): boolean {
  const shared = [...a].filter((word) => b.has(word)).length
  return shared / (a.size + b.size - shared) >= MIN_ALIKE_SHARE
}

/** All possible items that were not shown before, each once; on request, two kinds may be about the same thing. */
export function candidatesFor(
  sources: Sources,
  moment: Moment,
  session: Session,
  kinds?: ReadonlySet<ItemKind>,
): Candidate[] {
  const localMoment = withRelativeFile(moment, sources.knowledge)
  if (!localMoment) return []
  const completeMoment = withPrompt(sources.knowledge, localMoment)
  const isEnabled = (kind: ItemKind) => kinds?.has(kind) ?? true
  const found = FINDERS.filter(([kind]) => isEnabled(kind)).flatMap(([, find]) =>
    find(sources, completeMoment, session),
  )
  const candidates = [...(sources.recalled ? [sources.recalled] : []), ...found].filter(({ kind }) => isEnabled(kind))
  const keys = new Set(session.seen)
  return candidates.filter((candidate) => {
    const { key } = candidate
    if (keys.has(key) || (moment.event === "prompt" && !mayHelpAtPrompt(candidate))) return false
    // On request, the place of an item decides which of two about the same thing is shown.
    if (moment.event !== "asked") keys.add(key)
    return true
  })
}

/**
 * Plans that an agent wrote for a file, and the files edited with it, helped at none of 200 genuine prompts that name a file. What the
 * developer said about it may.
 */
function mayHelpAtPrompt({ kind, features, key }: Candidate): boolean {
  if (kind === "related_code") return false
  return kind !== "decision" || key.startsWith(NOTE_PREFIX) || features.typed === 1 || features.recalled === 1
}

/** Makes the file's path relative to the project. Undefined if the file is elsewhere. */
function withRelativeFile(moment: Moment, knowledge: Knowledge): Moment | undefined {
  if (moment.file === undefined) return moment
  const file = pathBelow(moment.project, moment.file)
  return file === undefined ? undefined : { ...moment, file: knowledge.files.knownSpelling(moment.project, file) }
}

function itemOf({ names: _, ...candidate }: Candidate, { weights, learned = {} }: SuggestOptions): Item {
  const { kind, features, title, summary, reason, ref = "" } = candidate
  return {
    ...candidate,
    relevance: adjustedRelevance({ kind, features, relevance: relevanceOf(kind, features, weights) }, learned),
    estimated_tokens: estimateTokens(`${title}\n${summary}\n${reason}\n${ref}`),
  }
}

const MAX_CHARS = 20_000
const MAX_NAMES = 20
/**
 * The longest run of path characters that is examined. Without this limit, a long key or blob would be tried from each of its
 * characters.
 */
const MAX_RUN_LENGTH = 300
const PATH_RUN = /[\w@.+/-]+/g
const PATH = /[\w@.+-]*(?:\/[\w@.+-]+)+|[\w@+-]+(?:\.[\w+-]+)*\.[A-Za-z]\w{0,7}\b/g

/** Adds the error in the person's prompt, and the first file of the project that it names. */
function withPrompt(knowledge: Knowledge, moment: Moment): Moment {
  if (moment.prompt === undefined) return moment
  const prompt = moment.prompt.slice(0, MAX_CHARS)
  const file = moment.file ?? firstFile(knowledge, moment.project, prompt)
  return {
    ...moment,
    file,
    error: moment.error ?? (errorLines(prompt).length > 0 ? prompt : undefined),
  }
}

function firstFile(knowledge: Knowledge, project: string, prompt: string): string | undefined {
  for (const name of new Set(pathsInPrompt(prompt))) {
    const found = knowledge.files.findFile(project, name.replace(/^\.?\//, ""))
    if (found !== undefined) return found
  }
  return undefined
}

/** Returns what looks like a path or a file name, in the order of the prompt. */
export function pathsInPrompt(prompt: string): string[] {
  const names: string[] = []
  for (const [run] of prompt.matchAll(PATH_RUN)) {
    if (run.length <= MAX_RUN_LENGTH) names.push(...(run.match(PATH) ?? []))
    if (names.length >= MAX_NAMES) break
  }
  return names.slice(0, MAX_NAMES)
}
