import { editDistance } from "./edit-distance.ts"

/**
 * The names nearest to a word as it was typed, nearest first, then in their own order. At most two edits away, and fewer
 * than half the word's letters; two neighbours that changed places are one edit. Large and small letters are the same.
 */
export function nearest(word: string, names: readonly string[], most = 3): string[] {
  const typed = word.toLowerCase()
  const within = Math.min(2, Math.ceil(typed.length / 2) - 1)
  return names
    .map((name) => ({ name, edits: editDistance(typed, name.toLowerCase(), within) }))
    .filter(({ edits }) => edits <= within)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, most)
    .map(({ name }) => name)
}
