import { looksRandom } from "./values.ts"

// Finds where a text was cut by an output limit, which removes the end or the beginning of a token, or wrapped by a terminal,
// which breaks the token at the edge of the screen.

/** Matches the trace of a cut: an ellipsis, or a note in brackets that something is missing. */
const CUT_TRACE =
  /["'`]?(?:\s{0,3}(?:\.{3}|…)|\\n\.{3}|\s{0,3}[[(<]{1,2}(?:\+?\d[\d,.]* ?k?b?|[^\])>\n]{0,30}?)\s?(?:truncated|omitted|clipped|trimmed|cut|more|remaining|characters|chars|bytes|lines))/iy

/**
 * Whether a text was cut at this position. An ellipsis may also be just before the position, if it was read as part of the
 * preceding text.
 */
export function isCutAt(text: string, at: number): boolean {
  if (text.charCodeAt(at - 1) === DOT && text.startsWith("...", at - 3)) return true
  // This function is called often, so a quick check comes first.
  let next = at
  while (next < at + 3 && (text.charCodeAt(next) === 32 || text.charCodeAt(next) === 10)) next++
  if (!CUT_STARTS.includes(text[next] ?? " ")) return false
  CUT_TRACE.lastIndex = at
  return CUT_TRACE.test(text)
}

const DOT = 46
const CUT_STARTS = ".…[(<\\\"'`\r\t"

/** Whether the text that begins at this position is the rest of a text whose beginning was cut off. */
export function isCutBefore(text: string, at: number): boolean {
  return text[at - 1] === "…" || text.startsWith("...", at - 3)
}

/** The widths of common terminals. Any other width is recognised by two lines of the same width. */
const WIDTHS = new Set([72, 76, 78, 79, 80, 90, 96, 100, 110, 120, 128, 130, 132, 140, 150, 160, 180, 200, 240])
const MIN_WIDTH = 40
const MAX_WIDTH = 400

/** Whether the line that ends at this newline was broken at the edge of a screen. */
export function isScreenWrap(text: string, newline: number): boolean {
  const width = newline - lineStart(text, newline)
  if (width < MIN_WIDTH || width > MAX_WIDTH) return false
  if (WIDTHS.has(width)) return true
  const previousNewline = newline - width - 1
  const previousHasSameWidth = previousNewline > 0 && previousNewline - lineStart(text, previousNewline) === width
  const nextHasSameWidth = () => text.indexOf("\n", newline + 1) === newline + 1 + width
  if (!previousHasSameWidth && !nextHasSameWidth()) return false
  // The text must also look random, because lists have lines of equal width too.
  return looksRandom(text.slice(newline - 20, newline) + text.slice(newline + 1, newline + 21), 24)
}

function lineStart(text: string, end: number): number {
  return end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1
}
