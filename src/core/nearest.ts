/**
 * Returns the names that are most similar to a typed word, the most similar first. Equally similar names keep their order. A name
 * may be at most two edits away, and the edits must be fewer than half of the word's letters. Swapping two neighbours is one
 * edit. Ignores case.
 */
export function nearestNames(word: string, names: readonly string[], maxNames = 3): string[] {
  const typed = word.toLowerCase()
  const maxEdits = Math.min(2, Math.ceil(typed.length / 2) - 1)
  return names
    .map((name) => ({ name, edits: editDistance(typed, name.toLowerCase(), maxEdits) }))
    .filter(({ edits }) => edits <= maxEdits)
    .sort((a, b) => a.edits - b.edits)
    .slice(0, maxNames)
    .map(({ name }) => name)
}

/**
 * Returns how many edits turn one word into the other. An edit inserts, removes or replaces a letter, or swaps two neighbours.
 * Returns `maxEdits + 1` if more than `maxEdits` are needed.
 */
export function editDistance(one: string, other: string, maxEdits: number): number {
  const [a, b] = SURROGATE.test(one + other) ? [[...one], [...other]] : [one, other]
  if (Math.abs(a.length - b.length) > maxEdits) return maxEdits + 1
  let rowBeforeLast: number[] = []
  let lastRow = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const isSame = a[i - 1] === b[j - 1]
      const isSwapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const replaceEdits = lastRow[j - 1]! + (isSame ? 0 : 1)
      const swapEdits = isSwapped ? rowBeforeLast[j - 2]! + 1 : replaceEdits
      row.push(Math.min(lastRow[j]! + 1, row[j - 1]! + 1, replaceEdits, swapEdits))
    }
    if (Math.min(...row) > maxEdits) return maxEdits + 1
    rowBeforeLast = lastRow
    lastRow = row
  }
  return Math.min(lastRow[b.length]!, maxEdits + 1)
}

/** Matches half of a character that JavaScript counts as two. */
const SURROGATE = /[\ud800-\udfff]/
