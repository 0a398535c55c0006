import { messageOf } from "../core/error.ts"
import type { ParsedDocument } from "./sections.ts"
import { splitLines } from "./sections.ts"

export type DocumentFormat = "markdown" | "mdx" | "html" | "text"

/**
 * The size of the largest document that dex reads, in bytes. Nobody reads a longer one, and parsing it would need more memory
 * than a command may use.
 */
export const MAX_DOCUMENT_BYTES = 2_000_000

/** Returns the format of a file, from its extension. Returns undefined if the file is not a document. */
export function formatOf(path: string): DocumentFormat | undefined {
  return FORMATS.get(/\.([a-z]+)$/i.exec(path)?.[1]?.toLowerCase() ?? "")
}

const FORMATS = new Map<string, DocumentFormat>([
  ["md", "markdown"],
  ["markdown", "markdown"],
  ["mdown", "markdown"],
  ["mkd", "markdown"],
  ["mdx", "mdx"],
  ["html", "html"],
  ["htm", "html"],
  ["xhtml", "html"],
  ["txt", "text"],
  ["text", "text"],
  ["rst", "text"],
  ["adoc", "text"],
  ["asciidoc", "text"],
])

/**
 * Splits a document into sections. Never throws: a document that does not parse is read as plain text, and one that is too long
 * has no sections. In both cases `problems` says why.
 * In Markdown and text, every line belongs to exactly one section, except front matter and blank lines before the first section.
 * Lines end with LF, CRLF or CR. A byte order mark is removed.
 */
export async function parseDocument(text: string, format: DocumentFormat): Promise<ParsedDocument> {
  const body = text.charCodeAt(0) === 0xfeff ? text.slice(1) : text
  if (body.length > MAX_DOCUMENT_BYTES) return tooLongDocument(body.length)
  try {
    return await parsers[format](body)
  } catch (error) {
    const { parseText } = await import("./text.ts")
    const parsed = parseText(splitLines(body))
    return { ...parsed, problems: [`Read as plain text, because it does not parse as ${format}: ${messageOf(error)}`] }
  }
}

const parsers: Record<DocumentFormat, (text: string) => Promise<ParsedDocument>> = {
  markdown: async (text) => (await import("./markdown.ts")).parseMarkdown(text),
  mdx: async (text) => (await import("./mdx.ts")).parseMdx(text),
  html: async (text) => (await import("./html.ts")).parseHtml(text),
  text: async (text) => (await import("./text.ts")).parseText(splitLines(text)),
}

function tooLongDocument(length: number): ParsedDocument {
  const problem = `Not read: it has ${length} characters, and the limit is ${MAX_DOCUMENT_BYTES}.`
  return { title: "", sections: [], problems: [problem] }
}
