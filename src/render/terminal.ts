import { realpathSync } from "node:fs"
import { delimiter, join, sep } from "node:path"
import stringWidth from "fast-string-width"
import { visibleText } from "./visible.ts"

/** The properties of a terminal or pipe that decide how to write to it. */
export type Terminal = {
  columns: number
  color: boolean
  interactive: boolean
  /** The command that starts dex here, if it is not `dex`. */
  program?: string
}

export function terminalOf(
  stream: { isTTY?: boolean; columns?: number },
  env: Record<string, string | undefined>,
): Terminal {
  const interactive = stream.isTTY === true
  const isColorForced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "0"
  const color = !env.NO_COLOR && env.TERM !== "dumb" && (interactive || isColorForced)
  const program = programOf(env)
  return {
    columns: interactive ? Math.max(40, stream.columns ?? 80) : 120,
    color,
    interactive,
    ...(program !== undefined && { program }),
  }
}

const STYLE_CODES = { bold: 1, dim: 2, italic: 3, red: 31, green: 32, yellow: 33, blue: 34, magenta: 35, cyan: 36 }
export type Style = keyof typeof STYLE_CODES

export function paint(terminal: Pick<Terminal, "color">, style: Style, text: string): string {
  return terminal.color && text !== "" ? `\x1b[${STYLE_CODES[style]}m${text}\x1b[0m` : text
}

/** Makes text of a transcript safe to print. */
export function safe(text: string): string {
  return visibleText(text)
}

/** Makes text of a transcript safe to print on one line. */
export function safeLine(text: string): string {
  return safe(text).replace(/\s+/g, " ").trim()
}

/** Like `safeLine`. What looks like a tag, of dex or of an agent, becomes plain text too; comparison operators stay. */
export function plainLine(text: string): string {
  return safeLine(text).replace(/<(?!=| [\w(])/g, "‹")
}

/** How many columns a text takes: East Asian wide characters and emoji take two, combining marks none. */
export function widthOf(text: string): number {
  return SINGLE_COLUMN_TEXT.test(text) ? text.length : stringWidth(text)
}

/** Matches texts whose characters all take one column, like most texts. This check is 50 times faster than `stringWidth`. */
const SINGLE_COLUMN_TEXT = /^[\x20-\x7e\xa0-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u2218\u2500-\u259f]*$/

/**
 * Matches grapheme clusters: a letter with its marks, a composed emoji. Intl.Segmenter would work too, but takes 10 ms to start.
 */
const GRAPHEME_CLUSTERS =
  /(?:\p{RI}{2}|\p{Extended_Pictographic}\p{EMod}?(?:\p{M}*\u200d\p{Extended_Pictographic}\p{EMod}?)*|.)[\p{M}\u200c\u200d]*/gsu

export function graphemesOf(text: string): string[] {
  return text.match(GRAPHEME_CLUSTERS) ?? []
}

/** The beginning of a text: as many complete grapheme clusters as fit into `columns`. */
export function cutToColumns(text: string, columns: number): string {
  if (SINGLE_COLUMN_TEXT.test(text)) return text.slice(0, Math.max(0, columns))
  let width = 0
  let end = 0
  for (const [cluster] of text.matchAll(GRAPHEME_CLUSTERS)) {
    width += widthOf(cluster)
    if (width > columns) break
    end += cluster.length
  }
  return text.slice(0, end)
}

/** The end of a text: as many complete grapheme clusters as fit into `columns`. */
export function endThatFits(text: string, columns: number): string {
  const graphemes = graphemesOf(text)
  let width = 0
  let start = graphemes.length
  while (start > 0 && width + widthOf(graphemes[start - 1]!) <= columns) width += widthOf(graphemes[--start]!)
  return graphemes.slice(start).join("")
}

/** The text cut to `columns` columns, with an ellipsis if something was cut. */
export function clip(text: string, columns: number): string {
  return widthOf(text) <= columns ? text : `${cutToColumns(text, columns - 1).replace(/[\s…]+$/, "")}…`
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)))
}

/**
 * Wraps text at spaces, and inside a word only if the word is longer than a line. Colours continue on the next line. All text is
 * wrapped by this function.
 */
export function wrap(text: string, columns: number): string[] {
  const { plain, codes } = withoutCodes(text)
  let activeCodes = ""
  return lineRanges(plain, columns).map(([from, to]) => {
    const line = plain.slice(from, to)
    if (codes.length === 0 && activeCodes === "") return line
    const coloured = withCodes(line, from, codes, activeCodes)
    activeCodes = coloured.open
    return coloured.text
  })
}

/** Wraps text after a label, a bullet or an indentation. Every line begins in the column where the first line's text does. */
export function wrapAfter(lead: string, text: string, columns: number): string[] {
  const width = widthOf(lead)
  const [first = "", ...more] = wrap(text, Math.max(1, columns - width))
  return [lead + first, ...more.map((line) => " ".repeat(width) + line)]
}

/** Wraps a line of a text with lists and indentations. */
export function wrapLine(line: string, columns: number): string[] {
  const [lead = ""] = /^\s*(?:(?:[-*•]|\d+\.|>) +)?/.exec(line)!
  if (widthOf(line) <= columns) return [line]
  return widthOf(lead) > columns / 2 ? wrap(line, columns) : wrapAfter(lead, line.slice(lead.length), columns)
}

/** The beginning and end of each line. Spaces at a break belong to no line. */
function lineRanges(text: string, columns: number): [from: number, to: number][] {
  const lines: [number, number][] = []
  let from = -1
  let to = 0
  let width = 0
  let nextWordStart = 0
  for (const word of text.split(" ")) {
    let wordStart = nextWordStart
    nextWordStart += word.length + 1
    let wordWidth = widthOf(word)
    if (from >= 0 && width + 1 + wordWidth > columns) {
      lines.push([from, to])
      from = -1
    }
    while (wordWidth > columns) {
      // A word may be a complete file, so only a part a few times longer than a line is measured.
      const head = cutToColumns(
        text.slice(wordStart, Math.min(nextWordStart - 1, wordStart + 8 * columns + 64)),
        columns,
      )
      if (head === "") break
      lines.push([wordStart, wordStart + head.length])
      wordStart += head.length
      wordWidth -= widthOf(head)
    }
    if (from < 0 && wordWidth === 0 && wordStart === nextWordStart - 1) continue
    width = from < 0 ? wordWidth : width + 1 + wordWidth
    if (from < 0) from = wordStart
    to = nextWordStart - 1
  }
  if (from >= 0) lines.push([from, to])
  return lines
}

type StyleCode = { at: number; code: string }

function withoutCodes(text: string): { plain: string; codes: StyleCode[] } {
  const codes: StyleCode[] = []
  if (!text.includes("\x1b")) return { plain: text, codes }
  let removed = 0
  const plain = text.replace(/\x1b\[[\d;]*m/g, (code, at: number) => {
    codes.push({ at: at - removed, code })
    removed += code.length
    return ""
  })
  return { plain, codes }
}

/** Puts a line's codes back into it and removes them from the list. The result's `open` is the codes active at the line's end. */
function withCodes(line: string, from: number, codes: StyleCode[], open: string): { text: string; open: string } {
  let text = ""
  let end = 0
  let active = open
  while (codes.length > 0 && codes[0]!.at <= from + line.length) {
    const { at, code } = codes.shift()!
    const next = Math.max(end, at - from)
    text += withActiveCodes(line.slice(end, next), active)
    end = next
    active = code === "\x1b[0m" ? "" : code === INVERSE_OFF ? active.replaceAll(INVERSE_ON, "") : active + code
  }
  return { text: text + withActiveCodes(line.slice(end), active), open: active }
}

const INVERSE_ON = "\x1b[7m"
const INVERSE_OFF = "\x1b[27m"

/** Matches any of these words as a complete word, ignoring case. */
export function wordPattern(words: readonly string[]): RegExp {
  const longestFirst = [...words]
    .sort((a, b) => b.length - a.length)
    .map((word) => word.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"))
  return new RegExp(`(?<![\\p{L}\\p{N}])(?:${longestFirst.join("|")})(?![\\p{L}\\p{N}])`, "giu")
}

/** Inverts every matching word of a line. Colours are kept. */
export function markWords(line: string, words: RegExp): string {
  const { plain, codes } = withoutCodes(line)
  const marks = [...plain.matchAll(words)].flatMap(({ 0: word, index }) => [
    { at: index, code: INVERSE_ON },
    { at: index + word.length, code: INVERSE_OFF },
  ])
  if (marks.length === 0) return line
  const allCodes = [...codes, ...marks].sort((a, b) => a.at - b.at)
  return withCodes(plain, 0, allCodes, "").text
}

function withActiveCodes(text: string, active: string): string {
  return text === "" || active === "" ? text : `${active}${text}\x1b[0m`
}

/**
 * The command that starts dex, if typing `dex` would not work: npm started it from its cache or from a project's packages, and no
 * `dex` on the PATH is this one.
 */
export function programOf(
  env: Record<string, string | undefined>,
  script: string | undefined = process.argv[1],
): string | undefined {
  if (env.npm_command === undefined || script === undefined) return undefined
  const thisScript = realPathOrUndefined(script)
  if (thisScript === undefined || !thisScript.includes(PACKAGE_FOLDER)) return undefined
  const folders = (env.PATH ?? env.Path ?? "").split(delimiter)
  // npm puts its own folders first while it runs.
  const ownFolders = folders.filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder))
  return ownFolders.some((folder) => startsThisDex(folder, thisScript)) ? undefined : "npx dexctx"
}

const PACKAGE_FOLDER = `${sep}node_modules${sep}dexctx${sep}`

/**
 * True if the folder contains a command that starts this dex. On Windows it is a small script next to the folder of the packages;
 * on other systems, a link.
 */
function startsThisDex(folder: string, thisScript: string): boolean {
  if (process.platform !== "win32") return realPathOrUndefined(join(folder, "dex")) === thisScript
  return (
    realPathOrUndefined(join(folder, "dex.cmd")) !== undefined &&
    thisScript.startsWith(`${realPathOrUndefined(folder)}${PACKAGE_FOLDER}`)
  )
}

function realPathOrUndefined(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined // there is no such file
  }
}
