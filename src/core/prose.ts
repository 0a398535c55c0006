/**
 * Returns only those lines of a text that are written for people. Leaves out code blocks, JSON, file contents with line numbers,
 * diffs, logs and stack traces. The result may be empty.
 */
export function proseOf(text: string): string {
  return [...outlineLines(text)]
    .filter(({ kind, text }) => (kind === "text" || kind === "heading") && isProse(text))
    .map(({ text }) => text)
    .join("\n")
}

/** The number of characters after which a line counts as data: a file or a server's reply. */
const MAX_LINE_LENGTH = 4_000
/** The share of a line's characters that must be letters, spaces and punctuation. */
const READABLE_SHARE = 0.8

export function isProse(line: string): boolean {
  if (line.length > MAX_LINE_LENGTH || MACHINE_LINES.some((pattern) => pattern.test(line))) return false
  // Treat code, links and paths within a sentence as words.
  const plain = line.replace(/`[^`]*`|https?:\/\/\S+|\*\*|[\w@~.-]*\/[\w@~./-]+/g, "x").trim()
  if (plain === "") return false
  const readable = plain.replace(/[^\p{L}\p{M}\p{N}\s.,:;!?'’"“”()—–-]/gu, "").length
  return readable / plain.length >= READABLE_SHARE
}

/** Patterns of lines that a program wrote or that are meant for one. */
const MACHINE_LINES = [
  /\\[nt"]/, // an escaped string inside a program
  /^\s*\d+\s*[→│|]/, // a file with line numbers
  /^\s*[\w@~./-]+\.\w+:\d+/, // a search result in a file, or a compiler error
  /^\s*\S+-\d+-/, // the context lines of a grep
  /^\s*(?:@@ |diff --git |\+\+\+ |--- |[+-] {2,}\S|[+-]\t)/, // a diff
  /^\s*(?:[{}[\]()]+[,;]?|"[^"]*":.*|[{[].*[\]},])\s*$/, // JSON
  /[;{}]\s*$|:=|=>|\)\s*\{|\w\(\)?[^)]*\);?$|^\s*(?:\/\/|\/\*|\*\/|#!|#include|import |package |func |const |let |var |return )/, // code
  /^\s*at \S+.*[:(]\d+|^\s*(?:---|===) (?:PASS|FAIL|SKIP|RUN)|^(?:ok|FAIL|PASS)\s|\bgoroutine \d+ \[/, // tests and traces
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:|^\s*\[\w+(?::\w+)*\]\s/, // logs
  /^\s*(?:[$%>] \S|[-\w]+@[\w-]+[:~])/, // a shell
  /^\s*<\/?[a-z][\w-]*(?:\s[^>]*)?>/i, // markup
  /^\s*[\w.-]+\s*[:=]\s*(?:\d+|true|false|null|"[^"]*"|\S+)$/i, // settings
  /^[\s|:+=─━═-]+$|^\s*={2,} /, // horizontal rules
]

/** A line of Markdown. `headings` are the headings above it, the nearest last; a heading's own text is included. */
type OutlinedLine = {
  text: string
  /** The line's offset in the text. */
  start: number
  kind: "text" | "heading" | "fence" | "code"
  headings: string[]
}

const FENCE = /^\s*(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/
/** Longer lines are not checked for a heading, because the pattern is slow on them: it retries at every space. */
const MAX_HEADING_LENGTH = 1_000

/**
 * Yields the lines of a Markdown text, with headings and code marked. It handles nothing else of Markdown, which is enough to
 * find sentences; a complete parser took nearly half of the time of an answer.
 */
export function* outlineLines(text: string): Generator<OutlinedLine> {
  let enclosing: { level: number; text: string }[] = []
  let headings: string[] = []
  let fence: string | undefined
  let start = 0
  for (const line of text.split("\n")) {
    const mark = FENCE.exec(line)?.[1]
    let kind: OutlinedLine["kind"] = fence === undefined ? "text" : "code"
    if (mark !== undefined && (fence === undefined || mark.startsWith(fence))) {
      fence = fence === undefined ? mark : undefined
      kind = "fence"
    }
    const heading = kind === "text" && line.length <= MAX_HEADING_LENGTH ? HEADING.exec(line) : null
    if (heading) {
      const level = heading[1]!.length
      enclosing = [...enclosing.filter((ancestor) => ancestor.level < level), { level, text: heading[2]! }]
      headings = enclosing.map((ancestor) => ancestor.text)
      kind = "heading"
    }
    yield { text: line, start, kind, headings }
    start += line.length + 1
  }
}
