import { isStopword, splitIdentifier } from "../../core/words.ts"

// Finds the subject of a decision: the words that distinguish it from others.

/** Words about deciding, which say nothing about the subject. */
const DECIDING_WORDS = new Set(
  (
    "able actually add adjust agree ahead all already also always another any anymore approach because being best better both call case " +
    "change come completely continue correct create decide definitely don either else enough entirely even ever every exactly " +
    "fine first fix follow get give good got great guess had happen have hmm idea implement implementation instead issue just keep kind " +
    "know later least let like little look lot make maybe mean might more most move must need never new next nope nothing now okay old " +
    "only onto option other otherwise over part please plan point prefer probably problem put quite rather really reason remove replace " +
    "right same see set shall should show simple simply since some something sorry still stuff such suggest sure take task thank " +
    "thing think though time too totally try two update use used using very wait want way well whole without wonder work yeah yep yes yet"
  ).split(" "),
)
const MAX_WORDS = 40
const MAX_CHARS = 2_000

/** Returns the words of the subject in order, each once. */
export function subjectOf(text: string): string[] {
  const words = new Set<string>()
  for (const token of text.slice(0, MAX_CHARS).match(/[\p{L}\p{N}_]+/gu) ?? []) {
    for (const part of (splitIdentifier(token) ?? token).split(/[\s_]+/)) {
      const word = stem(part.toLowerCase())
      if (
        word.length < 3 ||
        isStopword(part) ||
        isStopword(word) ||
        DECIDING_WORDS.has(word) ||
        DECIDING_WORDS.has(part.toLowerCase())
      )
        continue
      words.add(word)
      if (words.size === MAX_WORDS) return [...words]
    }
  }
  return [...words]
}

/** Removes a plural ending: "sessions" and "session" are the same word. Stemming more would merge different words. */
export function stem(word: string): string {
  if (word.length > 4 && word.endsWith("ies")) return `${word.slice(0, -3)}y`
  if (word.length > 3 && word.endsWith("s") && !/(?:ss|us|is)$/.test(word)) return word.slice(0, -1)
  return word
}
