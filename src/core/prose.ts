import { splitIdentifier } from "./words.ts"

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

/** The maximum length of a line of prose, in characters. Longer lines are data, such as a file or a server's reply. */
const MAX_LINE_LENGTH = 4_000
/** The share of a line's characters that must be letters, digits, spaces or punctuation. */
const READABLE_SHARE = 0.8

export function isProse(line: string): boolean {
  if (line.length > MAX_LINE_LENGTH || MACHINE_LINE_PATTERNS.some((pattern) => pattern.test(line))) return false
  // Treat code, links and paths within a sentence as words.
  const plain = line.replace(/`[^`]*`|https?:\/\/\S+|\*\*|[\w@~.-]*\/[\w@~./-]+/g, "x").trim()
  if (plain === "") return false
  const readableChars = plain.replace(/[^\p{L}\p{M}\p{N}\s.,:;!?'’"“”()—–-]/gu, "").length
  return readableChars / plain.length >= READABLE_SHARE
}

/** Patterns that match lines that a program wrote, or that are written for a program. */
const MACHINE_LINE_PATTERNS = [
  /\\[nt"]/, // strings with escapes
  /^\s*\d+\s*[→│|]/, // file contents with line numbers
  /^\s*[\w@~./-]+\.\w+:\d+/, // a search result in a file, or a compiler error
  /^\s*\S+-\d+-/, // context lines printed by grep
  /^\s*(?:@@ |diff --git |\+\+\+ |--- |[+-] {2,}\S|[+-]\t)/, // lines of a diff
  /^\s*(?:[{}[\]()]+[,;]?|"[^"]*":.*|[{[].*[\]},])\s*$/, // lines of JSON
  /[;{}]\s*$|:=|=>|\)\s*\{|\w\(\)?[^)]*\);?$|^\s*(?:\/\/|\/\*|\*\/|#!|#include|import |package |func |const |let |var |return )/, // lines of code
  /^\s*at \S+.*[:(]\d+|^\s*(?:---|===) (?:PASS|FAIL|SKIP|RUN)|^(?:ok|FAIL|PASS)\s|\bgoroutine \d+ \[/, // test results and stack traces
  /^\s*\[?\d{4}-\d\d-\d\d[T ]\d\d:|^\s*\[\w+(?::\w+)*\]\s/, // log lines
  /^\s*(?:[$%>] \S|[-\w]+@[\w-]+[:~])/, // shell prompts
  /^\s*<\/?[a-z][\w-]*(?:\s[^>]*)?>/i, // HTML or XML tags
  /^\s*[\w.-]+\s*[:=]\s*(?:\d+|true|false|null|"[^"]*"|\S+)$/i, // lines of settings files
  /^[\s|:+=─━═-]+$|^\s*={2,} /, // horizontal rules
]

/**
 * A line of Markdown. `headings` are the headings above the line, the nearest last. They include the line itself if it is a
 * heading.
 */
type OutlinedLine = {
  text: string
  /** The offset of the line in the text. */
  start: number
  kind: "text" | "heading" | "fence" | "code"
  headings: string[]
}

const FENCE = /^\s*(`{3,}|~{3,})/
const HEADING = /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/
/** Longer lines are not checked for a heading, because the pattern is slow on them: it retries at every space. */
const MAX_HEADING_LENGTH = 1_000

/**
 * Yields the lines of a Markdown text and says which ones are headings or code. It ignores the rest of Markdown, because that is
 * enough to find sentences. A complete parser took nearly half of the time that dex needs for an answer.
 */
export function* outlineLines(text: string): Generator<OutlinedLine> {
  let enclosingHeadings: { level: number; text: string }[] = []
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
      enclosingHeadings = [
        ...enclosingHeadings.filter((ancestor) => ancestor.level < level),
        { level, text: heading[2]! },
      ]
      headings = enclosingHeadings.map((ancestor) => ancestor.text)
      kind = "heading"
    }
    yield { text: line, start, kind, headings }
    start += line.length + 1
  }
}

/** True for a name that is not an ordinary word, so that a text with this name means it. */
export function isDistinct(name: string): boolean {
  return splitIdentifier(name) !== undefined || /[^\p{L}]/u.test(name)
}

const MAX_QUOTE_LENGTH = 240
/** Of a longer paragraph without sentences, only this much around the name is examined. */
const MAX_EXAMINED_LENGTH = 2_000

/**
 * The first sentence that contains one of these names, and which one. If only a heading contains it, the first sentence below. A
 * name that is an ordinary word counts only if it is marked as code.
 */
export function quoteNaming(text: string, names: string[]): { name: string; sentence: string } | undefined {
  const { prose, headings, code } = paragraphsOf(text)
  for (const name of names) {
    const isNamedIn = namePattern(name)
    const named =
      sentenceIn(prose, isNamedIn) ??
      (headings.some((heading) => heading === name || isNamedIn(heading))
        ? sentenceIn(prose, () => true)
        : undefined) ??
      (isDistinct(name) ? code.find(isNamedIn) : undefined)
    if (named === undefined) continue
    const plain = plainText(cutAround(named, name, MAX_EXAMINED_LENGTH))
    return { name, sentence: cutAround(plain, name, MAX_QUOTE_LENGTH) }
  }
  return undefined
}

function namePattern(name: string): (text: string) => boolean {
  const whole = `(?<![\\w$])${name.replaceAll(/[^\w]/g, "\\$&")}(?![\\w$])`
  const pattern = new RegExp(isDistinct(name) ? whole : `\`[^\`]*${whole}[^\`]*\`|${whole}(?=\\()`)
  return (text) => pattern.test(text)
}

const SENTENCE_END = /(?<=[.!?…])\s+/

function sentenceIn(paragraphs: string[], isWanted: (sentence: string) => boolean): string | undefined {
  for (const paragraph of paragraphs) {
    const sentence = [...paragraph.split(SENTENCE_END), paragraph].find(isWanted)
    if (sentence !== undefined) return sentence
  }
  return undefined
}

/** The paragraphs, items and rows of tables of a Markdown text, each on one line; its headings; and its lines of code. */
function paragraphsOf(text: string): { prose: string[]; headings: string[]; code: string[] } {
  const prose: string[] = []
  const headings: string[] = []
  const code: string[] = []
  let isOpen = false
  for (const { text: line, kind } of outlineLines(text)) {
    const words = line.trim()
    if (kind === "heading") headings.push(words.replace(/^#+\s*/, ""))
    else if (kind === "code") code.push(words)
    const isContinued = isOpen && kind === "text" && words !== "" && !/^(?:[-*+|]|\d+[.)])\s/.test(words)
    if (isContinued) prose[prose.length - 1] += ` ${words}`
    else if (kind === "text" && words !== "") prose.push(words)
    isOpen = kind === "text" && words !== ""
  }
  return { prose, headings, code }
}

/** A sentence without the marks of Markdown that are not part of its words. */
function plainText(sentence: string): string {
  return sentence
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/^\s*(?:[-*+]|\d+[.)])\s+|\*\*|__(?=\S)|(?<=\S)__/g, "")
    .replace(/^\||\|$/g, "")
    .replace(/\s*\|\s*/g, " · ")
    .replace(/\s+/g, " ")
    .trim()
}

/** The part of a long sentence around a name. */
function cutAround(sentence: string, name: string, length: number): string {
  if (sentence.length <= length) return sentence
  const start = Math.max(0, Math.min(sentence.indexOf(name) - length / 2, sentence.length - length))
  const end = start + length
  const part = start === 0 ? sentence.slice(0, end) : sentence.slice(start, end).replace(/^\S*\s/, "…")
  return end >= sentence.length ? part : `${part.replace(/\s\S*$/, "")}…`
}
