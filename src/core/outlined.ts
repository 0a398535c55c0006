/** A line of Markdown: `headings` are those above it, its own included, the nearest last. */
export type OutlinedLine = {
  text: string
  /** Where it begins in the whole. */
  start: number
  kind: "text" | "heading" | "fence" | "code"
  headings: string[]
}

const FENCE = /^\s*(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/
/** A longer line is no heading, however it begins: the pattern would look at it for every space in it. */
const LONGEST_HEADING = 1_000

/**
 * Markdown line by line, with what is a heading and what is code. It knows nothing else of Markdown: that is enough to tell sentences
 * apart, and a parser of all of it was nearly half of the work of an answer.
 */
export function* outlined(text: string): Generator<OutlinedLine> {
  let above: { level: number; text: string }[] = []
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
    const heading = kind === "text" && line.length <= LONGEST_HEADING ? HEADING.exec(line) : null
    if (heading) {
      const level = heading[1]!.length
      above = [...above.filter((one) => one.level < level), { level, text: heading[2]! }]
      headings = above.map((one) => one.text)
      kind = "heading"
    }
    yield { text: line, start, kind, headings }
    start += line.length + 1
  }
}
