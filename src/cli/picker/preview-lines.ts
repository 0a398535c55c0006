import { clip, paint, type Style, safe, safeLine, wrap } from "../../render/terminal.ts"

/** What stands beside the list: whose and when, and some of what was said. */
export type Preview = {
  ref: string
  title: string
  facts: string[]
  messages: { who: "you" | "agent" | "tool"; name: string; text: string }[]
}

type PreviewLook = { color: boolean }

/** Of a long message this much is shown, so that several can be seen. */
const MOST_LINES = 6
const COLOUR: Record<Preview["messages"][number]["who"], Style> = { you: "green", agent: "cyan", tool: "dim" }

export function previewLines(
  preview: Preview,
  columns: number,
  rows: number,
  typed: string,
  look: PreviewLook,
): string[] {
  const words = wordsOf(typed)
  const lines = [
    ...wrap(safeLine(preview.title), columns)
      .slice(0, 2)
      .map((line) => paint(look, "bold", line)),
    ...preview.facts.map((fact) => paint(look, "dim", clip(safeLine(fact), columns))),
  ]
  for (const { who, name, text } of preview.messages) {
    if (lines.length >= rows) break
    if (who === "tool") {
      lines.push(paint(look, "dim", clip(`▸ ${safeLine(text)}`, columns)))
      continue
    }
    lines.push("", paint(look, COLOUR[who], clip(safeLine(name), columns)))
    const body = safe(text)
      .trim()
      .split("\n")
      .filter((line) => line.trim() !== "")
      .flatMap((line) => wrap(line.replaceAll("\t", "  "), columns))
    lines.push(...body.slice(0, MOST_LINES).map((line) => lit(line, words, look)))
    if (body.length > MOST_LINES) lines.push(paint(look, "dim", `… ${body.length - MOST_LINES} more lines`))
  }
  return lines.slice(0, rows)
}

function wordsOf(typed: string): RegExp | undefined {
  const words = typed.match(/[\p{L}\p{N}_]{2,}/gu) ?? []
  return words.length === 0 ? undefined : new RegExp(words.join("|"), "giu")
}

function lit(line: string, words: RegExp | undefined, look: PreviewLook): string {
  return words ? line.replace(words, (word) => paint(look, "yellow", word)) : line
}
