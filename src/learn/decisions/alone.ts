import { subjectOf } from "./subject.ts"
import { sentencesOf } from "./typed.ts"

// Checks whether a sentence is clear on its own. If it is not, finds the question or proposal that it answers.

/** A word that begins an answer. It counts if few words follow. */
const AGREES = /^(?:yes|yeah|yep|yup|sure|ok|okay|alright)\b/i
const SHORT_ANSWER = 10
const POINTS = new Set(["this", "that", "these", "those", "it", "they", "them"])
const POINTS_BACK =
  /^(?:[([]|its|instead|same|including|then|that way|like (?:this|that)|also it|but it)\b|\b(?:(?:the|this|that) (?:latter|former|first|second|third|other|one)(?: one| option)?|options? #?(?:\d+|[a-f])|(?:address|do|number|item|point|finding) #?\d+|in \d{2,3}|the (?:others|two|rest|same)|find out why)\b(?! (?:ms|seconds|minutes|days|lines|files|places|cases))|:\s*\d+\.?$/i
/** Words before which "that" is a conjunction. */
const JOINED = /^(?:we|i|you|the|they|he|once|if|when|there|all|any|every|each|our|my|your|an?|no|some|it)$/i
/** Things of which a project has only one, so that "the app" is clear. */
const ONLY_ONE = /^(?:app|application|project|repo|repository|codebase|class|tool|program|package|library)\b|[`_A-Z/]/
const CLAUSE = /^(?:and|but|so|because|since|when|if|which|we|i|it's|let's|lets|then|where|while|otherwise|once|or)$/i
/** The fewest content words of a clear sentence. With fewer, it names neither the thing nor the choice. */
const MIN_SUBJECT = 2
const [SMALL_SUBJECT, SHORT] = [3, 6]
/** The fewest content words in earlier clauses to which "it" can refer. */
const MIN_BEFORE = 2

/** Whether a reader understands the sentence without the text before it. */
export function isSelfContained(sentence: string): boolean {
  if (POINTS_BACK.test(sentence)) return false
  const words = sentence.split(/\s+/)
  if (isShortAnswer(sentence)) return false
  const about = subjectOf(sentence).length
  if (about < MIN_SUBJECT || (about < SMALL_SUBJECT && words.length < SHORT)) return false
  return words.every((word, i) => !pointsAt(word, words[i + 1]) || isNamedBefore(words, i))
}

function isNamedBefore(words: string[], at: number): boolean {
  const clause = words.findLastIndex(
    (word, i) => i <= at && (CLAUSE.test(word) || /[,;:)–—-]$/.test(words[i - 1] ?? "")),
  )
  return clause > 0 && subjectOf(words.slice(0, clause).join(" ")).length >= MIN_BEFORE
}

/** "it" and "this change" refer to something; "this app" and "make sure that we" do not. */
function pointsAt(word: string, next: string | undefined): boolean {
  const plain = word
    .toLowerCase()
    .replace(/[^a-z']+$/, "")
    .replace(/'(?:s|re|ll|d)$/, "")
  if (!POINTS.has(plain)) return false
  if (next === undefined || /[,.;:!]$/.test(word)) return true
  if (plain === "that" && JOINED.test(next)) return false
  return !((plain === "this" || plain === "that") && ONLY_ONE.test(next))
}

const MAX_CHARS = 20_000
const MAX_LENGTH = 300

/**
 * Finds the agent's question or proposal that this sentence answers: the option that it names; otherwise the last question,
 * together with the sentence before it if it only asks "shall I?"; otherwise the agent's last sentence on the same subject.
 * Returns undefined if none of these is clear on its own, or if the sentence is more than a "yes, do" and shares no word with
 * them.
 */
export function findQuestion(agentsText: string, sentence: string): string | undefined {
  const lines = agentsText
    .slice(-MAX_CHARS)
    .replace(/^[ \t]*(?:```|~~~)[\s\S]*?^[ \t]*(?:```|~~~)/gm, "")
    .split("\n")
    .map((line) => line.replaceAll(/\*\*|^[\s>#*-]+/g, "").trim())
    .filter((line) => line !== "")
  const [, named] = /\b(?:options?|approach|number|item|point)\s+#?(\d+|[a-f])\b/i.exec(sentence) ?? []
  if (named !== undefined) return lines.findLast((line) => isOption(line, named))?.slice(0, MAX_LENGTH)
  const sentences = lines.filter((line) => !line.startsWith("|")).flatMap(sentencesOf)
  const at = sentences.findLastIndex((one) => one.endsWith("?"))
  const question = at < 0 ? undefined : questionAt(sentences, at)
  if (question !== undefined && (isShortAnswer(sentence) || sharedWords(question, sentence) > 0))
    return question.slice(0, MAX_LENGTH)
  return sentences
    .findLast((one) => sharedWords(one, sentence) >= MIN_BEFORE && isSelfContained(one))
    ?.slice(0, MAX_LENGTH)
}

function isShortAnswer(sentence: string): boolean {
  return AGREES.test(sentence) && sentence.split(/\s+/).length < SHORT_ANSWER
}

function sharedWords(one: string, other: string): number {
  const about = new Set(subjectOf(other))
  return subjectOf(one).filter((word) => about.has(word)).length
}

function questionAt(sentences: string[], at: number): string | undefined {
  const [before, question] = [sentences[at - 1], sentences[at]!]
  if (isSelfContained(question)) return question
  return before !== undefined && isSelfContained(before) ? `${before} ${question}` : undefined
}

function isOption(line: string, name: string): boolean {
  const [, label, rest = ""] = /^(?:option\s+|approach\s+)?#?(\d+|[a-f])[.):\s—-]+(.*)$/i.exec(line) ?? []
  return label?.toLowerCase() === name.toLowerCase() && !line.endsWith("?") && subjectOf(rest).length >= MIN_BEFORE
}
