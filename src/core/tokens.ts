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
export function tokensForChars(charCount: number): number {
  return Math.ceil(charCount / CHARS_PER_TOKEN)
}

/** Returns the length of the longest text that is estimated at no more than this many tokens. */
export function charactersWithin(tokens: number): number {
  return Math.floor(tokens * CHARS_PER_TOKEN)
}
