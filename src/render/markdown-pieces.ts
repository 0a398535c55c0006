import { fromMarkdown, type Extension as Tree } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { gfm } from "micromark-extension-gfm"

/** A piece of Markdown: blocks, code, or text that is shown as it was written. */
export type MarkdownPiece =
  | { type: "blocks"; blocks: MarkdownBlock[]; source: string }
  | { type: "code"; language: string; text: string }
  | { type: "plain"; text: string }

export type MarkdownBlock = ReturnType<typeof fromMarkdown>["children"][number]
export type Table = Extract<MarkdownBlock, { type: "table" }>
export type List = Extract<MarkdownBlock, { type: "list" }>
export type Inline = Extract<MarkdownBlock, { type: "paragraph" }>["children"][number]

/** How many characters the parser gets at a time. It needs quadratic time for a list or a quotation. */
const PARSER_WINDOW = 2_000
/** The maximum number of characters of a part that cannot be split. A longer one is shown as it was written. */
const MAX_CHARS = 12_000
/** Matches deeply nested quotations and lists on one line, which take longer to parse than other text of their length. */
const DEEP_NESTING = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){20}/m

/** The extensions without their transforms, which look for bare links in every text. */
const SYNTAX = {
  extensions: [gfm()],
  mdastExtensions: gfmFromMarkdown().map(({ transforms: _, ...extension }): Tree => extension),
}

/** Splits Markdown into pieces, so that parsing time is linear in the length of any text. */
export function* markdownPieces(text: string): Generator<MarkdownPiece> {
  for (const part of partsOf(text)) {
    if (part.type === "code") yield part
    else if (part.text.length > MAX_CHARS || DEEP_NESTING.test(part.text)) yield { type: "plain", text: part.text }
    else yield { type: "blocks", blocks: fromMarkdown(part.text, SYNTAX).children, source: part.text }
  }
}

/** The source of a block, for blocks that are not rendered, such as HTML and definitions. */
export function sourceOf({ position }: Pick<MarkdownBlock, "position">, source: string): string {
  return source.slice(position?.start.offset ?? 0, position?.end.offset ?? 0)
}

type SourcePart = { type: "flow"; text: string } | Extract<MarkdownPiece, { type: "code" }>

/** Splits a text into top-level fenced code and the text in between. Long text is split further, at the ends of blocks. */
function partsOf(text: string): SourcePart[] {
  const parts: SourcePart[] = []
  let flowLines: string[] = []
  let size = 0
  const flush = () => {
    if (flowLines.some((line) => line.trim() !== "")) parts.push({ type: "flow", text: flowLines.join("\n") })
    flowLines = []
    size = 0
  }
  const lines = text.split("\n")
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!
    const [, fence, language] = /^(`{3,}|~{3,})[ \t]*([^\s`]*)[^`]*$/.exec(line) ?? []
    if (fence !== undefined) {
      let last = i + 1
      while (last < lines.length && !(lines[last]!.startsWith(fence) && /^(.)\1*\s*$/.test(lines[last]!))) last++
      flush()
      parts.push({ type: "code", language: language ?? "", text: lines.slice(i + 1, last).join("\n") })
      i = last
      continue
    }
    if (
      size > PARSER_WINDOW &&
      /^\S/.test(line) &&
      (flowLines.at(-1)?.trim() === "" || /^(?:[-*+]|\d{1,9}[.)]) /.test(line))
    )
      flush()
    flowLines.push(line)
    size += line.length + 1
  }
  flush()
  return parts
}
