import { subjectOf } from "./subject.ts"
import { sentencesOf } from "./typed.ts"

// Checks whether a sentence is clear on its own. If it is not, finds the question or proposal that it answers.

/** Matches a word that begins an answer. A sentence counts as an answer only if few words follow. */
const AGREEMENT = /^(?:yes|yeah|yep|yup|sure|ok|okay|alright)\b/i
const MAX_SHORT_ANSWER_WORDS = 10
const POINTING_WORDS = new Set(["this", "that", "these", "those", "it", "they", "them"])
const POINTING_PHRASE =
  /^(?:[([]|its|instead|same|including|then|that way|like (?:this|that)|also it|but it)\b|\b(?:(?:the|this|that) (?:latter|former|first|second|third|other|one)(?: one| option)?|options? #?(?:\d+|[a-f])|(?:address|do|number|item|point|finding) #?\d+|in \d{2,3}|the (?:others|two|rest|same)|find out why)\b(?! (?:ms|seconds|minutes|days|lines|files|places|cases))|:\s*\d+\.?$/i
/** Matches a word after "that" which shows that "that" is a conjunction. */
const WORD_AFTER_CONJUNCTION =
  /^(?:we|i|you|the|they|he|once|if|when|there|all|any|every|each|our|my|your|an?|no|some|it)$/i
/** Matches a thing of which a project has only one, so that "this app" is clear. */
const UNIQUE_THING =
  /^(?:app|application|project|repo|repository|codebase|class|tool|program|package|library)\b|[`_A-Z/]/
const CLAUSE_START =
  /^(?:and|but|so|because|since|when|if|which|we|i|it's|let's|lets|then|where|while|otherwise|once|or)$/i
/** The minimum number of content words of a clear sentence. With fewer, it names neither the thing nor the choice. */
const MIN_SUBJECT_WORDS = 2
/** A sentence with at least this many content words is clear, however short it is. */
const MIN_SUBJECT_WORDS_IF_SHORT = 3
/** A sentence with fewer content words than MIN_SUBJECT_WORDS_IF_SHORT is clear only if it has at least this many words. */
const MIN_SENTENCE_WORDS = 6
/** The minimum number of content words that an earlier clause needs so that "it" can refer to it. */
const MIN_REFERENT_WORDS = 2

/** Whether a reader understands the sentence without the text before it. */
export function isSelfContained(sentence: string): boolean {
  if (POINTING_PHRASE.test(sentence)) return false
  const words = sentence.split(/\s+/)
  if (isShortAnswer(sentence)) return false
  const subjectSize = subjectOf(sentence).length
  if (
    subjectSize < MIN_SUBJECT_WORDS ||
    (subjectSize < MIN_SUBJECT_WORDS_IF_SHORT && words.length < MIN_SENTENCE_WORDS)
  )
    return false
  return words.every((word, i) => !pointsToOtherText(word, words[i + 1]) || hasReferentBefore(words, i))
}

function hasReferentBefore(words: string[], at: number): boolean {
  const clause = words.findLastIndex(
    (word, i) => i <= at && (CLAUSE_START.test(word) || /[,;:)–—-]$/.test(words[i - 1] ?? "")),
  )
  return clause > 0 && subjectOf(words.slice(0, clause).join(" ")).length >= MIN_REFERENT_WORDS
}

/** "it" and "this change" refer to something; "this app" and "make sure that we" do not. */
function pointsToOtherText(word: string, next: string | undefined): boolean {
  const plain = word
    .toLowerCase()
    .replace(/[^a-z']+$/, "")
    .replace(/'(?:s|re|ll|d)$/, "")
  if (!POINTING_WORDS.has(plain)) return false
  if (next === undefined || /[,.;:!]$/.test(word)) return true
  if (plain === "that" && WORD_AFTER_CONJUNCTION.test(next)) return false
  return !((plain === "this" || plain === "that") && UNIQUE_THING.test(next))
}

const MAX_AGENT_TEXT_CHARS = 20_000
const MAX_QUESTION_LENGTH = 300

/**
 * Finds the agent's question or proposal that this sentence answers. That is the option that the sentence names; otherwise the
 * last question, together with the sentence before it if the question is not clear on its own; otherwise the agent's last
 * sentence on the same subject. A question counts only if the sentence is a short answer or shares a word with it. Returns
 * undefined if nothing is found.
 */
export function findQuestion(agentsText: string, sentence: string): string | undefined {
  const lines = agentsText
    .slice(-MAX_AGENT_TEXT_CHARS)
    .replace(/^[ \t]*(?:```|~~~)[\s\S]*?^[ \t]*(?:```|~~~)/gm, "")
    .split("\n")
    .map((line) => line.replaceAll(/\*\*|^[\s>#*-]+/g, "").trim())
    .filter((line) => line !== "")
  const [, optionName] = /\b(?:options?|approach|number|item|point)\s+#?(\d+|[a-f])\b/i.exec(sentence) ?? []
  if (optionName !== undefined)
    return lines.findLast((line) => isOption(line, optionName))?.slice(0, MAX_QUESTION_LENGTH)
  const sentences = lines.filter((line) => !line.startsWith("|")).flatMap(sentencesOf)
  const questionIndex = sentences.findLastIndex((one) => one.endsWith("?"))
  const question = questionIndex < 0 ? undefined : questionAt(sentences, questionIndex)
  if (question !== undefined && (isShortAnswer(sentence) || sharedWords(question, sentence) > 0))
    return question.slice(0, MAX_QUESTION_LENGTH)
  return sentences
    .findLast((one) => sharedWords(one, sentence) >= MIN_REFERENT_WORDS && isSelfContained(one))
    ?.slice(0, MAX_QUESTION_LENGTH)
}

function isShortAnswer(sentence: string): boolean {
  return AGREEMENT.test(sentence) && sentence.split(/\s+/).length < MAX_SHORT_ANSWER_WORDS
}

function sharedWords(one: string, other: string): number {
  const subjectWords = new Set(subjectOf(other))
  return subjectOf(one).filter((word) => subjectWords.has(word)).length
}

function questionAt(sentences: string[], at: number): string | undefined {
  const [previous, question] = [sentences[at - 1], sentences[at]!]
  if (isSelfContained(question)) return question
  return previous !== undefined && isSelfContained(previous) ? `${previous} ${question}` : undefined
}

function isOption(line: string, name: string): boolean {
  const [, label, rest = ""] = /^(?:option\s+|approach\s+)?#?(\d+|[a-f])[.):\s—-]+(.*)$/i.exec(line) ?? []
  return (
    label?.toLowerCase() === name.toLowerCase() && !line.endsWith("?") && subjectOf(rest).length >= MIN_REFERENT_WORDS
  )
}
