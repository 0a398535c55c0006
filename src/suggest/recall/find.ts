import { DAY_MS } from "../../core/dates.ts"
import type { Moment } from "../../core/suggestion.ts"
import { topicWords } from "../../core/words.ts"
import { changedFilesText, rarity, type Topics, topicsOf } from "../../learn/changes.ts"
import type { MatchedCommit } from "../../store/knowledge/git.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { MatchedConversation } from "../../store/knowledge/turns.ts"

// Finds the earlier conversation or the commit that a prompt is about, or none. How well it matches says nothing: a long prompt matches anything.
// How much better it matches than the best conversation about something else does, so the thresholds below are all ratios.

export type Recalled = {
  conversation: MatchedConversation
  /**
   * True if the words alone set it apart, so that what was said in it can be quoted. Otherwise it is only likely to be the same work,
   * since it is recent or on the same branch.
   */
  isQuotable: boolean
  /** Other conversations about the same topic. A later one may have changed what was decided in an earlier one. */
  others: MatchedConversation[]
  /** The words of the prompt, each with how rare it is. */
  words: Map<string, number>
  topic: Map<string, number>
  /** Says how many files have changed since, if many have. */
  filesChanged?: string
}

/** The fewest different words that a prompt must have: "commit this" is about nothing in particular. */
const MIN_WORDS = 4
/** A few words can match one old conversation by chance. */
const MIN_WORDS_ALONE = 10
const MAX_WORDS = 100
/** A query reads each text that contains a word. The most frequent words, which say the least, are left out beyond this. */
const MAX_TEXTS_READ = 20_000

/** How much better than the best unrelated conversation the recalled one must match. Chosen on the half of the prompts for building. */
const MIN_MARGIN_ALONE = 1.75
const MIN_MARGIN_NEAR = 2
const MIN_MARGIN_COMMIT = 1.9
const MAX_COMMITS = 20
/** With fewer words than this, a recent conversation must match better by its words too. */
const ENOUGH_WORDS = 6
const MIN_WORD_MARGIN = 1.4

const SAME_FOLDER = 1.3
const SAME_BRANCH = 1.5

const MAIN_BRANCH = /^(?:main|master|trunk|develop|HEAD)$/

/** `folder` is the one in which the agent works now. */
export function recall(knowledge: Knowledge, moment: Moment, folder?: string): Recalled | undefined {
  const { prompt, project, source, session, branch, at } = moment
  const words = wordsOf(prompt)
  if (words.length < MIN_WORDS) return undefined
  const counts = countsOf(words, knowledge.turns.turnsWith(words))
  const filter = { ...(source && session ? { except: { source, id: session } } : {}), before: at }
  const matches = knowledge.turns.conversationsAbout(project, rarest(counts), filter)
  const [first] = matches
  if (!first) return undefined
  const topics = topicsOf(knowledge, project)
  const allTurns = knowledge.turns.turnCount()
  const near = (one: MatchedConversation) =>
    one.score *
    (1 + Math.exp(-daysBetween(one, at))) *
    (folder !== undefined && one.folder === folder ? SAME_FOLDER : 1) *
    (isSameBranch(one.branch, branch) ? SAME_BRANCH : 1)
  const byWords = ({ score }: MatchedConversation) => score
  const found = (conversation: MatchedConversation, isQuotable: boolean): Recalled => ({
    conversation,
    isQuotable,
    others: [],
    words: new Map(counts.map(({ word, count }) => [word, rarity(count, allTurns)])),
    topic: topics.of(conversation),
    filesChanged: changedFilesText(knowledge, conversation.conversation),
  })
  if (words.length >= MIN_WORDS_ALONE && marginOf(first, matches, topics, byWords) >= MIN_MARGIN_ALONE) {
    return { ...found(first, true), others: topics.sharing(first, filter) }
  }
  const likeliest = matches.reduce((best, one) => (near(one) > near(best) ? one : best))
  const isLikely = words.length >= ENOUGH_WORDS || marginOf(likeliest, matches, topics, byWords) >= MIN_WORD_MARGIN
  return isLikely && marginOf(likeliest, matches, topics, near) >= MIN_MARGIN_NEAR ? found(likeliest, false) : undefined
}

/** Returns the commit that the prompt is about, if one stands out among those that changed other files. */
export function recallCommit(knowledge: Knowledge, { prompt, project, at }: Moment): MatchedCommit | undefined {
  const words = wordsOf(prompt)
  if (words.length < MIN_WORDS_ALONE) return undefined
  const rare = rarest(countsOf(words, knowledge.git.commitsWith(words)))
  const [first, ...others] = knowledge.git.commitsAbout(project, rare, { before: at, limit: MAX_COMMITS })
  const unrelated = others.find(({ files }) => !files.some((file) => first!.files.includes(file)))
  return first && unrelated && first.score >= unrelated.score * MIN_MARGIN_COMMIT ? first : undefined
}

function wordsOf(prompt = ""): string[] {
  return [...new Set(topicWords(prompt))].slice(0, MAX_WORDS)
}

function daysBetween({ ended_at }: MatchedConversation, at: number): number {
  return Math.max(0, at - ended_at) / DAY_MS
}

/** Whether both are on this branch. Everything is on the main branch, so that one says nothing. */
export function isSameBranch(one: string | undefined, other: string | undefined): boolean {
  return one !== undefined && one === other && !MAIN_BRANCH.test(one)
}

/** Whether one follows the other within a day, in the same folder. */
function isSameDay(one: MatchedConversation, other: MatchedConversation): boolean {
  if (one.folder === undefined || one.folder !== other.folder) return false
  return Math.min(Math.abs(one.ended_at - other.started_at), Math.abs(other.ended_at - one.started_at)) < DAY_MS
}

/**
 * How many times better a conversation matches than the best one about something else. 0 if there is none to compare with: in a
 * history with one topic, everything matches.
 */
function marginOf(
  one: MatchedConversation,
  matches: readonly MatchedConversation[],
  topics: Topics,
  score: (one: MatchedConversation) => number,
): number {
  const isRelated = (other: MatchedConversation) =>
    isSameBranch(one.branch, other.branch) || isSameDay(one, other) || topics.isShared(one, other)
  const others = matches.filter((other) => other !== one).sort((a, b) => score(b) - score(a))
  const unrelated = others.find((other) => !isRelated(other))
  return unrelated === undefined ? 0 : score(one) / score(unrelated)
}

/** A word, and in how many texts it occurs. */
type Count = { word: string; count: number }

function countsOf(words: readonly string[], counts: readonly number[]): Count[] {
  return words.map((word, i) => ({ word, count: counts[i]! }))
}

/** As many of the rarest words as can be looked up quickly. */
function rarest(counts: readonly Count[]): string[] {
  let read = 0
  return [...counts]
    .sort((a, b) => a.count - b.count)
    .filter(({ count }) => {
      read += count
      return read <= MAX_TEXTS_READ
    })
    .map(({ word }) => word)
}
