import { errorLines } from "../core/error-text.ts"
import type { Item, ItemKind, Moment } from "../core/suggestion.ts"
import { estimateTokens } from "../core/tokens.ts"
import { subjectOf } from "../learn/decisions/subject.ts"
import { pathBelow } from "../learn/paths.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { adjustedRelevance } from "./feedback/feedback.ts"
import { findChange, findCommittedTogether, findNews, isNews, isPushedNews } from "./finders/change.ts"
import { findDeprecated, findDocument, findUses } from "./finders/code.ts"
import { findDecision, findNote, NOTE_PREFIX } from "./finders/decision.ts"
import type { Candidate, Finder, Sources } from "./finders/finder.ts"
import { findFix } from "./finders/fix.ts"
import { findFailingTests, findOpenWork } from "./finders/open-work.ts"
import { findConversation, findRelated } from "./finders/related.ts"
import { type RelevanceWeights, relevanceOf } from "./relevance.ts"
import type { Session } from "./session.ts"

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
  ["change", findChange],
  ["change", findNews],
  ["document", findDocument],
  ["conversation", findConversation],
  ["conversation", findOpenWork],
]

type SuggestOptions = {
  weights: RelevanceWeights
  /** Weights learned from this user's feedback. */
  learned?: Record<string, number>
  /** Items with a lower relevance are left out. */
  floor: number
  most: number
  kinds?: ReadonlySet<ItemKind>
}

export const MAX_ITEMS = 5
export const MAX_SUGGESTED_TOKENS = 500
/** How many places are reserved for news: what happened since somebody last looked. */
const MAX_NEWS = 2

/** The few items that matter now: news first, then the others, likeliest to be used first. May be empty. */
export function suggestItems(sources: Sources, moment: Moment, session: Session, options: SuggestOptions): Item[] {
  const items = candidatesFor(sources, moment, session, options.kinds)
    .map((candidate) => itemOf(candidate, options))
    .filter((item) => item.relevance >= options.floor || isPushedNews(item) || item.key.startsWith(NOTE_PREFIX))
    .sort((a, b) => b.relevance - a.relevance)
  const news = items.filter(isNews).slice(0, MAX_NEWS)
  const others = items.filter((item) => !isNews(item) || !news.includes(item))
  return withinTokens(withoutRepeats([...news, ...others]), Math.min(options.most, MAX_ITEMS))
}

const MIN_ALIKE_SHARE = 0.6

/** Removes decisions that say the same as a more relevant one in similar words. */
function withoutRepeats(items: Item[]): Item[] {
  const shown: Set<string>[] = []
  return items.filter(({ kind, summary }) => {
    if (kind !== "decision") return true
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

/** All possible items that were not shown before, each once. */
export function candidatesFor(
  sources: Sources,
  moment: Moment,
  session: Session,
  kinds?: ReadonlySet<ItemKind>,
): Candidate[] {
  const here = withRelativeFile(moment, sources.knowledge)
  if (!here) return []
  const about = withPrompt(sources.knowledge, here)
  const isEnabled = (kind: ItemKind) => kinds?.has(kind) ?? true
  const found = FINDERS.filter(([kind]) => isEnabled(kind))
    .flatMap(([, find]) => find(sources, about, session))
    .filter(({ kind }) => isEnabled(kind))
  const keys = new Set(session.seen)
  return found.filter(({ key }) => {
    if (keys.has(key)) return false
    keys.add(key)
    return true
  })
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

function withinTokens(items: Item[], most: number): Item[] {
  const chosen: Item[] = []
  let tokens = 0
  for (const item of items) {
    if (chosen.length === most) break
    if (tokens + item.estimated_tokens > MAX_SUGGESTED_TOKENS) continue
    tokens += item.estimated_tokens
    chosen.push(item)
  }
  return chosen
}

const MAX_CHARS = 20_000
const MAX_NAMES = 20
/**
 * The longest run of path characters that is examined. Without this limit, a long key or blob would be tried from each of its
 * characters.
 */
const MAX_RUN_LENGTH = 300
const RUN = /[\w@.+/-]+/g
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

/** Everything that looks like a path or a file name, in order. */
export function pathsInPrompt(prompt: string): string[] {
  const names: string[] = []
  for (const [run] of prompt.matchAll(RUN)) {
    if (run.length <= MAX_RUN_LENGTH) names.push(...(run.match(PATH) ?? []))
    if (names.length >= MAX_NAMES) break
  }
  return names.slice(0, MAX_NAMES)
}
