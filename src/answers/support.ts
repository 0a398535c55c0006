import { cjkRuns, isStopword, pairsOfCharacters, splitIdentifier } from "../core/words.ts"
import { type Evidence, findSpecifics } from "./specifics.ts"

/**
 * The share of a sentence's words that must occur close together in the sources that it cites. Only words are checked here;
 * specifics.ts checks names, numbers and code.
 */
const MIN_SHARE = 0.45
/** How many words, not counting stopwords, are "close together". */
const WINDOW_WORDS = 100

/** How many content words after a negation in the sentence count as negated. */
const NEGATION_SCOPE = 2
/** A word in the sources counts as negated if it is at most this many words after a negation. */
const NEGATION_REACH = 3
/** Like NEGATION_REACH, for the first word of a pair. Used to compare a clause without a negation with the sources. */
const PAIR_REACH = 2
/**
 * A clause is compared with the sources for negations only if they contain at least this share of its words. With less, it is a
 * paraphrase.
 */
const MIN_COMPARABLE_SHARE = 0.4
/**
 * A statement in the sources confirms a negation only if it contains at least this share of the comparable words of the negated
 * clause. With less, it is about something else.
 */
const MIN_NEGATING_SHARE = 1 / 3

const FILLERS = new Set(
  (
    "now only also used use uses one just still already same every each any all some such other another instead rather while " +
    "because since both never nothing none nor cannot without nobody neither longer"
  ).split(" "),
)
const NEGATION = /^(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without)$/
/** Matches words that negate, such as "never", and words for absence or prevention, such as "disabled". */
const NEGATIVE =
  /^(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without|instead|unless|unknown|false|(?:skip|disabl|remov|avoid|miss|bypass|prevent|ignor|lack)\p{L}*)$/u
const CONTRACTION = /\b(do|does|did|is|are|was|were|wo|would|could|should|has|have|had|must|need)n['’]t\b/gi
const CANNOT = /\bcan['’]t\b/gi
const BETWEEN_CLAUSES = /[,;:.!?](?:\s|$)|\n|\s(?:and|but|because|since|so|when|if|while|which|who|that|as)\s/
const BETWEEN_STATEMENTS = /(?<=[.!?;])\s+|\s[—–]\s|;/
const LIST_ITEM = /^\s*(?:[-*+]|\d+[.)])\s/

/** Compares the words of a sentence with its sources. Undefined if the sources support it. */
export function findWordFault(sentence: string, sources: Evidence[]): "unrelated" | "contradicted" | undefined {
  const prose = sentence.replaceAll(/\[\d{1,3}\]/g, " ")
  if (!isOnTopic(prose, sources)) return "unrelated"
  const statements = sources.flatMap(({ text }) => statementsIn(text))
  const clauses = prose.split(BETWEEN_CLAUSES).map(wordsIn)
  const sourceStems = new Set(sources.flatMap(({ text, title }) => stemsIn(`${text} ${title}`)))
  const isConsistent = (clause: string[]) =>
    negationsIn(clause).every((at) => isNegatedInSources(clause, at, sourceStems, statements)) &&
    (clause.some((word) => NEGATIVE.test(word)) || !isOnlyNegatedInSources(clause, statements))
  return clauses.every(isConsistent) ? undefined : "contradicted"
}

function isOnTopic(sentence: string, sources: Evidence[]): boolean {
  const sentenceStems = new Set(stemsIn(sentence))
  const foundStems = new Set<string>()
  for (const { text, title, ref, date } of sources)
    for (const stem of [...findDensestPart(stemsIn(text), sentenceStems), ...stemsIn(`${title} ${ref} ${date ?? ""}`)])
      if (sentenceStems.has(stem)) foundStems.add(stem)
  // Numbers and code were matched exactly, so each counts as one more word. Abbreviations are too common for that.
  const exactMatches = new Set(
    findSpecifics(sentence).flatMap(({ literal, isCode }) =>
      /\d/.test(literal) || (isCode && !/^[A-Z]+s?$/.test(literal)) ? literal : [],
    ),
  )
  return foundStems.size + exactMatches.size >= MIN_SHARE * (sentenceStems.size + exactMatches.size)
}

/** The window of a text that contains the largest number of distinct wanted words. */
function findDensestPart(stems: string[], wanted: Set<string>): string[] {
  const counts = new Map<string, number>()
  let [most, end] = [0, 0]
  for (const [i, stem] of stems.entries()) {
    if (wanted.has(stem)) counts.set(stem, (counts.get(stem) ?? 0) + 1)
    const leavingStem = stems[i - WINDOW_WORDS]
    if (leavingStem !== undefined && wanted.has(leavingStem)) {
      if (counts.get(leavingStem) === 1) counts.delete(leavingStem)
      else counts.set(leavingStem, counts.get(leavingStem)! - 1)
    }
    if (counts.size > most) [most, end] = [counts.size, i + 1]
  }
  return stems.slice(Math.max(0, end - WINDOW_WORDS), end)
}

type Statement = { words: string[]; stems: Set<string> }

/** Splits a text into statements. A line that only says "Do not:" negates every item of the list below it. */
function statementsIn(text: string): Statement[] {
  let isNegated = false
  return text.split(/\n+/).flatMap((line) => {
    const statements = line.split(BETWEEN_STATEMENTS).map(wordsIn)
    const isItem = LIST_ITEM.test(line)
    if (!isItem) isNegated = /^(?:do not|never)$/.test(statements.flat().join(" "))
    else if (isNegated) statements[0]!.unshift("not")
    return statements.map((words) => ({ words, stems: new Set(stemsOf(words)) }))
  })
}

/** The positions of "not", "never" and "no longer". "Cannot" is left out, because error messages often use it. */
function negationsIn(clause: string[]): number[] {
  return clause.flatMap((word, i) =>
    /^(?:not|never)$/.test(word) || (word === "no" && clause[i + 1] === "longer") ? [i] : [],
  )
}

/** True if the sources negate what the clause negates, or if the clause is a paraphrase and cannot be compared. */
function isNegatedInSources(
  clause: string[],
  position: number,
  sourceStems: Set<string>,
  statements: Statement[],
): boolean {
  const clauseStems = [...new Set(stemsOf(clause))]
  const comparable = clauseStems.filter((stem) => sourceStems.has(stem))
  if (comparable.length < MIN_COMPARABLE_SHARE * clauseStems.length) return true
  const wordsAfter = clause
    .slice(position + 1)
    .filter(isContentWord)
    .slice(0, NEGATION_SCOPE)
  const scope =
    wordsAfter.length > 0 ? wordsAfter : clause.slice(0, position).filter(isContentWord).slice(-NEGATION_SCOPE)
  const scopeStems = stemsOf(scope)
  const isInScope =
    clause[position + 1] === "only"
      ? isOnlyOrJust
      : (word: string) => isContentWord(word) && scopeStems.includes(stemOf(word))
  // "Not removed" is the opposite of "removed", so a negative word does not negate itself.
  const negation = scope.some((word) => NEGATIVE.test(word)) ? NEGATION : NEGATIVE
  return statements.some(
    ({ words, stems }) =>
      words.some(
        (word, i) =>
          isInScope(word) && words.slice(Math.max(0, i - NEGATION_REACH), i).some((before) => negation.test(before)),
      ) && comparable.filter((stem) => stems.has(stem)).length >= MIN_NEGATING_SHARE * comparable.length,
  )
}

function isOnlyOrJust(word: string): boolean {
  return word === "only" || word === "just"
}

/** True if the sources contain two adjacent words of an affirmative clause only after "not" or "never". */
function isOnlyNegatedInSources(clause: string[], statements: Statement[]): boolean {
  const stems = stemsOf(clause)
  const clausePairs = new Set(stems.slice(1).map((stem, i) => `${stems[i]} ${stem}`))
  const [negated, affirmed] = [new Set<string>(), new Set<string>()]
  for (const { words } of statements) {
    const contentWords = words.flatMap((word, at) => (isContentWord(word) ? [{ stem: stemOf(word), at }] : []))
    for (const [i, { stem, at }] of contentWords.entries()) {
      const pair = `${stem} ${contentWords[i + 1]?.stem}`
      if (!clausePairs.has(pair)) continue
      const isNegated = words.slice(Math.max(0, at - PAIR_REACH), at).some((word) => /^(?:not|never)$/.test(word))
      ;(isNegated ? negated : affirmed).add(pair)
    }
  }
  return [...negated].some((pair) => !affirmed.has(pair))
}

function stemsIn(text: string): string[] {
  return stemsOf(wordsIn(text))
}

function stemsOf(words: string[]): string[] {
  return words.filter(isContentWord).map(stemOf)
}

function wordsIn(text: string): string[] {
  const plain = text
    .replaceAll(CONTRACTION, "$1 not")
    .replaceAll(CANNOT, "cannot")
    .replaceAll(/(\d),(?=\d{3}\b)/g, "$1")
  return (plain.match(/[\p{L}\p{N}\p{M}]+/gu) ?? []).flatMap((word) => {
    const runs = cjkRuns(word)
    if (runs.length > 0) return runs.flatMap((run) => pairsOfCharacters(run).split(" "))
    return (splitIdentifier(word) ?? word).toLowerCase().split(" ")
  })
}

function isContentWord(word: string): boolean {
  return /\p{L}{3}|\p{N}{2}|[^\p{ASCII}]/u.test(word) && !isStopword(word) && !FILLERS.has(word)
}

/** The stem of a word, coarse enough for different forms of the word to match. */
function stemOf(word: string): string {
  const singular = word.length > 3 ? word.replace(/ies$/, "y").replace(/(?<!s)s$/, "") : word
  return singular.replace(/y$/, "i").slice(0, 5)
}
