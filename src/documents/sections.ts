export type Section = {
  /**
   * Unique within the document: the heading's anchor, followed by -1, -2 … for repeated headings and ~2, ~3 … for the further
   * parts of a long section.
   */
  anchor: string
  /** The headings of this section, outermost first. Empty before the first heading. */
  headings: string[]
  /** The level of the heading, from 1 to 6. 0 before the first heading. */
  level: number
  /** The section's first and last line in the file, counted from 1. */
  first_line: number
  last_line: number
  /**
   * For Markdown and text, the original lines, joined by line feeds. For HTML, the readable text, with code blocks in fences.
   */
  text: string
}

/** `title` is "" if the document has none; callers then use its path. */
export type ParsedDocument = { title: string; sections: Section[]; problems: string[] }

/** Text that is never cut: a paragraph, a code block or a list item. `gap` is the white space before it inside a section. */
export type DocumentBlock = { text: string; gap: string; first_line: number; last_line: number; heading?: Heading }
export type Heading = { text: string; level: number; anchor?: string | undefined }

/**
 * The maximum length of a section, in characters. A section is longer only if it consists of a single block that is longer, and
 * possibly a heading.
 */
const MAX_SECTION_CHARS = 6_000
const MAX_HEADING_CHARS = 200

/**
 * Groups blocks into sections. A section ends before the next heading of any level. A long section is cut between blocks into
 * several parts.
 */
export function toSections(blocks: DocumentBlock[], maxChars = MAX_SECTION_CHARS): Section[] {
  const uniqueAnchor = createUniqueAnchors()
  const sections: Section[] = []
  let path: Heading[] = []
  let anchor = ""
  let part = 0
  let blocksInPart = 0
  for (const block of blocks) {
    const lastSection = sections.at(-1)
    if (block.heading) {
      const { level } = block.heading
      path = [...path.filter((above) => above.level < level), block.heading]
      anchor = uniqueAnchor(block.heading.anchor || slugOf(block.heading.text))
      part = 1
    } else if (!lastSection) {
      anchor = uniqueAnchor("")
      part = 1
    } else if (
      isHeadingOnly(lastSection, blocksInPart) ||
      lastSection.text.length + block.gap.length + block.text.length <= maxChars
    ) {
      lastSection.text += block.gap + block.text
      lastSection.first_line = Math.min(lastSection.first_line, block.first_line)
      lastSection.last_line = Math.max(lastSection.last_line, block.last_line)
      blocksInPart++
      continue
    } else part++
    blocksInPart = 1
    sections.push({
      anchor: part === 1 ? anchor : uniqueAnchor(`${anchor}~${part}`),
      headings: path.map(({ text }) => text),
      level: path.at(-1)?.level ?? 0,
      first_line: block.first_line,
      last_line: block.last_line,
      text: block.text,
    })
  }
  return sections

  function isHeadingOnly(section: Section, count: number): boolean {
    return count === 1 && part === 1 && section.level > 0
  }
}

/**
 * Splits a file into blocks. Each runs from its start to the line before the next start. Blank lines before the first start
 * belong to no block.
 */
export function blocksOfLines(lines: string[], starts: { line: number; heading?: Heading }[]): DocumentBlock[] {
  return starts.map(({ line, heading }, i) => {
    const last_line = (starts[i + 1]?.line ?? lines.length + 1) - 1
    const text = lines.slice(line - 1, last_line).join("\n")
    return { text, gap: "\n", first_line: line, last_line, heading }
  })
}

export function firstTextLine(lines: string[], from = 1): number | undefined {
  for (let line = from; line <= lines.length; line++) if (!isBlank(lines[line - 1]!)) return line
  return undefined
}

export function titleOf(headings: Heading[], otherTitle = ""): string {
  return headings.find(({ level, text }) => level === 1 && text)?.text || otherTitle || (headings[0]?.text ?? "")
}

/** Shortens a heading to one line of at most 200 characters, because it is repeated in the path of every section below it. */
export function headingText(text: string): string {
  const line = text.replace(/\s+/g, " ").trim()
  return line.length > MAX_HEADING_CHARS
    ? `${line.slice(0, MAX_HEADING_CHARS - 1).replace(/[\ud800-\udbff]$/, "")}…`
    : line
}

/** Builds an anchor as GitHub does: lower case, letters, digits, `_` and `-`, with `-` for spaces. */
function slugOf(heading: string): string {
  const slug = heading
    .toLowerCase()
    .replace(/[^\p{L}\p{M}\p{N}\p{Pc}\- ]/gu, "")
    .replaceAll(" ", "-")
  return slug || "section"
}

function createUniqueAnchors(): (preferred: string) => string {
  const repeats = new Map<string, number>()
  return (preferred) => {
    let anchor = preferred
    let count = repeats.get(preferred) ?? 0
    while (repeats.has(anchor)) anchor = `${preferred}-${++count}`
    repeats.set(preferred, count)
    if (anchor !== preferred) repeats.set(anchor, 0)
    return anchor
  }
}

/**
 * Splits a text at line breaks (LF, CRLF or CR) into the lines that an editor shows. A final line break does not add an empty
 * line.
 */
export function splitLines(text: string): string[] {
  const lines = text.split(/\r\n|\n|\r/)
  if (lines.at(-1) === "") lines.pop()
  return lines
}

export const isBlank = (line: string): boolean => /^[ \t]*$/.test(line)

/** Returns a function that maps the offset of a character to the number of its line, counted from 1. */
export function lineFinder(text: string): (offset: number) => number {
  const starts = [0]
  for (const end of text.matchAll(/\r\n|\n|\r/g)) starts.push(end.index + end[0].length)
  return (offset) => {
    let low = 0
    let high = starts.length
    while (high - low > 1) {
      const middle = (low + high) >> 1
      if (starts[middle]! <= offset) low = middle
      else high = middle
    }
    return low + 1
  }
}
