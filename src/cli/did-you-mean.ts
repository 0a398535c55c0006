import { nearest } from "../core/nearest.ts"

const SHORTEST_BEGINNING = 3

/** The name that was probably meant: the nearest, else one that begins as the word does. */
export function didYouMean(word: string, names: readonly string[]): string | undefined {
  const begins = (longer: string, shorter: string) =>
    shorter.length >= SHORTEST_BEGINNING && longer.startsWith(shorter.toLowerCase())
  return nearest(word, names, 1)[0] ?? names.find((name) => begins(name, word) || begins(word.toLowerCase(), name))
}
