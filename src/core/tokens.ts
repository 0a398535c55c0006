/**
 * The assumed number of characters per token; in measurements, source code and prose had 3.55. Counting exactly runs at 3 MB/s,
 * which is too slow for every message.
 */
const CHARS_PER_TOKEN = 3.5

/** Estimates the size of a text in tokens. Wherever dex prints this number, it says that it is an estimate. */
export function estimateTokens(text: string): number {
  return tokensForChars(text.length)
}

/** Estimates the tokens of a text with this many characters. */
export function tokensForChars(characters: number): number {
  return Math.ceil(characters / CHARS_PER_TOKEN)
}

/** The length of the longest text whose estimate is within this many tokens. */
export function charactersWithin(tokens: number): number {
  return Math.floor(tokens * CHARS_PER_TOKEN)
}
