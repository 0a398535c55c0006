/**
 * The names nearest to a word as it was typed, nearest first, then in their own order. At most two edits away, and fewer
 * than half the word's letters; two neighbours that changed places are one edit. Large and small letters are the same.
 */
export function nearest(word: string, names: readonly string[], most = 3): string[] {
  const typed = [...word.toLowerCase()]
  const within = Math.min(2, Math.ceil(typed.length / 2) - 1)
  return names
    .map((name) => ({ name, edits: editsBetween(typed, [...name.toLowerCase()]) }))
    .filter(({ edits }) => edits <= within)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, most)
    .map(({ name }) => name)
}

/** Damerau-Levenshtein distance, by which no letter is edited twice. */
function editsBetween(a: readonly string[], b: readonly string[]): number {
  let older: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + (isSame ? 0 : 1))
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1])
        row[j] = Math.min(row[j]!, older[j - 2]! + 1)
    }
    older = last
    last = row
  }
  return last[b.length]!
}
