import { fromMarkdown, type Extension as Tree } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { parse, postprocess, preprocess } from "micromark"
import { gfm } from "micromark-extension-gfm"
import type { ParsedDocument } from "./sections.ts"
import { blocksOfLines, type Heading, headingText, isBlank, splitLines, titleOf, toSections } from "./sections.ts"

/** Cuts Markdown into sections at the headings of the document itself, not at those in lists, quotes, code or comments. */
export function parseMarkdown(text: string, dialect?: MarkdownDialect): ParsedDocument {
  const lines = splitLines(text)
  const metadata = frontMatter(lines)
  const starts = blockStarts(lines.slice(metadata.length), dialect).map(({ line, heading }) => ({
    line: line + metadata.length,
    heading: heading && headingOf(heading),
  }))
  const headings = starts.flatMap(({ heading }) => heading ?? [])
  const sections = toSections(blocksOfLines(lines, starts))
  return { title: titleOf(headings, titleInMatter(metadata)), sections, problems: [] }
}

/** Returns the lines of the front matter, including the two lines with `---` (YAML) or `+++` (TOML) that enclose it. */
function frontMatter(lines: string[]): string[] {
  const fence = /^(---|\+\+\+)[ \t]*$/.exec(lines[0] ?? "")?.[1]
  const closingIndex = fence
    ? lines.findIndex((line, i) => i > 0 && line.startsWith(fence) && isBlank(line.slice(3)))
    : -1
  return lines.slice(0, closingIndex + 1)
}

/** Parses a heading. `## Text {#anchor}` and `## Text {/* anchor *\/}` name their own anchor. */
function headingOf({ level, source }: NonNullable<BlockStart["heading"]>): Heading {
  const raw = source.slice(0, 1_000)
  const ownAnchor = /\s*\{(?:#([\w.:-]{1,200})|\/\*\s*([\w.:-]{1,200})\s*\*\/)\}\s*$/.exec(raw)
  const words = ownAnchor ? raw.slice(0, ownAnchor.index) : raw
  const text = headingText(/[`*_~[\]<>&\\]/.test(words) ? inlineText(words) : words)
  return { text, level, anchor: ownAnchor?.[1] ?? ownAnchor?.[2] }
}

function inlineText(source: string): string {
  const [heading] = fromMarkdown(`# ${source.replace(/[\r\n]+/g, " ")}`, INLINE_SYNTAX).children
  return heading ? nodeText(heading) : source
}

/** Options for parsing inline syntax. They omit the transforms, which would look for bare links in every text. */
const INLINE_SYNTAX = {
  extensions: [gfm()],
  mdastExtensions: gfmFromMarkdown().map(({ transforms: _, ...extension }): Tree => extension),
}

type Node = ReturnType<typeof fromMarkdown>["children"][number]

/** Returns the text of a heading, without markup. Images are replaced by their descriptions. */
function nodeText(node: Node): string {
  const words: string[] = []
  const queue: unknown[] = [node]
  while (queue.length > 0) {
    const nextNode = queue.pop() as { type: string; value?: string; alt?: string; children?: unknown[] }
    if (nextNode.type === "text" || nextNode.type === "inlineCode") words.push(nextNode.value ?? "")
    else if (nextNode.type === "break") words.push(" ")
    else if (nextNode.alt) words.push(nextNode.alt)
    for (let i = (nextNode.children?.length ?? 0) - 1; i >= 0; i--) queue.push(nextNode.children![i])
  }
  return words.join("")
}

/** Returns the title in the front matter: `title: …` in YAML or `title = "…"` in TOML, at the top level. */
function titleInMatter(lines: string[]): string {
  for (const [i, line] of lines.entries()) {
    const value = /^["']?title["']?\s*[:=]\s*(.*)$/.exec(line.slice(0, 2_000))?.[1]?.trim()
    if (value === undefined) continue
    const quoted = /^"((?:[^"\\]|\\.)*)"|^'((?:[^']|'')*)'/.exec(value)
    if (quoted) return headingText(quoted[1]?.replace(/\\(["\\])/g, "$1") ?? quoted[2]!.replaceAll("''", "'"))
    if (/^[|>][-+]?$/.test(value)) return headingText(lines.slice(i + 1).find((next) => !isBlank(next)) ?? "")
    return headingText(value.replace(/\s+#.*$/, ""))
  }
  return ""
}

type Syntax = ReturnType<typeof gfm>
type BlockStart = { line: number; heading?: { level: number; source: string } }

/** The MDX extensions. They are created anew for each document, because they count the characters of its scripts. */
type MarkdownDialect = Syntax

/**
 * Returns the lines on which the document's own blocks begin, in order, with the headings among them. The items of a list are
 * blocks, and so is the content between the tags of a component. Whenever a list closes, the parser copies everything that it has
 * read, so its time grows with the square of the text. For this reason, this function parses one window of the text at a time.
 * The last block in a window may continue after the window, so the next window begins with an earlier block, at a line that
 * parses the same in any window.
 */
export function blockStarts(lines: string[], dialect?: MarkdownDialect, windowChars = 8_000): BlockStart[] {
  refuseDeepNesting(lines)
  const syntax = [BLOCKS_ONLY, GFM_BLOCKS, ...(dialect ? [blocksOnly(dialect)] : [])]
  const starts: BlockStart[] = []
  let workSpent = 0
  let windowSize = windowChars
  for (let windowStart = 0; windowStart < lines.length; ) {
    const end = windowEnd(lines, windowStart, windowSize)
    const isLast = end === lines.length
    const parsed = startsIn(lines.slice(windowStart, end).join("\n"), syntax, isLast)
    const nextStart = isLast
      ? undefined
      : parsed?.starts.findLast(
          ({ line, isFree }) => line > 1 && (isFree || lines[windowStart + line - 2]!.trim() === ""),
        )
    if (parsed && (isLast || nextStart || parsed.starts.length === 0)) {
      const endLine = nextStart?.line ?? Number.POSITIVE_INFINITY
      for (const { line, heading } of parsed.starts)
        if (line < endLine) starts.push({ line: windowStart + line, heading })
      windowStart = nextStart ? windowStart + nextStart.line - 1 : end
      windowSize = windowChars
      continue
    }
    windowSize *= 2
    if (parsed?.isContainer) workSpent += windowSize ** 2
    if (workSpent > MAX_WORK) throw new Error("it contains a list or quote that takes too long to parse")
  }
  return starts
}

/**
 * The maximum sum of the squares of the window sizes for one text. It is enough for a list item or a quotation of 32,000
 * characters or 2,000 lines.
 */
const MAX_WORK = 1.5e9
const MAX_DEPTH = 100

/**
 * Disables the parsing of paragraphs' content. Sections do not need it, and hostile text can make links and emphasis slow to
 * parse.
 */
const BLOCKS_ONLY: Syntax = {
  disable: {
    null: [
      "attention",
      "autolink",
      "characterEscape",
      "characterReference",
      "codeText",
      "hardBreakEscape",
      "htmlText",
      "labelEnd",
      "labelStartImage",
      "labelStartLink",
    ],
  },
}
const GFM_BLOCKS = blocksOnly(gfm())

function blocksOnly({ document, flow, disable }: Syntax): Syntax {
  return { ...(document && { document }), ...(flow && { flow }), ...(disable && { disable }) }
}

/**
 * Returns the index of the line after a window. A line counts as at least 16 characters, because in a quotation even short lines
 * take time if there are many of them.
 */
function windowEnd(lines: string[], from: number, size: number): number {
  let to = from
  for (let chars = 0; to < lines.length && (chars < size || to === from); to++) chars += Math.max(lines[to]!.length, 16)
  return to
}

/**
 * `isFree` is true if the line cannot continue a block that is still open. Other lines, such as the start of a list that begins
 * with 2, continue such a block unless a blank line precedes them.
 */
type Start = BlockStart & { isFree: boolean }
type ParsedWindow = { starts: Start[]; isContainer: boolean }

/** Returns undefined if the window does not parse, but the text might parse in a larger window. */
function startsIn(text: string, syntax: Syntax[], isLast: boolean): ParsedWindow | undefined {
  try {
    const chunks = preprocess()(text, undefined, true)
    return startsOf(postprocess(parse({ extensions: syntax }).document().write(chunks)))
  } catch (error) {
    if (isLast) throw error
    return undefined
  }
}

function startsOf(events: Event[]): ParsedWindow {
  const starts: Start[] = []
  let depth = 0
  let lastEndLine = 0
  let outerType = ""
  for (const event of events) {
    const [kind, token] = event
    if (kind === "exit") {
      depth--
      if (depth === 0 && !SEPARATORS.has(token.type)) lastEndLine = token.end.line
      continue
    }
    // After a quotation, the parser ends an indented code block after its first line and begins another one.
    const isContinuation = depth === 0 && token.type === "codeIndented" && outerType === "codeIndented"
    if (depth === 0 && !SEPARATORS.has(token.type)) outerType = token.type
    const isStart =
      depth === 0
        ? !SEPARATORS.has(token.type) && !isContinuation
        : depth === 1 && token.type === "listItemPrefix" && LISTS.has(outerType)
    const { line } = token.start
    if (isStart && line > (starts.at(-1)?.line ?? 0) && line > lastEndLine)
      starts.push({ line, isFree: depth === 1 || token.type === "atxHeading" })
    if (outerType === "atxHeading" || outerType === "setextHeading") readHeading(starts.at(-1), event)
    depth++
  }
  return { starts, isContainer: LISTS.has(outerType) || QUOTES.has(outerType) }
}

type Event = ReturnType<typeof postprocess>[number]

const SEPARATORS = new Set<string>(["lineEnding", "lineEndingBlank", "linePrefix", "lineSuffix", "whitespace"])
const LISTS = new Set<string>(["listOrdered", "listUnordered"])
const QUOTES = new Set<string>(["blockQuote", "gfmFootnoteDefinition"])

function readHeading(start: BlockStart | undefined, [, token, context]: Event): void {
  if (!start) return
  const { type } = token
  if (type === "atxHeading" || type === "setextHeading") start.heading = { level: 1, source: "" }
  const { heading } = start
  if (!heading) return
  if (type === "atxHeadingText" || type === "setextHeadingText") heading.source = context.sliceSerialize(token)
  // An ATX heading may end with a second sequence of `#`, which does not count.
  if (type === "atxHeadingSequence" && !heading.source) heading.level = token.end.column - token.start.column
  if (type === "setextHeadingLineSequence") heading.level = context.sliceSerialize(token).startsWith("=") ? 1 : 2
}

/** Throws if a line begins with too many nested quotes or lists. The time to parse them grows faster than their number. */
function refuseDeepNesting(lines: string[]): void {
  const tooDeep = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){101}/
  for (const line of lines) {
    if (line.length > MAX_DEPTH && tooDeep.test(line))
      throw new Error(`it nests quotes or lists more than ${MAX_DEPTH} deep`)
  }
}
