/** What is shorter stands in every file: a brace, `end`, `)`. */
const LEAST_SIGNS = 4

/**
 * A number for what a line says, whatever its white space: whoever indents or aligns it anew writes the same line. 0 for a
 * line that says too little to be anybody's. Pure, and never another number for the same line: it is stored.
 */
export function lineKey(text: string): number {
  let hash = 0x811c9dc5
  let signs = 0
  for (let i = 0; i < text.length; i++) {
    const sign = text.charCodeAt(i)
    if (sign <= 32 || sign === 0xa0) continue
    hash = Math.imul(hash ^ sign, 0x01000193)
    signs++
  }
  if (signs < LEAST_SIGNS) return 0
  // FNV-1a alone leaves lines that differ in their last sign next to each other.
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b)
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35)
  return (hash ^ (hash >>> 16)) >>> 0 || 1
}
