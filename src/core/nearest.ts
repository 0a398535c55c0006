/**
 * Returns the names that are most similar to a typed word: the most similar first, then in the given order. A name may be at most
 * two edits away, and fewer than half of the word's letters. Swapping two neighbours is one edit. Ignores case.
 */
export function nearestNames(word: string, names: readonly string[], most = 3): string[] {
  const typed = word.toLowerCase()
  const within = Math.min(2, Math.ceil(typed.length / 2) - 1)
  return names
    .map((name) => ({ name, edits: editDistance(typed, name.toLowerCase(), within) }))
    .filter(({ edits }) => edits <= within)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, most)
    .map(({ name }) => name)
}

/**
 * The number of letters to insert, remove, replace or swap with their neighbour to turn one word into the other. Returns `most +
 * 1` if it exceeds `most`.
 */
export function editDistance(one: string, other: string, most: number): number {
  const [a, b] = PAIRED.test(one + other) ? [[...one], [...other]] : [one, other]
  if (Math.abs(a.length - b.length) > most) return most + 1
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const replaced = last[j - 1]! + (isSame ? 0 : 1)
      const swapped = isSwapped ? before[j - 2]! + 1 : replaced
      row.push(Math.min(last[j]! + 1, row[j - 1]! + 1, replaced, swapped))
    }
    if (Math.min(...row) > most) return most + 1
    before = last
    last = row
  }
  return Math.min(last[b.length]!, most + 1)
}

/** The halves of characters that JavaScript counts as two. */
const PAIRED = /[\ud800-\udfff]/
