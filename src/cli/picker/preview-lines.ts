import { clip, markWords, paint, safeLine, wrap } from "../../render/terminal.ts"

/** What stands beside the list: whose and when, and some of what was said. */
export type Preview = {
  ref: string
  title: string
  facts: string[]
  /** The lines of each message, as the reader draws them on as many columns. */
  messages: string[][]
}

/** Of a long message this much is shown below its head, so that several can be seen. */
const MOST_LINES = 6

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
    // Without the blank lines between paragraphs: there is little room.
    const [first = "", ...rest] = message.filter((line, i) => i === 0 || line !== "")
    const body = rest.slice(0, MOST_LINES + 1)
    const left = rest.length - body.length
    lines.push(...[first, ...body].map((line) => (words ? markWords(line, words) : line)))
    if (left > 0) lines.push(paint(look, "dim", `… ${left} more ${left === 1 ? "line" : "lines"}`))
  }
  return lines.slice(0, rows)
}

/** A word that is being typed is marked as far as it goes. */
function wordsOf(typed: string): RegExp | undefined {
  const words = typed.match(/[\p{L}\p{N}_]{2,}/gu) ?? []
  return words.length === 0 ? undefined : new RegExp(words.join("|"), "giu")
}
