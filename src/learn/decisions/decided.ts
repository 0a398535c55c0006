import { findQuestion, isSelfContained } from "./alone.ts"
import { anyPhrase, SCOPE_PHRASES, STATING_PHRASES, TASK_PHRASES } from "./cues.ts"
import { subjectOf } from "./subject.ts"
import { FIRST_PERSON, isPastedText, LIST_MARK, MAX_SENTENCE_CHARS, sentencesOf, typedLines } from "./typed.ts"

// Separates sentences that state a lasting choice from those that ask, report or give a task.

const MAX_CHARS = 20_000

/** Beginnings of messages that agents write in the person's name. */
const WRAPPERS = [
  "Operation stopped by hook",
  "The user wants to clarify these questions.",
  "Full transcript available at:",
  "Read the output file to retrieve the result:",
]

export type DecidedQuote = { quote: string; origin: "person" | "agent" }

/** The longest message that a person types, in characters. A longer one was pasted. */
const MAX_MESSAGE_LENGTH = 5_000

/**
 * Finds and quotes the decisions in a person's message. A sentence that is not clear on its own is quoted together with the one
 * before it, or with the agent's question or proposal (`question → sentence`, which then contains the agent's words too), or not
 * at all.
 */
export function decisionsInMessage(text: string, agentsText = ""): DecidedQuote[] {
  const beginning = text
    .slice(0, MAX_CHARS)
    .trimStart()
    .replace(/^\/[\w:-]+\s+/, "") // the text after a slash command is the person's
  if (/^[/!]/.test(beginning) || WRAPPERS.some((words) => beginning.startsWith(words))) return []
  if (beginning.length > MAX_MESSAGE_LENGTH) return []
  const lines = typedLines(beginning)
  const wasPasted = isPastedText(beginning, lines)
  const isDecisive = (sentence: string) => (!wasPasted || FIRST_PERSON.test(sentence)) && isDecision(sentence)
  const quotes: (DecidedQuote & { last: string })[] = []
  let [previous, introduction]: (string | undefined)[] = []
  for (const [i, line] of lines.entries()) {
    if (!LIST_MARK.test(line)) introduction = undefined
    for (const [n, sentence] of sentencesOf(line).entries()) {
      if (n === 0 && introduction !== undefined) previous = introduction
      if (isDecisive(sentence)) {
        const newQuotes = sentence.endsWith(":")
          ? withFollowingLines(sentence, lines.slice(i + 1), isDecisive)
          : [sentence]
        for (const quote of newQuotes) addQuote(quotes, quote, previous, agentsText)
      }
      previous = sentence
      if (sentence.endsWith(":")) introduction = sentence
    }
  }
  return quotes.map(({ quote, origin }) => ({ quote, origin }))
}

function addQuote(
  quotes: (DecidedQuote & { last: string })[],
  quote: string,
  previous: string | undefined,
  agentsText: string,
): void {
  const last = quotes.at(-1)
  if (isSelfContained(quote)) quotes.push({ quote, origin: "person", last: quote })
  else if (last && last.last === previous) {
    last.quote += ` ${quote}`
    last.last = quote
  } else if (previous !== undefined && isSelfContained(previous) && !isQuestion(previous))
    quotes.push({ quote: `${previous} ${quote}`, origin: "person", last: quote })
  else {
    const question = findQuestion(agentsText, quote)
    if (question !== undefined) quotes.push({ quote: `${question} → ${quote}`, origin: "agent", last: quote })
  }
}

const RETRACTION =
  /^(?:(?:ok|okay|no|yeah|hmm|actually)[,\s]+){0,2}(?:let's |lets |we |please |i'd )?(?:go|switch|change|roll)(?:ing)? (?:it |that )?back(?: to (?:what|how) (?:we|it) (?:had|was))?[.!]?$|^(?:(?:ok|okay|no|yeah|hmm|actually)[,\s]+){0,2}(?:let's |lets |please )?(?:revert|undo|scrap|drop) (?:that|this|it|those|these)(?: changes?)?[.!]?$/i

/** Finds sentences that withdraw an earlier decision without naming it. */
export function retractionsIn(text: string): string[] {
  return typedLines(text.slice(0, MAX_CHARS))
    .flatMap(sentencesOf)
    .filter((sentence) => isRetraction(sentence))
}

export function isRetraction(sentence: string): boolean {
  return RETRACTION.test(sentence)
}

const MAX_SHOWN_LENGTH = 300

/**
 * Quotes a sentence such as "I want it to behave like:" together with the next lines. Returns nothing if the next line states a
 * decision itself.
 */
function withFollowingLines(
  sentence: string,
  followingLines: string[],
  isDecisive: (sentence: string) => boolean,
): string[] {
  if (sentencesOf(followingLines[0] ?? "").some(isDecisive)) return []
  let quoted = sentence
  for (const line of followingLines) {
    if (quoted.length + line.length > MAX_SHOWN_LENGTH) break
    quoted += `\n${line}`
  }
  return [quoted]
}

const QUESTION =
  /^\(?if we (?:do|did) (?:this|that)\b|\?\s*[)"'\p{Extended_Pictographic}\s]*$|^(?:(?:and|but|so|ok|okay|yes|yeah|or|also|then|now|hmm|question|q|actually|please|ah|oh|maybe|wait)[\s,:.-]+){0,3}(?:can|could|would|will|should|shall|do|does|did|is|are|was|were|isn't|aren't|has|have|why|what|when|where|which|who|how|any)\s+(?:you|we|i|it|this|that|they|there|the|these|those|about|come|is|are|do|does|kind|other|ideas?)\b/iu

const CUES = {
  states: STATING_PHRASES.map(([weight, phrases]) => [anyPhrase(phrases), weight] as const),
  supports: anyPhrase(SCOPE_PHRASES),
  tasks: anyPhrase(TASK_PHRASES),
}

/** Matches "no, …" and "yes, …", which support a decision if more text follows. */
const ANSWER_STARTS = [
  /^(?:no,|nope|nah|yes|yeah|ok|okay|sure)[,\s-]+(?=\S+\s+\S+\s+\S+)/i,
  /^(?:no|nope|nah)(?:,| (?:i|we|it|this|that|let's|don't|need|revert|just|not)\b)/i,
]

/** The minimum score of a decision. */
const MIN_SCORE = 2
/** The minimum number of content words of a decision. "Let's do that" decides something, but does not say what. */
const MIN_SUBJECT_WORDS = 2
/** A sentence with at least this score needs only one content word. */
const CLEAR_SCORE = 3
const OPTION_CHOICE = /\S\s+(?:\S+\s+)?options? (?:\d|[A-F]\b)/i

/** Whether the text is a question. It may lack the question mark. */
export function isQuestion(text: string): boolean {
  return QUESTION.test(text)
}

export function isDecision(sentence: string): boolean {
  if (sentence.length > MAX_SENTENCE_CHARS) return false
  if (QUESTION.test(sentence)) return false
  const statedWeight = CUES.states.reduce((sum, [pattern, weight]) => sum + (pattern.test(sentence) ? weight : 0), 0)
  if (statedWeight === 0) return false
  const supportCount = [CUES.supports, ...ANSWER_STARTS].filter((pattern) => pattern.test(sentence)).length
  const score = statedWeight + supportCount - (CUES.tasks.test(sentence) ? 3 : 0)
  if (score < MIN_SCORE) return false
  const subjectSize = subjectOf(sentence).length
  return subjectSize >= MIN_SUBJECT_WORDS || (subjectSize > 0 && score >= CLEAR_SCORE) || OPTION_CHOICE.test(sentence)
}

/** Matches a sentence with which an agent sums up what was settled. */
const RECAP =
  /^(?:settled|agreed|decided|final (?:rule|policy)|(?:to )?recap|amended|amending|so the rule is)\b[^.:]{0,80}:\s*\S/i
const OBJECTION = /^\s*(?:no\b|nope|not\b|wait|actually|hmm|almost|but\b|don't|stop|hold on|wrong)/i

/** Quotes the sentences with which an agent sums up what was settled. */
export function recapsIn(text: string): string[] {
  return typedLines(text.slice(0, MAX_CHARS))
    .flatMap((line) => line.split(/(?<=[.!?…])\s+(?=[A-Z])/))
    .filter((sentence) => RECAP.test(sentence))
}

/** Whether the person had said how it should be, and did not object to the agent's summary. */
export function isAssent(before: string, after = ""): boolean {
  return !isQuestion(before) && !OBJECTION.test(after)
}
