import { visible } from "./visible.ts"

/** How to write to this terminal, or pipe. */
export type Terminal = { columns: number; color: boolean; interactive: boolean }

export function terminalOf(
  stream: { isTTY?: boolean; columns?: number },
  env: Record<string, string | undefined>,
): Terminal {
  const interactive = stream.isTTY === true
  const forced = env.FORCE_COLOR !== undefined && env.FORCE_COLOR !== "0"
  const color = !env.NO_COLOR && env.TERM !== "dumb" && (interactive || forced)
  return { columns: interactive ? Math.max(40, stream.columns ?? 80) : 120, color, interactive }
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
  let width = 0
  for (const character of text) width += characterWidth(character.codePointAt(0)!)
  return width
}

function characterWidth(code: number): number {
  if (code < 0x300) return 1
  if ((code >= 0x300 && code <= 0x36f) || (code >= 0xfe00 && code <= 0xfe0f) || (code >= 0x20d0 && code <= 0x20ff))
    return 0
  const wide =
    (code >= 0x1100 && code <= 0x115f) ||
    (code >= 0x2e80 && code <= 0xa4cf) ||
    (code >= 0xac00 && code <= 0xd7a3) ||
    (code >= 0xf900 && code <= 0xfaff) ||
    (code >= 0xfe30 && code <= 0xfe6f) ||
    (code >= 0xff00 && code <= 0xff60) ||
    (code >= 0xffe0 && code <= 0xffe6) ||
    (code >= 0x1f300 && code <= 0x1faff) ||
    (code >= 0x20000 && code <= 0x3fffd)
  return wide ? 2 : 1
}

/** At most `columns` wide, with an ellipsis where something was cut. */
export function clip(text: string, columns: number): string {
  if (widthOf(text) <= columns) return text
  let width = 0
  let kept = ""
  for (const character of text) {
    width += characterWidth(character.codePointAt(0)!)
    if (width > columns - 1) break
    kept += character
  }
  return `${kept.trimEnd()}…`
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
      const head = clip(rest, columns + 1).slice(0, -1)
      if (head === "") break
      lines.push(head)
      rest = rest.slice(head.length)
    }
    line = line === "" ? rest : `${line} ${rest}`
  }
  if (line !== "") lines.push(line)
  return lines
}
