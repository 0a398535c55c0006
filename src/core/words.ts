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
/** An identifier in camel case, or with a word in capitals. Its length is limited, because a text may be one long word. */
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
