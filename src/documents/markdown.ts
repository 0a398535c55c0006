import { fromMarkdown, type Extension as Tree } from "mdast-util-from-markdown"
import { gfmFromMarkdown } from "mdast-util-gfm"
import { gfm } from "micromark-extension-gfm"
import type { ParsedDocument } from "./document.ts"
import { isBlank, splitLines } from "./lines.ts"
import { type BlockStart, blockStarts, type MarkdownDialect } from "./markdown-blocks.ts"
import { blocksOfLines, type Heading, headingText, titleOf, toSections } from "./sections.ts"

/** Sections begin at headings of the document itself: not at those in lists, quotes, code or comments. */
export function parseMarkdown(text: string, dialect?: MarkdownDialect): ParsedDocument {
  const lines = splitLines(text)
  const matter = frontMatter(lines)
  const starts = blockStarts(lines.slice(matter.length), dialect).map(({ line, heading }) => ({
    line: line + matter.length,
    ...(heading && { heading: headingOf(heading) }),
  }))
  const headings = starts.flatMap(({ heading }) => heading ?? [])
  const sections = toSections(blocksOfLines(lines, starts))
  return { title: titleOf(headings, titleInMatter(matter)), sections, problems: [] }
}

/** The lines between `---` (YAML) or `+++` (TOML) at the very beginning, and these themselves. */
function frontMatter(lines: string[]): string[] {
  const fence = /^(---|\+\+\+)[ \t]*$/.exec(lines[0] ?? "")?.[1]
  const end = fence ? lines.findIndex((line, i) => i > 0 && line.startsWith(fence) && isBlank(line.slice(3))) : -1
  return lines.slice(0, end + 1)
}

/** `## Text {#anchor}` and `## Text {/* anchor *\/}` name their own anchor. */
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

/** Without the transforms, which look for bare links in every text. */
const INLINE = {
  extensions: [gfm()],
  mdastExtensions: gfmFromMarkdown().map(({ transforms: _, ...extension }): Tree => extension),
}

type Node = ReturnType<typeof fromMarkdown>["children"][number]

/** The words of a heading: no tags, an image's description. */
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

/** `title: …` in YAML, `title = "…"` in TOML, at the outermost level. */
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
