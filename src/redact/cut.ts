import { looksRandom } from "./values.ts"

// Finds where a text was cut by an output limit, which removes the end or the beginning of a token, or wrapped by a terminal,
// which breaks the token at the edge of the screen.

/** The trace of a cut: an ellipsis, or a note in brackets that something is missing. */
const CUT =
  /["'`]?(?:\s{0,3}(?:\.{3}|…)|\\n\.{3}|\s{0,3}[[(<]{1,2}(?:\+?\d[\d,.]* ?k?b?|[^\])>\n]{0,30}?)\s?(?:truncated|omitted|clipped|trimmed|cut|more|remaining|characters|chars|bytes|lines))/iy

/** Whether a text was cut here. The dots may have been read as part of the preceding text. */
export function isCutAt(text: string, at: number): boolean {
  if (text.charCodeAt(at - 1) === DOT && text.startsWith("...", at - 3)) return true
  // This is called for many runs, so a quick check comes first.
  let next = at
  while (next < at + 3 && (text.charCodeAt(next) === 32 || text.charCodeAt(next) === 10)) next++
  if (!BEGINS_CUT.includes(text[next] ?? " ")) return false
  CUT.lastIndex = at
  return CUT.test(text)
}

const DOT = 46
const BEGINS_CUT = ".…[(<\\\"'`\r\t"

/** Whether the beginning of this text is missing. */
export function isCutBefore(text: string, at: number): boolean {
  return text[at - 1] === "…" || text.startsWith("...", at - 3)
}

/** The widths of common terminals. Any other width is recognised by two lines of the same width. */
const WIDTHS = new Set([72, 76, 78, 79, 80, 90, 96, 100, 110, 120, 128, 130, 132, 140, 150, 160, 180, 200, 240])
const MIN_WIDTH = 40
const MAX_WIDTH = 400

/** Whether a line ends here because of the edge of the screen. */
export function isScreenWrap(text: string, newline: number): boolean {
  const width = newline - lineStart(text, newline)
  if (width < MIN_WIDTH || width > MAX_WIDTH) return false
  if (WIDTHS.has(width)) return true
  const before = newline - width - 1
  const isLikeBefore = before > 0 && before - lineStart(text, before) === width
  const isLikeNext = () => text.indexOf("\n", newline + 1) === newline + 1 + width
  if (!isLikeBefore && !isLikeNext()) return false
  // Lists also have lines of equal width, so the text must look random.
  return looksRandom(text.slice(newline - 20, newline) + text.slice(newline + 1, newline + 21), 24)
}

function lineStart(text: string, end: number): number {
  return end === 0 ? 0 : text.lastIndexOf("\n", end - 1) + 1
}
