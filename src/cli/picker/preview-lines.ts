import { clip, markWords, paint, safeLine, wrap } from "../../render/terminal.ts"

/** The contents of the pane next to the list. */
export type Preview = {
  ref: string
  title: string
  facts: string[]
  /** The lines of each message, as the reader draws them at this width. */
  messages: string[][]
}

/** The maximum number of lines below the head of one message, so that several messages fit. */
const MAX_BODY_LINES = 7

export function previewLines(
  preview: Preview,
  columns: number,
  rows: number,
  typed: string,
  look: { color: boolean },
): string[] {
  const words = look.color ? wordsOf(typed) : undefined
  const lines = [
    ...wrap(safeLine(preview.title), columns)
      .slice(0, 2)
      .map((line) => paint(look, "bold", line)),
    ...preview.facts.map((fact) => paint(look, "dim", clip(safeLine(fact), columns))),
  ]
  for (const message of preview.messages) {
    if (lines.length >= rows) break
    // Omits blank lines between paragraphs, because there is little room.
    const [first = "", ...rest] = message.filter((line, i) => i === 0 || line !== "")
    const body = rest.slice(0, MAX_BODY_LINES)
    const omitted = rest.length - body.length
    lines.push(...[first, ...body].map((line) => (words ? markWords(line, words) : line)))
    if (omitted > 0) lines.push(paint(look, "dim", `… ${omitted} more ${omitted === 1 ? "line" : "lines"}`))
  }
  return lines.slice(0, rows)
}

/** Matches the typed words, and longer words that begin with them, because the last word may be incomplete. */
function wordsOf(typed: string): RegExp | undefined {
  const words = typed.match(/[\p{L}\p{N}_]{2,}/gu) ?? []
  return words.length === 0 ? undefined : new RegExp(words.join("|"), "giu")
}
