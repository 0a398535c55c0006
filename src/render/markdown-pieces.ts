import { fromMarkdown, type Extension as Tree } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { gfm } from "micromark-extension-gfm"

/** A piece of a text in Markdown: its blocks, code, or what is shown as it was written. */
export type MarkdownPiece =
  | { type: "blocks"; blocks: MarkdownBlock[]; source: string }
  | { type: "code"; language: string; text: string }
  | { type: "plain"; text: string }

export type MarkdownBlock = ReturnType<typeof fromMarkdown>["children"][number]
export type Table = Extract<MarkdownBlock, { type: "table" }>
export type List = Extract<MarkdownBlock, { type: "list" }>
export type Inline = Extract<MarkdownBlock, { type: "paragraph" }>["children"][number]

/** The parser's time grows with the square of a list or a quotation: it is given a few kilobytes at a time. */
const WINDOW = 2_000
/** What cannot be split below this is shown as it was written. */
const MOST_CHARS = 12_000
/** Quotes and lists within each other on one line cost more than their length. */
const DEEP = /^(?:[ \t]*(?:>|(?:[-+*]|\d{1,9}[.)])(?=[ \t]))){20}/m

/** Without the transforms, which look for bare links in every text. */
const SYNTAX = {
  extensions: [gfm()],
  mdastExtensions: gfmFromMarkdown().map(({ transforms: _, ...extension }): Tree => extension),
}

/** A text in Markdown, in pieces, so that parsing takes no longer than its length, whatever somebody wrote. */
export function* markdownPieces(text: string): Generator<MarkdownPiece> {
  for (const part of partsOf(text)) {
    if (part.type === "code") yield part
    else if (part.text.length > MOST_CHARS || DEEP.test(part.text)) yield { type: "plain", text: part.text }
    else yield { type: "blocks", blocks: fromMarkdown(part.text, SYNTAX).children, source: part.text }
  }
}

/** What has no form of its own, HTML and definitions, stands as it was written. */
export function sourceOf({ position }: Pick<MarkdownBlock, "position">, source: string): string {
  return source.slice(position?.start.offset ?? 0, position?.end.offset ?? 0)
}

type Part = { type: "flow"; text: string } | Extract<MarkdownPiece, { type: "code" }>

/** Fenced code of the text itself, and what stands between, in parts that end where blocks do. */
function partsOf(text: string): Part[] {
  const found: Part[] = []
  let flowing: string[] = []
  let size = 0
  const flush = () => {
    if (flowing.some((line) => line.trim() !== "")) found.push({ type: "flow", text: flowing.join("\n") })
    flowing = []
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
      found.push({ type: "code", language: language ?? "", text: lines.slice(i + 1, last).join("\n") })
      i = last
      continue
    }
    if (size > WINDOW && /^\S/.test(line) && (flowing.at(-1)?.trim() === "" || /^(?:[-*+]|\d{1,9}[.)]) /.test(line)))
      flush()
    flowing.push(line)
    size += line.length + 1
  }
  flush()
  return found
}
