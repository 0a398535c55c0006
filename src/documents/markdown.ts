import { fromMarkdown, type Extension as Tree } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { parse, postprocess, preprocess } from "micromark"
import { gfm } from "micromark-extension-gfm"
import type { ParsedDocument } from "./sections.ts"
import { blocksOfLines, type Heading, headingText, isBlank, splitLines, titleOf, toSections } from "./sections.ts"

/** Cuts Markdown at headings of the document itself, not at those in lists, quotes, code or comments. */
export function parseMarkdown(text: string, dialect?: MarkdownDialect): ParsedDocument {
  const lines = splitLines(text)
  const matter = frontMatter(lines)
  const starts = blockStarts(lines.slice(matter.length), dialect).map(({ line, heading }) => ({
    line: line + matter.length,
    heading: heading && headingOf(heading),
  }))
  const headings = starts.flatMap(({ heading }) => heading ?? [])
  const sections = toSections(blocksOfLines(lines, starts))
  return { title: titleOf(headings, titleInMatter(matter)), sections, problems: [] }
}

/** The lines from `---` (YAML) or `+++` (TOML) at the beginning to the closing one, both included. */
function frontMatter(lines: string[]): string[] {
  const fence = /^(---|\+\+\+)[ \t]*$/.exec(lines[0] ?? "")?.[1]
  const end = fence ? lines.findIndex((line, i) => i > 0 && line.startsWith(fence) && isBlank(line.slice(3))) : -1
  return lines.slice(0, end + 1)
}

/** Parses a heading. `## Text {#anchor}` and `## Text {/* anchor *\/}` name their own anchor. */
function headingOf({ level, source }: NonNullable<BlockStart["heading"]>): Heading {
  const raw = source.slice(0, 1_000)
  const own = /\s*\{(?:#([\w.:-]{1,200})|\/\*\s*([\w.:-]{1,200})\s*\*\/)\}\s*$/.exec(raw)
  const words = own ? raw.slice(0, own.index) : raw
  const text = headingText(/[`*_~[\]<>&\\]/.test(words) ? inlineText(words) : words)
  return { text, level, anchor: own?.[1] ?? own?.[2] }
}

function inlineText(source: string): string {
  const [heading] = fromMarkdown(`# ${source.replace(/[\r\n]+/g, " ")}`, INLINE).children
  return heading ? nodeText(heading) : source
}

/** The inline syntax without the transforms, which look for bare links in every text. */
const INLINE = {
  extensions: [gfm()],
  mdastExtensions: gfmFromMarkdown().map(({ transforms: _, ...extension }): Tree => extension),
}

type Node = ReturnType<typeof fromMarkdown>["children"][number]

/** The text of a heading, without tags and with the descriptions of images. */
function nodeText(node: Node): string {
  const words: string[] = []
  const queue: unknown[] = [node]
  while (queue.length > 0) {
    const next = queue.pop() as { type: string; value?: string; alt?: string; children?: unknown[] }
    if (next.type === "text" || next.type === "inlineCode") words.push(next.value ?? "")
    else if (next.type === "break") words.push(" ")
    else if (next.alt) words.push(next.alt)
    for (let i = (next.children?.length ?? 0) - 1; i >= 0; i--) queue.push(next.children![i])
  }
  return words.join("")
}

/** Finds `title: …` in YAML or `title = "…"` in TOML, at the outermost level. */
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

/** The MDX extensions. They are created for each document, because its scripts have a budget. */
type MarkdownDialect = Syntax

/**
 * The lines on which the document's own blocks begin, in order, with the headings among them. A list's items are blocks, and so
 * is the content between the tags of a component.
 * The parser copies everything it has read whenever a list closes, so its time grows with the square of the text. That is why it
 * reads one window at a time. The last block in a window may continue after it, so the next window begins with an earlier block
 * that always parses the same.
 */
export function blockStarts(lines: string[], dialect?: MarkdownDialect, windowChars = 8_000): BlockStart[] {
  refuseDeepNesting(lines)
  const syntax = [BLOCKS_ONLY, GFM_BLOCKS, ...(dialect ? [blocksOnly(dialect)] : [])]
  const starts: BlockStart[] = []
  let work = 0
  let size = windowChars
  for (let from = 0; from < lines.length; ) {
    const to = windowEnd(lines, from, size)
    const isLast = to === lines.length
    const found = startsIn(lines.slice(from, to).join("\n"), syntax, isLast)
    const next = isLast
      ? undefined
      : found?.starts.findLast(({ line, isFree }) => line > 1 && (isFree || lines[from + line - 2]!.trim() === ""))
    if (found && (isLast || next || found.starts.length === 0)) {
      const until = next?.line ?? Number.POSITIVE_INFINITY
      for (const { line, heading } of found.starts) if (line < until) starts.push({ line: from + line, heading })
      from = next ? from + next.line - 1 : to
      size = windowChars
      continue
    }
    size *= 2
    if (found?.isContainer) work += size ** 2
    if (work > MAX_WORK) throw new Error("it contains a list or quote that takes too long to parse")
  }
  return starts
}

/** The most work for one text, enough for a list item or a quotation of 32,000 characters or 2,000 lines. */
const MAX_WORK = 1.5e9
const MAX_DEPTH = 100

/** Parses nothing inside paragraphs: sections do not need it, and links and emphasis are slow on hostile text. */
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

/** A short line counts as 16 characters, because unmarked lines of a quotation cost time by their number. */
function windowEnd(lines: string[], from: number, size: number): number {
  let to = from
  for (let chars = 0; to < lines.length && (chars < size || to === from); to++) chars += Math.max(lines[to]!.length, 16)
  return to
}

/**
 * `isFree` is true if no open block can absorb this start. Other starts, such as a list that begins with 2, may be absorbed if no
 * blank line precedes them.
 */
type Start = BlockStart & { isFree: boolean }
type Found = { starts: Start[]; isContainer: boolean }

/** Returns undefined if the text does not parse, but may parse with more of the document. */
function startsIn(text: string, syntax: Syntax[], isLast: boolean): Found | undefined {
  try {
    const chunks = preprocess()(text, undefined, true)
    return startsOf(postprocess(parse({ extensions: syntax }).document().write(chunks)))
  } catch (error) {
    if (isLast) throw error
    return undefined
  }
}

function startsOf(events: Event[]): Found {
  const starts: Start[] = []
  let depth = 0
  let lastEnd = 0
  let outer = ""
  for (const event of events) {
    const [kind, token] = event
    if (kind === "exit") {
      depth--
      if (depth === 0 && !BETWEEN.has(token.type)) lastEnd = token.end.line
      continue
    }
    // After a quotation, the parser ends indented code after its first line and begins it again.
    const continues = depth === 0 && token.type === "codeIndented" && outer === "codeIndented"
    if (depth === 0 && !BETWEEN.has(token.type)) outer = token.type
    const begins =
      depth === 0
        ? !BETWEEN.has(token.type) && !continues
        : depth === 1 && token.type === "listItemPrefix" && LISTS.has(outer)
    const { line } = token.start
    if (begins && line > (starts.at(-1)?.line ?? 0) && line > lastEnd)
      starts.push({ line, isFree: depth === 1 || token.type === "atxHeading" })
    if (outer === "atxHeading" || outer === "setextHeading") readHeading(starts.at(-1), event)
    depth++
  }
  return { starts, isContainer: LISTS.has(outer) || QUOTES.has(outer) }
}

type Event = ReturnType<typeof postprocess>[number]

const BETWEEN = new Set<string>(["lineEnding", "lineEndingBlank", "linePrefix", "lineSuffix", "whitespace"])
const LISTS = new Set<string>(["listOrdered", "listUnordered"])
const QUOTES = new Set<string>(["blockQuote", "gfmFootnoteDefinition"])

function readHeading(start: BlockStart | undefined, [, token, context]: Event): void {
  if (!start) return
  const { type } = token
  if (type === "atxHeading" || type === "setextHeading") start.heading = { level: 1, source: "" }
  const { heading } = start
  if (!heading) return
  if (type === "atxHeadingText" || type === "setextHeadingText") heading.source = context.sliceSerialize(token)
  // An ATX heading may have a second sequence, which closes it.
  if (type === "atxHeadingSequence" && !heading.source) heading.level = token.end.column - token.start.column
  if (type === "setextHeadingLineSequence") heading.level = context.sliceSerialize(token).startsWith("=") ? 1 : 2
}

/** Rejects nested quotes and lists on one line, which cost more than their length. */
function refuseDeepNesting(lines: string[]): void {
  const deep = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){101}/
  for (const line of lines) {
    if (line.length > MAX_DEPTH && deep.test(line))
      throw new Error(`it nests quotes or lists more than ${MAX_DEPTH} deep`)
  }
}
