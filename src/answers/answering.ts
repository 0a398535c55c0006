import { splitIdentifier } from "../core/words.ts"
import { isAnnouncement, type TextStatement } from "./statements.ts"

/** A question, with a weight for each of its words. Rare words have higher weights. */
export type WeightedQuestion = { text: string; words: string[]; weights: number[] }

/** The features that predict how well a statement answers a question, each from 0 to about 1. */
export type Features = Record<(typeof FEATURES)[number], number>

export const FEATURES = [
  "own",
  "lead",
  "heading",
  "around",
  "passage",
  "pairs",
  "repeats",
  "narrates",
  "short",
  "code_span",
  "code_wanted",
  "number",
  "number_wanted",
  "path_wanted",
  "reason_wanted",
  "subject",
  "defines",
  "row",
  "code",
  "person",
  "plan",
  "document",
  "rank",
  "score",
] as const

/** A text with its statements, and its place in the search results. */
export type RankedText = {
  statements: TextStatement[]
  textKind: "agent" | "person" | "plan" | "document"
  /** The rank in the search results, from 0. */
  rank: number
  /** The score divided by the best score. */
  score: number
}

const COMMAND_QUESTION =
  /\bhow (?:do|can|should|to|would)\b|\b(?:command|run|flag|option|set|setting|env|variable|invoke|install)\b|\bwhat do i\b/i
const NUMBER_QUESTION =
  /\bhow (?:many|long|much|often|big|large|old)\b|\b(?:number|limit|timeout|version|default|size|threshold|port)\b/i
const PATH_QUESTION = /\bwhere\b|\b(?:file|folder|directory|path|branch|package|stored|lives?)\b/i
const REASON_QUESTION = /\bwhy\b|\b(?:reason|caused?|causes|purpose)\b|\bhow come\b/i
const REASON_WORD =
  /\b(?:because|since|so that|due to|to avoid|root cause|causes|caused|otherwise|prevents?|ensures?)\b|\bthe (?:issue|problem|reason|cause) (?:is|was)\b|\bwould (?:have|be|cause|break)\b/i
const DEFINITION_QUESTION = /^\s*(?:what(?:'s| is| are| does| do)|who is|explain|define)\b|\bmeans?\b/i
const DEFINITION =
  /^[^.]{0,60}?(?:\b(?:is|are|means|refers to|stands for|represents|describes)\b|[*`]\s*(?:[—–:-]|\())/i
const PATH =
  /(?:^|[\s`"'(])(?:~|\.{0,2}\/|[\w.-]+\/)[\w@~.<>{}-]*(?:\/[\w.<>{}@-]+)*|\b\w[\w-]*\.(?:go|ts|js|py|md|json|ya?ml|toml|sh|txt|jsonl|rs|rb|java|c|h|cpp)\b/

/** How many words at the start of a sentence are searched for its subject. */
const SUBJECT_WORDS = 4

export function featuresIn(question: WeightedQuestion, { statements, textKind, rank, score }: RankedText): Features[] {
  const stems = question.words.map(stemOf)
  const totalWeight = question.weights.reduce((sum, weight) => sum + weight, 0) || 1
  const containedByText = new Map<string, boolean[]>()
  const wordsContainedIn = (text: string) => {
    const contained = containedByText.get(text) ?? containedIn(wordsOf(text), stems)
    containedByText.set(text, contained)
    return contained
  }
  const wordLists = statements.map(({ text }) => wordsOf(text))
  const containedInEach = wordLists.map((words) => containedIn(words, stems))
  const containedAnywhere = stems.map((_, i) => containedInEach.some((contained) => contained[i]))
  const asksFor = {
    command: COMMAND_QUESTION.test(question.text),
    number: NUMBER_QUESTION.test(question.text),
    path: PATH_QUESTION.test(question.text),
    reason: REASON_QUESTION.test(question.text),
    definition: DEFINITION_QUESTION.test(question.text),
  }
  return statements.map(({ text, kind, lead, headings }, index) => {
    const covered = stems.map(() => false)
    /** The share of the question that these texts contain but the texts of earlier calls did not. */
    const newShare = (...containedPerText: (boolean[] | undefined)[]) => {
      let sum = 0
      for (const contained of containedPerText)
        for (const [i, isContained] of (contained ?? []).entries())
          if (isContained && !covered[i]) {
            covered[i] = true
            sum += question.weights[i]!
          }
      return sum / totalWeight
    }
    const words = wordLists[index]!
    const otherWords = words.filter((word) => !stems.some((stem) => isFormOfStem(word, stem)))
    const hasCodeSpan = kind === "code" || /`[^`]+`/.test(text)
    const asNumber = (isTrue: boolean) => (isTrue ? 1 : 0)
    const isSubject = words.slice(0, SUBJECT_WORDS).some((word) => stems.some((stem) => isFormOfStem(word, stem)))
    return {
      own: newShare(containedInEach[index]),
      lead: newShare(wordsContainedIn(lead)),
      heading: newShare(...headings.map(wordsContainedIn)),
      around: newShare(containedInEach[index - 1], containedInEach[index + 1], containedInEach[index - 2]),
      passage: newShare(containedAnywhere),
      pairs: adjacentPairShare(words, stems),
      repeats: words.length === 0 ? 1 : Math.max(0, 1 - otherWords.length / Math.min(12, words.length)),
      narrates: asNumber(isAnnouncement(text)),
      short: Math.max(0, 1 - words.length / 6),
      code_span: asNumber(hasCodeSpan),
      code_wanted: asNumber(hasCodeSpan && asksFor.command),
      number: asNumber(/\d/.test(text)),
      number_wanted: asNumber(asksFor.number && /\d/.test(text)),
      path_wanted: asNumber(asksFor.path && PATH.test(text)),
      reason_wanted: asNumber(asksFor.reason && REASON_WORD.test(text)),
      subject: asNumber(isSubject),
      defines: asNumber(asksFor.definition && isSubject && DEFINITION.test(text)),
      row: asNumber(kind === "row"),
      code: asNumber(kind === "code"),
      person: asNumber(textKind === "person"),
      plan: asNumber(textKind === "plan"),
      document: asNumber(textKind === "document"),
      rank: 1 / (1 + rank / 5),
      score,
    }
  })
}

/** True unless the question asks for something that the text does not have: a command, a number, a path or a reason. */
export function containsAskedKind(question: string, text: string): boolean {
  const hasCode = /`[^`]+`|^\s*(?:\$ |`{3})/m.test(text)
  return (
    (hasCode || !COMMAND_QUESTION.test(question)) &&
    (/\d/.test(text) || !NUMBER_QUESTION.test(question)) &&
    (PATH.test(text) || !PATH_QUESTION.test(question)) &&
    (REASON_WORD.test(text) || !REASON_QUESTION.test(question))
  )
}

/** The share of the question's words that the text contains, from 0 to 1. Rare words count more. */
export function shareContained(question: WeightedQuestion, text: string): number {
  const totalWeight = question.weights.reduce((sum, weight) => sum + weight, 0) || 1
  const isContained = containedIn(wordsOf(text), question.words.map(stemOf))
  return question.weights.reduce((sum, weight, i) => sum + (isContained[i] ? weight : 0), 0) / totalWeight
}

/** That share, plus a bonus for words that are adjacent in both. */
export function shareWithPairs(question: WeightedQuestion, text: string): number {
  return shareContained(question, text) + 0.3 * adjacentPairShare(wordsOf(text), question.words.map(stemOf))
}

export function wordsOf(text: string): string[] {
  return (text.match(/[\p{L}\p{N}]+/gu) ?? []).flatMap((word) => {
    const parts = splitIdentifier(word)
    return parts === undefined ? [word.toLowerCase()] : [word.toLowerCase(), ...parts.toLowerCase().split(" ")]
  })
}

function containedIn(words: string[], stems: string[]): boolean[] {
  const uniqueWords = [...new Set(words)]
  return stems.map((stem) => uniqueWords.some((word) => isFormOfStem(word, stem)))
}

/** A score from 0 to 1 for pairs of words that are adjacent in both the question and the text. Three or more pairs give 1. */
function adjacentPairShare(words: string[], stems: string[]): number {
  let pairCount = 0
  for (let i = 1; i < stems.length; i++)
    if (
      words.some((word, at) => at > 0 && isFormOfStem(word, stems[i]!) && isFormOfStem(words[at - 1]!, stems[i - 1]!))
    )
      pairCount++
  return Math.min(1, pairCount / 3)
}

/** The maximum number of letters that an ending may add to a stem. */
const MAX_ENDING_LENGTH = 3

function isFormOfStem(word: string, stem: string): boolean {
  if (stem.length >= 4 && word.startsWith(stem) && word.length - stem.length <= MAX_ENDING_LENGTH) return true
  return word === stem || stemOf(word) === stem
}

function stemOf(word: string): string {
  const lower = word.toLowerCase()
  const stem = lower.replace(/(?:ations?|ings?|ies|ied|ed|es|ly|s|e|y)$/, "")
  return stem.length >= 3 ? stem : lower
}
