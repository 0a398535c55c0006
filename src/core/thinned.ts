const QUOTE = 34
const COMMA = 44
const BACKSLASH = 92
const OPENS = new Set([91, 123]) // [ {
const CLOSES = new Set([93, 125]) // ] }

/** A shorter text cannot hold enough values to matter. */
const LONG_TEXT = 64 << 10
/** A list of points or pixels takes 20 times its text once it is parsed; no conversation needs more values than this. */
export const MAX_VALUES = 20_000
const SHOWN_CHARS = 100

/**
 * JSON text in which every list or object with too many values is replaced by a string that says so. Memory is then
 * bounded by the text's length, whatever its shape. What is not JSON comes back as it is, or as what is not JSON either.
 */
export function thinned(text: string): string {
  if (text.length < LONG_TEXT || !hasManyCommas(text)) return text
  const open: { at: number; before: number }[] = []
  let cuts: { from: number; to: number; values: number }[] = []
  let values = 0
  for (let i = 0; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === QUOTE) i = endOfString(text, i + 1)
    else if (char === COMMA) values++
    else if (OPENS.has(char)) open.push({ at: i, before: values++ })
    else if (CLOSES.has(char)) {
      const container = open.pop()
      if (!container || values - container.before <= MAX_VALUES) continue
      const { at, before } = container
      cuts = cuts.filter((cut) => cut.from < at)
      cuts.push({ from: at, to: i + 1, values: values - before })
      values = before + 1
    }
  }
  let end = 0
  const pieces = cuts.map(({ from, to, values: lost }) => {
    const kept = text.slice(end, from)
    end = to
    return kept + JSON.stringify(`[dex: about ${lost} values not kept: ${text.slice(from, from + SHOWN_CHARS)}…]`)
  })
  return pieces.join("") + text.slice(end)
}

function hasManyCommas(text: string): boolean {
  let count = 0
  for (let i = text.indexOf(","); i !== -1; i = text.indexOf(",", i + 1)) if (++count > MAX_VALUES) return true
  return false
}

/** The index of the quote that ends it. */
function endOfString(text: string, from: number): number {
  for (let i = from; i < text.length; i++) {
    const char = text.charCodeAt(i)
    if (char === BACKSLASH) i++
    else if (char === QUOTE) return i
  }
  return text.length
}
