import type { Span } from "./rules.ts"

// Views of a text as a reader sees it. A terminal's colours, zero-width characters and overstrikes are invisible. They may stand
// between a name and its value, or inside a token, so dex also searches the text without them for secrets.

/** A form of a text with some characters removed or replaced. `inText` maps a span of the view to a span of the text. */
export type TextView = { text: string; inText(span: Span): Span }

/**
 * The text as a reader sees it. Undefined if nothing in it is hidden. `wide` is false if the text can hide nothing but colours.
 */
export function visibleView(text: string, wide: boolean): TextView | undefined {
  const hidden = wide || COLOUR.test(text) ? matchesOf(text, HIDDEN) : []
  return hidden.length === 0 ? undefined : omitRanges(text, hidden)
}

/** A colour whose escape character was written out (`\u001b[0m`, `\e[0m`, `^[[0m`) or removed. */
const COLOUR = /\[\d{1,3}(?:;\d{1,3}){0,9}m/

/**
 * Sequences that a reader does not see. Every repetition is bounded or repeats one class of characters, so that matching takes
 * linear time.
 */
const HIDDEN = new RegExp(
  [
    "\\u001b\\[[0-?]{0,60}[ -/]{0,4}[@-~]|\\u009b[0-?]{0,60}[ -/]{0,4}[@-~]", // colours and cursor movements
    "\\u001b[\\]PX^_][^\\u0007\\u001b\\n]{0,4000}(?:\\u0007|\\u001b\\\\)", // window titles and links
    "\\u001b[ -/]{0,2}[0-~]|\\u001b",
    "(?:\\\\{1,8}(?:u001b|x1b|033|e)|\\^\\[|\\u241b)?\\[\\d{1,3}(?:;\\d{1,3}){0,9}m",
    "(?:\\\\{1,8}(?:u001b|x1b|033|e)|\\^\\[|\\u241b)\\[[0-?]{0,20}[A-Za-z]",
    "[^\\n\\b]\\u0008", // a letter that is printed over another
    "[\\u0008\\u00ad\\u034f\\u061c\\u115f\\u1160\\u17b4\\u17b5\\u180b-\\u180f\\u200b-\\u200f\\u202a-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\uffa0\\ufff9-\\ufffb]+",
    "(?:\\udb40[\\udc00-\\udfff])+",
  ].join("|"),
  "gi",
)

/** The text without the line breaks that a screen added at these positions. */
export function unwrappedView(text: string, newlines: readonly number[]): TextView {
  return omitRanges(
    text,
    newlines.map((at) => ({ start: at, end: at + 1 })),
  )
}

/** Maps letters of other scripts to the Latin letters that they look like. */
const LOOK_ALIKE = Object.fromEntries(
  [..."аеорсухіѕјһԁгАВЕКМНОРСТХαορνΑΒΕΗΙΚΜΝΟΡΤΧ"].map((c, i) => [c, "aeopcyxisjhdrABEKMHOPCTXaopvABEHIKMNOPTX"[i]!]),
)
const LOOK_ALIKES = `[${Object.keys(LOOK_ALIKE).join("")}]`
/** Matches a word in two scripts, or full-width letters. */
const MIXED_SCRIPTS = new RegExp(`[A-Za-z_]${LOOK_ALIKES}|${LOOK_ALIKES}[A-Za-z_]|[\uff21-\uff5a]{3}`)
const REPLACEABLE = new RegExp(`${LOOK_ALIKES}|[\uff01-\uff5e]`, "g")

/** The text with Latin letters in place of those that look like them. Undefined if no word mixes scripts. */
export function foldedView(text: string): TextView | undefined {
  if (!MIXED_SCRIPTS.test(text)) return undefined
  const folded = text.replace(REPLACEABLE, (c) => LOOK_ALIKE[c] ?? String.fromCharCode(c.charCodeAt(0) - 0xfee0))
  return { text: folded, inText: (span) => span }
}

const LETTER_ESCAPE = /\\{1,8}u00([4-7][0-9a-f])/gi

/** The text with letter escapes (`\u0061`) decoded. Undefined if there are none. */
export function decodedView(text: string): TextView | undefined {
  const escapes = Array.from(text.matchAll(LETTER_ESCAPE), (match) => ({
    start: match.index,
    end: match.index + match[0].length,
    letter: String.fromCharCode(Number.parseInt(match[1]!, 16)),
  }))
  return escapes.length === 0 ? undefined : omitRanges(text, escapes)
}

function matchesOf(text: string, pattern: RegExp): { start: number; end: number }[] {
  return Array.from(text.matchAll(pattern), (match) => ({ start: match.index, end: match.index + match[0].length }))
}

/** Removes these ranges, or replaces a range with its `letter`. */
function omitRanges(text: string, omitted: { start: number; end: number; letter?: string }[]): TextView {
  const pieces: string[] = []
  /** The positions in the view at which characters were omitted. */
  const positions: number[] = []
  /** For each of these positions, how many characters were omitted up to it. */
  const omittedUpTo: number[] = []
  let from = 0
  let removed = 0
  for (const { start, end, letter = "" } of omitted) {
    pieces.push(text.slice(from, start), letter)
    positions.push(start - removed + letter.length)
    removed += end - start - letter.length
    omittedUpTo.push(removed)
    from = end
  }
  pieces.push(text.slice(from))
  const offset = (position: number) => position + (omittedUpTo[lastUpTo(positions, position)] ?? 0)
  return {
    text: pieces.join(""),
    inText: ({ start, end, rule }) => ({ start: offset(start), end: offset(end - 1) + 1, rule }),
  }
}

/** The index of the last of these ascending numbers that is at most the value, or -1. */
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
