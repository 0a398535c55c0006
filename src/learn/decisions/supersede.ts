import { parseCommitMarks, subjectKey } from "../../git/commit-marks.ts"
import type { MadeDecision } from "../../store/knowledge/decisions.ts"
import { isRetraction } from "./decided.ts"
import { stem, subjectOf } from "./subject.ts"

// Finds the decisions that a later decision on the same subject reverses.

/**
 * Compares one project's decisions, which must be in chronological order. Maps the key of each reversed decision to the key of
 * the one that replaces it.
 */
export function findReversals(decisions: MadeDecision[]): Map<string, string> {
  const reversed = new Map<string, string>()
  const earlierDecisions = new EarlierDecisions()
  for (const decision of decisions) {
    const later = analyse(decision)
    for (const earlier of earlierDecisions.candidatesFor(later)) {
      if (reversed.has(earlier.key) || earlier.key === later.key || !earlierDecisions.reverses(later, earlier)) continue
      reversed.set(earlier.key, later.key)
      if (later.retracts) break
    }
    earlierDecisions.add(later)
  }
  for (const [earlier, by] of rejectionsByNotes(decisions)) reversed.set(earlier, by)
  return reversed
}

/** Finds the decisions that a note explicitly rejects. It may name a commit by the beginning of its hash. */
function rejectionsByNotes(decisions: MadeDecision[]): [earlier: string, by: string][] {
  return decisions
    .filter(({ rejects }) => rejects !== undefined)
    .flatMap(({ key, rejects }) =>
      decisions
        .filter((earlier) => earlier.key !== key && isNamedBy(rejects!, earlier))
        .map((earlier): [string, string] => [earlier.key, key]),
    )
}

function isNamedBy(ref: string, { conversation, number }: MadeDecision): boolean {
  return ref.startsWith("git:") ? conversation.startsWith(ref) : `${conversation}#${number}` === ref
}

type AnalysedDecision = MadeDecision & {
  /** The distinct words. Empty if there are too few to compare. */
  words: Set<string>
  wordMask: WordMask
  subjectMask: WordMask
  /** The words of the decision that have an opposite. */
  wordsWithOpposite: string[]
  /** The opposites of the words, except those that the decision contains too. */
  opposites: string[]
  subjectWords: Set<string>
  /** The words of the decision that are not rejected, without those of the question that it answers. */
  chosenWords: Set<string>
  /** Words for things that the decision rejects: those after "not", "remove", "instead of", "from … to". */
  rejectedWords: Set<string>
  /** The subject of the commit that this decision reverts. */
  revertedSubject?: string
  retracts: boolean
}

/** The minimum share of common words for two decisions to be on the same subject. */
const MIN_SIMILARITY = 0.3
/** The minimum share of common words if both decisions are in one conversation. */
const MIN_SIMILARITY_IN_CONVERSATION = 0.15
/** Two decisions with at least this many common words are on the same subject, whatever their share is. */
const MANY_SHARED_WORDS = 4
/** A word in more than this many decisions, and in more than this share of them, is part of the project's vocabulary. */
const MAX_RARE_COUNT = 4
const MAX_RARE_SHARE = 0.08
/** The maximum number of messages between a decision and the "let's go back" that refers to it. */
const MAX_BETWEEN = 100

/**
 * The maximum number of earlier decisions that are kept for each word, conversation and commit. Older ones are rarely still in
 * force.
 */
const MAX_PER_WORD = 50

class EarlierDecisions {
  private readonly byWord = new Map<string, AnalysedDecision[]>()
  private readonly occurrences = new Map<string, number>()
  private readonly byConversation = new Map<string, AnalysedDecision[]>()
  private readonly byCommit = new Map<string, AnalysedDecision[]>()
  private count = 0

  add(decision: AnalysedDecision): void {
    this.count++
    for (const word of decision.subjectWords) {
      push(this.byWord, word, decision)
      this.occurrences.set(word, (this.occurrences.get(word) ?? 0) + 1)
    }
    push(this.byConversation, decision.conversation, decision)
    if (decision.committed !== undefined) push(this.byCommit, decision.committed, decision)
  }

  /** Returns the decisions that this one may refer to. For a retraction, the newest comes first. */
  candidatesFor(later: AnalysedDecision): AnalysedDecision[] {
    if (later.revertedSubject !== undefined)
      return [...(this.byCommit.get(subjectKey(later.revertedSubject)) ?? []), ...this.sharingWords(later)]
    if (later.retracts) return [...(this.byConversation.get(later.conversation) ?? [])].reverse()
    return this.sharingWords(later)
  }

  private sharingWords(later: AnalysedDecision): AnalysedDecision[] {
    const sharing = new Set<AnalysedDecision>()
    for (const word of later.subjectWords) for (const one of this.byWord.get(word) ?? []) sharing.add(one)
    return [...sharing].reverse()
  }

  reverses(later: AnalysedDecision, earlier: AnalysedDecision): boolean {
    const isSameConversation = later.conversation === earlier.conversation
    if (isSameConversation && later.number === earlier.number) return false
    if (later.revertedSubject !== undefined)
      return (
        firstLine(earlier.quote) === later.revertedSubject || earlier.committed === subjectKey(later.revertedSubject)
      )
    if (later.retracts) return !earlier.retracts && later.number - earlier.number <= MAX_BETWEEN
    if (differsOnlyInValues(later, earlier)) return true
    const hasOpposite = later.opposites.some((word) => earlier.wordsWithOpposite.includes(word))
    if (!hasOpposite && later.rejectedWords.size === 0) return false
    if (hasOpposite && maxSimilarity(later, earlier) < MIN_SIMILARITY) return false
    let shared = 0
    for (const word of later.subjectWords) if (earlier.subjectWords.has(word)) shared++
    const sharedDistinctiveWords = () =>
      [...later.subjectWords].filter((word) => earlier.subjectWords.has(word) && this.isDistinctive(word))
    const similarity = shared / (later.subjectWords.size + earlier.subjectWords.size - shared)
    const isSimilar =
      similarity >= (isSameConversation ? MIN_SIMILARITY_IN_CONVERSATION : MIN_SIMILARITY) ||
      shared >= MANY_SHARED_WORDS
    if (shared < 2 || !isSimilar) return false
    if (hasOpposite) return similarity >= MIN_SIMILARITY && sharedDistinctiveWords().length > 0
    return sharedDistinctiveWords().some((word) => later.rejectedWords.has(word) && earlier.chosenWords.has(word))
  }

  /** Whether a word shows that two decisions are about the same subject. Words that many decisions contain do not. */
  private isDistinctive(word: string): boolean {
    return (this.occurrences.get(word) ?? 0) <= Math.max(MAX_RARE_COUNT, this.count * MAX_RARE_SHARE)
  }
}

function push<K>(map: Map<K, AnalysedDecision[]>, key: K, value: AnalysedDecision): void {
  const list = map.get(key)
  if (!list) map.set(key, [value])
  else {
    if (list.length === MAX_PER_WORD) list.shift()
    list.push(value)
  }
}

const REJECTION =
  /(?:[,(] ?not|\bbut not|\band not|\binstead of|\brather than|\bremove|\bdrop|\bdelete|\bget rid of|\bno longer|\breplace|\bfrom(?=[^.\n]{1,60}? to )|\bstop|\bdon't (?:use|need|want)|\bdisable|\babandon|\binvert)\s+((?:[\w`"'./-]+\s+){0,3}[\w`"'./-]+)/gi
/** Matches phrases in which "that" is rejected; the rest of the sentence then says what "that" is. */
const REJECTION_OF_THAT = /\b(?:remove|drop|delete|get rid of|abandon|stop) (?:that|it|this|them)\b/i

function analyse(decision: MadeDecision): AnalysedDecision {
  const quote = decision.kind === "plan" ? firstLine(decision.quote) : decision.quote.slice(0, 2_000)
  const arrow = quote.lastIndexOf(" → ")
  const ownText = arrow < 0 ? quote : quote.slice(arrow + 3) // a question also names the options that were not chosen
  const subjectWords = new Set(decision.kind === "said" && arrow >= 0 ? subjectOf(ownText) : decision.subject)
  const rejectedWords = REJECTION_OF_THAT.test(ownText)
    ? subjectWords
    : new Set([...ownText.matchAll(REJECTION)].flatMap(([, after]) => subjectOf(after!)))
  const words = ownText.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const stems = new Set(words.map(stem))
  const revertedSubject =
    decision.kind === "revert" ? parseCommitMarks(firstLine(quote), "").reverts?.subject : undefined
  return {
    ...decision,
    revertedSubject,
    words: new Set(words.length < MIN_WORDS ? [] : words),
    wordMask: wordMaskOf(words),
    subjectMask: wordMaskOf(subjectWords),
    wordsWithOpposite: [...stems].filter((word) => OPPOSITES.has(word)),
    opposites: [...stems].flatMap((word) => OPPOSITES.get(word) ?? []).filter((word) => !stems.has(word)),
    subjectWords,
    chosenWords: new Set(subjectOf(ownText).filter((word) => !rejectedWords.has(word))),
    rejectedWords,
    retracts: isRetraction(ownText.trim()),
  }
}

function firstLine(quote: string): string {
  return quote.split("\n", 1)[0]!
}

/** An upper bound of the similarity of two subjects. */
function maxSimilarity(
  { subjectWords: a, subjectMask: aMask }: AnalysedDecision,
  { subjectWords: b, subjectMask: bMask }: AnalysedDecision,
): number {
  const shared = a.size - minMissingWords(aMask, bMask)
  return shared / (a.size + b.size - shared)
}

const MIN_WORDS = 5
const MIN_SENTENCE_SIMILARITY = 0.7
const MAX_OTHER_WORDS = 3

/** Whether the two decisions are the same sentence with different values. */
function differsOnlyInValues(
  { words: a, wordMask: aMask }: AnalysedDecision,
  { words: b, wordMask: bMask }: AnalysedDecision,
): boolean {
  if (a.size === 0 || b.size === 0 || Math.abs(a.size - b.size) > MAX_OTHER_WORDS) return false
  if (minMissingWords(aMask, bMask) > MAX_OTHER_WORDS) return false
  let onlyLater = 0
  for (const word of a) if (!b.has(word) && ++onlyLater > MAX_OTHER_WORDS) return false
  const shared = a.size - onlyLater
  const onlyEarlier = b.size - shared
  if (onlyLater === 0 || onlyEarlier === 0 || onlyEarlier > MAX_OTHER_WORDS) return false
  return shared / (a.size + b.size - shared) >= MIN_SENTENCE_SIMILARITY
}

/**
 * A mask of 64 bits with one bit set for each word. Comparing two masks is quick and rules out most pairs that share few words.
 */
type WordMask = readonly [low: number, high: number]

function wordMaskOf(words: Iterable<string>): WordMask {
  let [low, high] = [0, 0]
  for (const word of words) {
    let hash = 0
    for (let i = 0; i < word.length; i++) hash = Math.imul(hash ^ word.charCodeAt(i), 0x01000193)
    const bit = (hash ^ (hash >>> 15)) & 63
    if (bit < 32) low |= 1 << bit
    else high |= 1 << (bit - 32)
  }
  return [low, high]
}

/** A lower bound for the number of words of one decision that the other lacks. */
function minMissingWords(one: WordMask, other: WordMask): number {
  return bitsIn(one[0] & ~other[0]) + bitsIn(one[1] & ~other[1])
}

function bitsIn(value: number): number {
  let bits = 0
  for (let left = value; left !== 0; left &= left - 1) bits++
  return bits
}

const OPPOSITES = oppositesOf([
  "enable disable",
  "enabled disabled",
  "enable disabled",
  "enabled disable",
  "on off",
  "show hide",
  "hidden visible",
  "always never",
  "required optional",
  "public private",
  "strict lenient",
  "strict flexible",
])

function oppositesOf(pairs: string[]): Map<string, string[]> {
  const wordPairs = pairs
    .map((pair) => pair.split(" ").map(stem) as [string, string])
    .flatMap(([a, b]) => [[a, b] as const, [b, a] as const])
  return new Map(
    [...Map.groupBy(wordPairs, ([word]) => word)].map(([word, pairs]) => [word, pairs.map(([, other]) => other)]),
  )
}
