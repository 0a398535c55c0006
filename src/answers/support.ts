import { cjkRuns, isStopword, pairsOfCharacters, splitIdentifier } from "../core/words.ts"
import { type Evidence, findSpecifics } from "./specifics.ts"

/**
 * The share of a sentence's words that must occur close together in the sources that it cites. Only words are checked here;
 * specifics.ts checks names, numbers and code.
 */
const MIN_SHARE = 0.45
/** How many words, not counting stopwords, are "close together". */
const WINDOW = 100

/** How many words after a negation are negated. */
const NEGATION_SCOPE = 2
/** How many words after a negation a negated word may be in the sources. */
const NEGATION_REACH = 3
/** The same distance for two adjacent words that an affirmative sentence repeats. */
const PAIR_REACH = 2
/**
 * The share of a clause that the sources must contain for its polarity to be compared. Below that, the clause is a paraphrase.
 */
const MIN_COMPARABLE_SHARE = 0.4
/** The share of a negated clause's words that the statement which negates the same must contain. Below that, it is about something else. */
const MIN_NEGATING_SHARE = 1 / 3

const FILLERS = new Set(
  (
    "now only also used use uses one just still already same every each any all some such other another instead rather while " +
    "because since both never nothing none nor cannot without nobody neither longer"
  ).split(" "),
)
const NEGATION = /^(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without)$/
/** Matches words that say that something is not, or is no longer, true. */
const NEGATIVE =
  /^(?:not|never|no|none|nothing|nobody|neither|nor|cannot|without|instead|unless|unknown|false|(?:skip|disabl|remov|avoid|miss|bypass|prevent|ignor|lack)\p{L}*)$/u
const CONTRACTION = /\b(do|does|did|is|are|was|were|wo|would|could|should|has|have|had|must|need)n['’]t\b/gi
const UNABLE = /\bcan['’]t\b/gi
const BETWEEN_CLAUSES = /[,;:.!?](?:\s|$)|\n|\s(?:and|but|because|since|so|when|if|while|which|who|that|as)\s/
const BETWEEN_STATEMENTS = /(?<=[.!?;])\s+|\s[—–]\s|;/
const LIST_ITEM = /^\s*(?:[-*+]|\d+[.)])\s/

/** Undefined if the sources support the sentence, judging by its words. */
export function findWordFault(sentence: string, sources: Evidence[]): "unrelated" | "contradicted" | undefined {
  const prose = sentence.replaceAll(/\[\d{1,3}\]/g, " ")
  if (!isAbout(prose, sources)) return "unrelated"
  const statements = sources.flatMap(({ text }) => statementsIn(text))
  const clauses = prose.split(BETWEEN_CLAUSES).map(wordsIn)
  const known = new Set(sources.flatMap(({ text, title }) => stemsIn(`${text} ${title}`)))
  const isRight = (clause: string[]) =>
    negationsIn(clause).every((at) => isNegatedThere(clause, at, known, statements)) &&
    (clause.some((word) => NEGATIVE.test(word)) || !isOnlyNegatedThere(clause, statements))
  return clauses.every(isRight) ? undefined : "contradicted"
}

function isAbout(sentence: string, sources: Evidence[]): boolean {
  const wanted = new Set(stemsIn(sentence))
  const found = new Set<string>()
  for (const { text, title, ref, date } of sources)
    for (const stem of [...densestPart(stemsIn(text), wanted), ...stemsIn(`${title} ${ref} ${date ?? ""}`)])
      if (wanted.has(stem)) found.add(stem)
  // Numbers and code were matched exactly, so each counts as one more word. Abbreviations are too common for that.
  const exact = new Set(
    findSpecifics(sentence).flatMap(({ wanted, isCode }) =>
      /\d/.test(wanted) || (isCode && !/^[A-Z]+s?$/.test(wanted)) ? wanted : [],
    ),
  )
  return found.size + exact.size >= MIN_SHARE * (wanted.size + exact.size)
}

/** The part of a text with the most wanted words. */
function densestPart(stems: string[], wanted: Set<string>): string[] {
  const counts = new Map<string, number>()
  let [most, end] = [0, 0]
  for (const [i, stem] of stems.entries()) {
    if (wanted.has(stem)) counts.set(stem, (counts.get(stem) ?? 0) + 1)
    const left = stems[i - WINDOW]
    if (left !== undefined && wanted.has(left)) {
      if (counts.get(left) === 1) counts.delete(left)
      else counts.set(left, counts.get(left)! - 1)
    }
    if (counts.size > most) [most, end] = [counts.size, i + 1]
  }
  return stems.slice(Math.max(0, end - WINDOW), end)
}

type Statement = { words: string[]; stems: Set<string> }

/** A line that only says "Do not:" negates every item of the list below it. */
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

/** The positions of "not", "never" and "no longer". "Cannot" is left out, because errors often say what cannot be done. */
function negationsIn(clause: string[]): number[] {
  return clause.flatMap((word, i) =>
    /^(?:not|never)$/.test(word) || (word === "no" && clause[i + 1] === "longer") ? [i] : [],
  )
}

/** True if the sources negate what the clause negates, or if the clause is a paraphrase and cannot be compared. */
function isNegatedThere(clause: string[], at: number, known: Set<string>, statements: Statement[]): boolean {
  const clauseStems = [...new Set(stemsOf(clause))]
  const comparable = clauseStems.filter((stem) => known.has(stem))
  if (comparable.length < MIN_COMPARABLE_SHARE * clauseStems.length) return true
  const after = clause
    .slice(at + 1)
    .filter(isContentWord)
    .slice(0, NEGATION_SCOPE)
  const scope = after.length > 0 ? after : clause.slice(0, at).filter(isContentWord).slice(-NEGATION_SCOPE)
  const scopeStems = stemsOf(scope)
  const isMeant =
    clause[at + 1] === "only" ? isOnly : (word: string) => isContentWord(word) && scopeStems.includes(stemOf(word))
  // "Not removed" is the opposite of "removed", so a negative word does not negate itself.
  const negation = scope.some((word) => NEGATIVE.test(word)) ? NEGATION : NEGATIVE
  return statements.some(
    ({ words, stems }) =>
      words.some(
        (word, i) =>
          isMeant(word) && words.slice(Math.max(0, i - NEGATION_REACH), i).some((before) => negation.test(before)),
      ) && comparable.filter((stem) => stems.has(stem)).length >= MIN_NEGATING_SHARE * comparable.length,
  )
}

function isOnly(word: string): boolean {
  return word === "only" || word === "just"
}

/** True if the sources contain two adjacent words of an affirmative clause only after "not" or "never". */
function isOnlyNegatedThere(clause: string[], statements: Statement[]): boolean {
  const stems = stemsOf(clause)
  const wanted = new Set(stems.slice(1).map((stem, i) => `${stems[i]} ${stem}`))
  const [negated, affirmed] = [new Set<string>(), new Set<string>()]
  for (const { words } of statements) {
    const contentWords = words.flatMap((word, at) => (isContentWord(word) ? [{ stem: stemOf(word), at }] : []))
    for (const [i, { stem, at }] of contentWords.entries()) {
      const pair = `${stem} ${contentWords[i + 1]?.stem}`
      if (!wanted.has(pair)) continue
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
    .replaceAll(UNABLE, "cannot")
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
