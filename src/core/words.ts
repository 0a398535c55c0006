// Splits the words that developers write into the words that a full-text index needs.

/** Words that occur in nearly every message, so they do not help to find one. */
const STOPWORDS = new Set(
  (
    "a about an and are as at be been but by can could did do does for from had has have he her him his how i if in into is it its " +
    "many me more much my no not of on or our she should so than that the their them then there these they this to was we were " +
    "what when where which who whom whose why will with would you your"
  ).split(" "),
)

export function isStopword(word: string): boolean {
  return STOPWORDS.has(word.toLowerCase())
}

const MAX_IDENTIFIER_LENGTH = 64
/**
 * Matches an identifier in camel case, or one that contains a word in capitals. Limits its length, because a text may be one long
 * word.
 */
const IDENTIFIER =
  /(?<![A-Za-z])[A-Za-z][A-Za-z0-9]{0,62}[a-z0-9][A-Z][A-Za-z0-9]*|(?<![A-Z])[A-Z]{2,64}[a-z][A-Za-z0-9]*/g

/** Splits `readFileSync` into `read File Sync`. Returns undefined if there is nothing to split. */
export function splitIdentifier(word: string): string | undefined {
  if (word.length > MAX_IDENTIFIER_LENGTH) return undefined
  const parts = word.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2")
  return parts === word ? undefined : parts
}

const CJK = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Hangul}ー]+/gu

/** Splits text without spaces into overlapping pairs of characters: 東京都 becomes 東京 京都. */
export function pairsOfCharacters(run: string): string {
  const characters = [...run]
  if (characters.length < 2) return run
  return characters
    .slice(1)
    .map((character, i) => characters[i]! + character)
    .join(" ")
}

export function cjkRuns(text: string): string[] {
  return text.match(CJK) ?? []
}

/** Returns words that a tokenizer would not see: the parts of identifiers, each once, and pairs of CJK characters. */
export function hiddenWords(text: string): string {
  const words = new Set<string>()
  for (const word of text.match(IDENTIFIER) ?? []) {
    const parts = splitIdentifier(word)
    if (parts !== undefined) words.add(parts)
  }
  for (const run of cjkRuns(text)) words.add(pairsOfCharacters(run))
  return [...words].join("\n")
}

/** Words that say nothing about the topic of a text, besides the stop words of search. */
const EMPTY_WORDS = new Set(
  (
    "after again against all any because been before being below between both did doing done down during each few first further get go " +
    "here just know let lets like look made make may me might most must myself need new nor now off ok okay once one only other out over " +
    "own please same see some such sure take than these those through too try two under until up use used using very via want while " +
    "yes yet you"
  ).split(" "),
)
const ENDINGS = ["ingly", "edly", "ings", "ing", "ies", "ied", "ed", "es", "ly", "s"]
const MIN_STEM_LENGTH = 3
const MAX_TOPIC_WORD_LENGTH = 40

/** Returns the words that show what a text is about, without their endings, in order and with repeats. */
export function topicWords(text: string): string[] {
  const words: string[] = []
  for (const token of text.match(/[\p{L}\p{N}]+/gu) ?? []) {
    if (token.length > MAX_TOPIC_WORD_LENGTH) continue
    const cjk = cjkRuns(token)
    const parts = cjk.length > 0 ? cjk.map(pairsOfCharacters).join(" ") : (splitIdentifier(token) ?? token)
    for (const part of parts.toLowerCase().split(" ")) {
      const word = withoutEnding(part)
      if (word.length > 1 && !isEmptyWord(part) && !isEmptyWord(word)) words.push(word)
    }
  }
  return words
}

function isEmptyWord(word: string): boolean {
  return isStopword(word) || EMPTY_WORDS.has(word)
}

function withoutEnding(word: string): string {
  const ending = ENDINGS.find((one) => word.endsWith(one) && word.length - one.length >= MIN_STEM_LENGTH)
  if (ending === undefined) return word
  return word.slice(0, -ending.length) + (ending === "ies" || ending === "ied" ? "y" : "")
}

/**
 * Matches these words next to each other, in any case and with any white space between them. The page and its server share it, so
 * that both find the same.
 */
export function wordsPattern(words: string): RegExp {
  const escaped = words
    .trim()
    .split(/\s+/)
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|/-]/g, "\\$&"))
  return new RegExp(escaped.join("\\s+"), "giu")
}
