import { parseCommitMarks, subjectKey } from "../../git/commit-marks.ts"
import type { MadeDecision } from "../../store/knowledge/decisions.ts"
import { isRetraction } from "./decided.ts"
import { stem, subjectOf } from "./subject.ts"

// Finds the decisions that a later decision on the same subject reverses.

type Made = MadeDecision

/**
 * Takes one project's decisions in order of time. Maps the key of each reversed decision to the key of the one that replaces it.
 */
export function findReversals(decisions: Made[]): Map<string, string> {
  const reversed = new Map<string, string>()
  const known = new Known()
  for (const decision of decisions) {
    const later = read(decision)
    for (const earlier of known.near(later)) {
      if (reversed.has(earlier.key) || earlier.key === later.key || !known.reverses(later, earlier)) continue
      reversed.set(earlier.key, later.key)
      if (later.retreats) break
    }
    known.add(later)
  }
  for (const [earlier, by] of rejected(decisions)) reversed.set(earlier, by)
  return reversed
}

/** Finds the decisions that a note explicitly rejects. It may name a commit by the beginning of its hash. */
function rejected(decisions: Made[]): [earlier: string, by: string][] {
  return decisions
    .filter(({ rejects }) => rejects !== undefined)
    .flatMap(({ key, rejects }) =>
      decisions
        .filter((earlier) => earlier.key !== key && isNamedBy(rejects!, earlier))
        .map((earlier): [string, string] => [earlier.key, key]),
    )
}

function isNamedBy(ref: string, { conversation, number }: Made): boolean {
  return ref.startsWith("git:") ? conversation.startsWith(ref) : `${conversation}#${number}` === ref
}

type Read = Made & {
  /** The distinct words. Empty if there are too few to compare. */
  words: Set<string>
  marks: Marks
  aboutMarks: Marks
  /** The words that have an opposite. */
  sides: string[]
  /** The opposites of the words, except those that the decision contains too. */
  opposites: string[]
  about: Set<string>
  /** Words for things that the decision chose, not only asked about. */
  for: Set<string>
  /** Words for things that the decision is against: those after "not", "remove", "instead of", "from … to". */
  against: Set<string>
  /** The subject of the commit that this decision reverts. */
  takesBack?: string
  retreats: boolean
}

/** The least share of common words in all words of two decisions on the same subject. */
const CLOSE = 0.3
const CLOSE_TOGETHER = 0.15
const MANY = 4
/** The number and the share of decisions above which a word is part of the project's vocabulary. */
const FEW = 4
const COMMON = 0.08
/** The most decisions between a decision and the "let's go back" that refers to it. */
const MAX_BETWEEN = 100

/** The most earlier decisions to compare for each word, newest first. Older ones are rarely in force. */
const MAX_PER_WORD = 50

class Known {
  private readonly byWord = new Map<string, Read[]>()
  private readonly occurrences = new Map<string, number>()
  private readonly byConversation = new Map<string, Read[]>()
  private readonly byCommit = new Map<string, Read[]>()
  private count = 0

  add(decision: Read): void {
    this.count++
    for (const word of decision.about) {
      push(this.byWord, word, decision)
      this.occurrences.set(word, (this.occurrences.get(word) ?? 0) + 1)
    }
    push(this.byConversation, decision.conversation, decision)
    if (decision.committed !== undefined) push(this.byCommit, decision.committed, decision)
  }

  /** Returns the decisions that this one may refer to, newest first. */
  near(later: Read): Read[] {
    if (later.takesBack !== undefined)
      return [...(this.byCommit.get(subjectKey(later.takesBack)) ?? []), ...this.sharing(later)]
    if (later.retreats) return [...(this.byConversation.get(later.conversation) ?? [])].reverse()
    return this.sharing(later)
  }

  private sharing(later: Read): Read[] {
    const found = new Set<Read>()
    for (const word of later.about) for (const one of this.byWord.get(word) ?? []) found.add(one)
    return [...found].reverse()
  }

  reverses(later: Read, earlier: Read): boolean {
    const together = later.conversation === earlier.conversation
    if (together && later.number === earlier.number) return false
    if (later.takesBack !== undefined)
      return firstLine(earlier.quote) === later.takesBack || earlier.committed === subjectKey(later.takesBack)
    if (later.retreats) return !earlier.retreats && later.number - earlier.number <= MAX_BETWEEN
    if (isOtherValue(later, earlier)) return true
    const opposite = later.opposites.some((word) => earlier.sides.includes(word))
    if (!opposite && later.against.size === 0) return false
    if (opposite && closest(later, earlier) < CLOSE) return false
    let shared = 0
    for (const word of later.about) if (earlier.about.has(word)) shared++
    const distinctive = () => [...later.about].filter((word) => earlier.about.has(word) && this.isDistinctive(word))
    const close = shared / (later.about.size + earlier.about.size - shared)
    const enough = close >= (together ? CLOSE_TOGETHER : CLOSE) || shared >= MANY
    if (shared < 2 || !enough) return false
    if (opposite) return close >= CLOSE && distinctive().length > 0
    return distinctive().some((word) => later.against.has(word) && earlier.for.has(word))
  }

  /** Whether a word shows that two decisions are about the same subject. Words that many decisions contain do not. */
  private isDistinctive(word: string): boolean {
    return (this.occurrences.get(word) ?? 0) <= Math.max(FEW, this.count * COMMON)
  }
}

function push<K>(map: Map<K, Read[]>, key: K, value: Read): void {
  const list = map.get(key)
  if (!list) map.set(key, [value])
  else {
    if (list.length === MAX_PER_WORD) list.shift()
    list.push(value)
  }
}

const AGAINST =
  /(?:[,(] ?not|\bbut not|\band not|\binstead of|\brather than|\bremove|\bdrop|\bdelete|\bget rid of|\bno longer|\breplace|\bfrom(?=[^.\n]{1,60}? to )|\bstop|\bdon't (?:use|need|want)|\bdisable|\babandon|\binvert)\s+((?:[\w`"'./-]+\s+){0,3}[\w`"'./-]+)/gi
/** Phrases after which the rest of the sentence says what "that" is. */
const AGAINST_THAT = /\b(?:remove|drop|delete|get rid of|abandon|stop) (?:that|it|this|them)\b/i

function read(decision: Made): Read {
  const quote = decision.kind === "plan" ? firstLine(decision.quote) : decision.quote.slice(0, 2_000)
  const arrow = quote.lastIndexOf(" → ")
  const own = arrow < 0 ? quote : quote.slice(arrow + 3) // a question also names the options that were not chosen
  const about = new Set(decision.kind === "said" && arrow >= 0 ? subjectOf(own) : decision.subject)
  const against = AGAINST_THAT.test(own)
    ? about
    : new Set([...own.matchAll(AGAINST)].flatMap(([, after]) => subjectOf(after!)))
  const words = own.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const stems = new Set(words.map(stem))
  const takesBack = decision.kind === "revert" ? parseCommitMarks(firstLine(quote), "").reverts?.subject : undefined
  return {
    ...decision,
    takesBack,
    words: new Set(words.length < MIN_WORDS ? [] : words),
    marks: marksOf(words),
    aboutMarks: marksOf(about),
    sides: [...stems].filter((word) => OPPOSITES.has(word)),
    opposites: [...stems].flatMap((word) => OPPOSITES.get(word) ?? []).filter((word) => !stems.has(word)),
    about,
    for: new Set(subjectOf(own).filter((word) => !against.has(word))),
    against,
    retreats: isRetraction(own.trim()),
  }
}

function firstLine(quote: string): string {
  return quote.split("\n", 1)[0]!
}

/** An upper bound of the similarity of two subjects. */
function closest({ about: a, aboutMarks }: Read, { about: b, aboutMarks: others }: Read): number {
  const shared = a.size - atLeastMissing(aboutMarks, others)
  return shared / (a.size + b.size - shared)
}

const MIN_WORDS = 5
const ALIKE = 0.7
const MAX_OTHER_WORDS = 3

/** Whether both decisions are the same sentence with different values. */
function isOtherValue({ words: a, marks }: Read, { words: b, marks: others }: Read): boolean {
  if (a.size === 0 || b.size === 0 || Math.abs(a.size - b.size) > MAX_OTHER_WORDS) return false
  if (atLeastMissing(marks, others) > MAX_OTHER_WORDS) return false
  let onlyLater = 0
  for (const word of a) if (!b.has(word) && ++onlyLater > MAX_OTHER_WORDS) return false
  const shared = a.size - onlyLater
  const onlyEarlier = b.size - shared
  if (onlyLater === 0 || onlyEarlier === 0 || onlyEarlier > MAX_OTHER_WORDS) return false
  return shared / (a.size + b.size - shared) >= ALIKE
}

/**
 * A bit mask of 64 bits with one bit set for each word, so that most pairs that share little need no comparison of their words.
 */
type Marks = readonly [low: number, high: number]

function marksOf(words: Iterable<string>): Marks {
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
function atLeastMissing(one: Marks, other: Marks): number {
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
  const both = pairs
    .map((pair) => pair.split(" ").map(stem) as [string, string])
    .flatMap(([a, b]) => [[a, b] as const, [b, a] as const])
  return new Map([...Map.groupBy(both, ([word]) => word)].map(([word, of]) => [word, of.map(([, other]) => other)]))
}
