import type { Span } from "./rules.ts"

// What a reader sees of a text. A terminal's colours, characters without a width and overstrikes stand between a name
// and its value, or inside a token, and nobody sees them; so secrets are also looked for in the text without them.

/** A text with some of its characters left out. `inText` says where something that was found in it stands in the text. */
export type TextView = { text: string; inText(span: Span): Span }

/** The text as it is seen; undefined when nothing in it is hidden. Where it is not `wide` it can only hide colours. */
export function seenView(text: string, wide: boolean): TextView | undefined {
  const hidden = wide || COLOUR.test(text) ? matchesOf(text, HIDDEN) : []
  return hidden.length === 0 ? undefined : without(text, hidden)
}

/** A colour whose escape character was written out (`\u001b[0m`, `\e[0m`, `^[[0m`) or has been taken away. */
const COLOUR = /\[\d{1,3}(?:;\d{1,3}){0,9}m/

/** Every repetition ends at the next escape character or is bounded. */
const HIDDEN = new RegExp(
  [
    "\\u001b\\[[0-?]{0,60}[ -/]{0,4}[@-~]|\\u009b[0-?]{0,60}[ -/]{0,4}[@-~]", // colours and cursor moves
    "\\u001b[\\]PX^_][^\\u0007\\u001b\\n]{0,4000}(?:\\u0007|\\u001b\\\\)", // titles and links
    "\\u001b[ -/]{0,2}[0-~]|\\u001b",
    "(?:\\\\{1,8}(?:u001b|x1b|033|e)|\\^\\[|\\u241b)?\\[\\d{1,3}(?:;\\d{1,3}){0,9}m",
    "(?:\\\\{1,8}(?:u001b|x1b|033|e)|\\^\\[|\\u241b)\\[[0-?]{0,20}[A-Za-z]",
    "[^\\n\\b]\\u0008", // a letter printed over another
    "[\\u0008\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb]+",
    "(?:\\udb40[\\udc00-\\udfff])+",
  ].join("|"),
  "gi",
)

/** The text as it was before a screen broke its lines at these places. */
export function unwrappedView(text: string, newlines: readonly number[]): TextView {
  return without(
    text,
    newlines.map((at) => ({ start: at, end: at + 1 })),
  )
}

function matchesOf(text: string, pattern: RegExp): { start: number; end: number }[] {
  return Array.from(text.matchAll(pattern), (match) => ({ start: match.index, end: match.index + match[0].length }))
}

function without(text: string, left: { start: number; end: number }[]): TextView {
  const pieces: string[] = []
  /** Where in the view something was left out, and how many characters of the text were left out up to there. */
  const at: number[] = []
  const gone: number[] = []
  let from = 0
  let removed = 0
  for (const { start, end } of left) {
    pieces.push(text.slice(from, start))
    at.push(start - removed)
    removed += end - start
    gone.push(removed)
    from = end
  }
  pieces.push(text.slice(from))
  const offset = (position: number) => position + (gone[lastUpTo(at, position)] ?? 0)
  return {
    text: pieces.join(""),
    inText: ({ start, end, rule }) => ({ start: offset(start), end: offset(end - 1) + 1, rule }),
  }
}

/** The index of the last of these ascending numbers that is not above the value, or -1. */
function lastUpTo(numbers: number[], value: number): number {
  let low = 0
  let high = numbers.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! <= value) low = middle + 1
    else high = middle
  }
  return low - 1
}
