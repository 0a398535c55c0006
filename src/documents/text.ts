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
    const isAfterBlank = line === 1 || isBlank(lines[line - 2]!)
    const title = isAfterBlank ? underlinedTitleAt(lines, line) : undefined
    if (title) {
      if (!styles.includes(title.style)) styles.push(title.style)
      const level = Math.min(styles.indexOf(title.style) + 1, 6)
      starts.push({ line, heading: { text: headingText(title.text), level } })
      line += title.lineCount - 1
      chars = 0
      continue
    }
    const isTooLong = chars + text.length > PIECE_CHARS
    if (starts.length === 0 || (isAfterBlank && !isBlank(text)) || isTooLong) {
      starts.push({ line })
      chars = 0
    }
    chars += text.length + 1
  }
  const headings = starts.flatMap(({ heading }) => heading ?? [])
  return { title: titleOf(headings), sections: toSections(blocksOfLines(lines, starts), PIECE_CHARS), problems: [] }
}

/**
 * Finds a title in the style of reStructuredText: a line above a row of one repeated character that is at least as long. The same
 * row may also precede the line.
 */
function underlinedTitleAt(
  lines: string[],
  line: number,
): { text: string; style: string; lineCount: number } | undefined {
  const overline = lineOfOneCharacter(lines[line - 1]!)
  const text = lines[line - 1 + (overline ? 1 : 0)] ?? ""
  const underline = lineOfOneCharacter(lines[line + (overline ? 1 : 0)] ?? "")
  if (
    !underline ||
    isBlank(text) ||
    lineOfOneCharacter(text) ||
    (overline && overline !== underline) ||
    (!overline && /^\s/.test(text))
  )
    return undefined
  if (underline.length < text.trim().length) return undefined
  return { text: text.trim(), style: `${overline ? "over" : ""}${underline[0]}`, lineCount: overline ? 3 : 2 }
}

function lineOfOneCharacter(line: string): string | undefined {
  return line.length <= 300 ? /^([=\-~^"'`#*+.:_])\1{2,}(?=\s*$)/.exec(line)?.[0] : undefined
}
