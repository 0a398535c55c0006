import { isStopword, splitIdentifier } from "../../src/core/words.ts"

const WORD = /[\p{L}\p{N}_]+/gu
const LONGEST = 24

/** Words as the table contains them: names split into parts, lower case, stemmed, without stopwords and numbers. */
export function termsOf(text: string): string[] {
  return wordsOf(text).flatMap(termsOfWord)
}

export function wordsOf(text: string): string[] {
  return text.match(WORD) ?? []
}

export function termsOfWord(word: string): string[] {
  const terms: string[] = []
  for (const part of (splitIdentifier(word) ?? word).toLowerCase().split(/[ _]+/))
    if (part.length > 1 && part.length <= LONGEST && !/^\d/.test(part) && !isStopword(part)) terms.push(stemOf(part))
  return terms
}

const VOWEL = /[aeiouy]/

/** Only plurals and endings of verbs: `created`, `creating`, `creates` and `create` are one word, `creation` is another. */
export function stemOf(word: string): string {
  if (word.length < 4 || !/^[a-z]+$/.test(word)) return word
  let stem = word
  if (stem.endsWith("sses") || stem.endsWith("ies")) stem = stem.slice(0, -2)
  else if (stem.endsWith("s") && !/[su]s$|is$/.test(stem)) stem = stem.slice(0, -1)
  const ending = /(?:ed|ing)$/.exec(stem)
  if (ending && ending.index > 2 && VOWEL.test(stem.slice(0, ending.index))) stem = stem.slice(0, ending.index)
  if (/([^aeiouylsz])\1$/.test(stem)) stem = stem.slice(0, -1)
  if (stem.length > 3 && stem.endsWith("e")) stem = stem.slice(0, -1)
  return stem.length > 2 && stem.endsWith("y") ? `${stem.slice(0, -1)}i` : stem
}
