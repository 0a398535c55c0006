/**
 * The minimum number of characters, without white space, of a line that can be attributed. Shorter lines occur in every file: a
 * brace, `end`, `)`.
 */
const MIN_CHARACTERS = 4

/**
 * Computes a number for the text of a line, ignoring white space, so that indenting or aligning a line does not change it.
 * Returns 0 if the line is too short to attribute. The number is stored, so it must never change for the same text. Pure.
 */
export function lineKey(text: string): number {
  let hash = 0x811c9dc5
  let characters = 0
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code <= 32 || code === 0xa0) continue
    hash = Math.imul(hash ^ code, 0x01000193)
    characters++
  }
  if (characters < MIN_CHARACTERS) return 0
  // FNV-1a alone would map lines that differ only in the last character to neighbouring numbers.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0 || 1
}
