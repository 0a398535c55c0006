import type { ParsedDocument } from "./sections.ts"
import { blocksOfLines, firstTextLine, type Heading, headingText, isBlank, titleOf, toSections } from "./sections.ts"

const PIECE_CHARS = 2_000

/**
 * Cuts a text into pieces of about 2,000 characters, at blank lines and at underlined titles, or at any line if there are none.
 */
export function parseText(lines: string[]): ParsedDocument {
  const starts: { line: number; heading?: Heading }[] = []
  const styles: string[] = []
  let chars = 0
  for (let line = firstTextLine(lines) ?? Number.POSITIVE_INFINITY; line <= lines.length; line++) {
    const text = lines[line - 1]!
    const afterBlank = line === 1 || isBlank(lines[line - 2]!)
    const title = afterBlank ? underlinedAt(lines, line) : undefined
    if (title) {
      if (!styles.includes(title.style)) styles.push(title.style)
      const level = Math.min(styles.indexOf(title.style) + 1, 6)
      starts.push({ line, heading: { text: headingText(title.text), level } })
      line += title.lines - 1
      chars = 0
      continue
    }
    const tooLong = chars + text.length > PIECE_CHARS
    if (starts.length === 0 || (afterBlank && !isBlank(text)) || tooLong) {
      starts.push({ line })
      chars = 0
    }
    chars += text.length + 1
  }
  const headings = starts.flatMap(({ heading }) => heading ?? [])
  return { title: titleOf(headings), sections: toSections(blocksOfLines(lines, starts), PIECE_CHARS), problems: [] }
}

/**
 * Finds a title as in reStructuredText: a line with a row of one repeated character below it, at least as long, and possibly the
 * same row above.
 */
function underlinedAt(lines: string[], line: number): { text: string; style: string; lines: number } | undefined {
  const over = rowOf(lines[line - 1]!)
  const text = lines[line - 1 + (over ? 1 : 0)] ?? ""
  const under = rowOf(lines[line + (over ? 1 : 0)] ?? "")
  if (!under || isBlank(text) || rowOf(text) || (over && over !== under) || (!over && /^\s/.test(text)))
    return undefined
  if (under.length < text.trim().length) return undefined
  return { text: text.trim(), style: `${over ? "over" : ""}${under[0]}`, lines: over ? 3 : 2 }
}

function rowOf(line: string): string | undefined {
  return line.length <= 300 ? /^([=\-~^"'`#*+.:_])\1{2,}(?=\s*$)/.exec(line)?.[0] : undefined
}
