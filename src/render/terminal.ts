import stringWidth from "fast-string-width"
import { programOf } from "./program.ts"
import { visible } from "./visible.ts"

/** How to write to this terminal, or pipe. */
export type Terminal = {
  columns: number
  color: boolean
  interactive: boolean
  /** What is typed here to start dex, where that is not `dex`. */
  program?: string
}

export function terminalOf(
  stream: { isTTY?: boolean; columns?: number },
  env: Record<string, string | undefined>,
): Terminal {
  const interactive = stream.isTTY === true
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "0"
  const color = !env.NO_COLOR && env.TERM !== "dumb" && (interactive || forced)
  const program = programOf(env)
  return {
    columns: interactive ? Math.max(40, stream.columns ?? 80) : 120,
    color,
    interactive,
    ...(program !== undefined && { program }),
  }
}

export type Style = "bold" | "dim" | "red" | "green" | "yellow" | "cyan"
const CODES: Record<Style, number> = { bold: 1, dim: 2, red: 31, green: 32, yellow: 33, cyan: 36 }

export function paint(terminal: Pick<Terminal, "color">, style: Style, text: string): string {
  return terminal.color && text !== "" ? `\x1b[${CODES[style]}m${text}\x1b[0m` : text
}

/** Text from a transcript as it may reach a screen. */
export function safe(text: string): string {
  return visible(text)
}

/** On one line, whatever it held. */
export function safeLine(text: string): string {
  return safe(text).replace(/\s+/g, " ").trim()
}

/** How many columns a text takes: East Asian wide characters and emoji take two, combining marks none. */
export function widthOf(text: string): number {
  return NARROW.test(text) ? text.length : stringWidth(text)
}

/** Letters, punctuation, arrows and lines of one column each, as most texts and all of our own: a fiftieth of the time. */
const NARROW = /^[\x20-\x7e\xa0-\u02ff\u2010-\u2027\u2030-\u205e\u2190-\u2218\u2500-\u259f]*$/

/** What is drawn as one: a letter with its marks, an emoji of several. Intl.Segmenter would do, and takes 10 ms to start. */
const SIGNS =
  /(?:\p{RI}{2}|\p{Extended_Pictographic}\p{EMod}?(?:\p{M}*\u200d\p{Extended_Pictographic}\p{EMod}?)*|.)[\p{M}\u200c\u200d]*/gsu

/** As many whole signs from the beginning as fit. */
function fitting(text: string, columns: number): string {
  if (NARROW.test(text)) return text.slice(0, Math.max(0, columns))
  let width = 0
  let end = 0
  for (const [sign] of text.matchAll(SIGNS)) {
    width += widthOf(sign)
    if (width > columns) break
    end += sign.length
  }
  return text.slice(0, end)
}

/** At most `columns` wide, with an ellipsis where something was cut. */
export function clip(text: string, columns: number): string {
  return widthOf(text) <= columns ? text : `${fitting(text, columns - 1).trimEnd()}…`
}

export function padEnd(text: string, columns: number): string {
  return text + " ".repeat(Math.max(0, columns - widthOf(text)))
}

/** Breaks at spaces; a word longer than a line is broken where it must be. */
export function wrap(text: string, columns: number): string[] {
  const lines: string[] = []
  let line = ""
  for (const word of text.split(" ")) {
    let rest = word
    if (line !== "" && widthOf(line) + 1 + widthOf(rest) > columns) {
      lines.push(line)
      line = ""
    }
    while (widthOf(rest) > columns) {
      const head = fitting(rest, columns)
      if (head === "") break
      lines.push(head)
      rest = rest.slice(head.length)
    }
    line = line === "" ? rest : `${line} ${rest}`
  }
  if (line !== "") lines.push(line)
  return lines
}
