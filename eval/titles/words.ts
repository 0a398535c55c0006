import { createHash } from "node:crypto"

/** The longest phrase in a label. */
export const MOST_WORDS = 5

/** A word or phrase as stored in the labels: case and punctuation do not matter. */
export function phraseHash(phrase: string): string {
  return createHash("sha256")
    .update(`titles ${wordsOf(phrase).join(" ")}`)
    .digest("hex")
    .slice(0, 12)
}

/** Every word and phrase of a title. */
export function phrasesIn(title: string): Set<string> {
  const words = wordsOf(title)
  const phrases = words.flatMap((_, from) =>
    Array.from({ length: MOST_WORDS }, (_, more) => words.slice(from, from + more + 1).join(" ")),
  )
  return new Set(phrases.map(phraseHash))
}

export function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
}
