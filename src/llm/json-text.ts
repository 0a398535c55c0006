/**
 * The JSON in a model's reply: the whole of it, or inside a fence, or after some words. Undefined when there is none
 * that is whole; nothing is mended.
 */
export function jsonIn(text: string): unknown {
  const fenced = text.split("```").flatMap((piece, i) => (i % 2 === 1 ? [piece.replace(/^[a-z]*\n/i, "")] : []))
  const first = text.search(/[[{]/)
  const last = Math.max(text.lastIndexOf("}"), text.lastIndexOf("]"))
  for (const candidate of [text, ...fenced, first === -1 ? "" : text.slice(first, last + 1)]) {
    try {
      return JSON.parse(candidate)
    } catch {
      // the next one may be
    }
  }
  return undefined
}
