import type { RereadBudget, Span } from "./rules.ts"
import { ruleFor, secretKind } from "./secret-names.ts"
import { isGenerated, isPassword } from "./values.ts"

// Finds secrets in a column whose heading names them, in tables of psql, mysql, Markdown and CSV.

const MAX_LINE_CHARS = 400
const MAX_ROWS = 100
const RULE_LINE = /^[ \t]*[|+]?[ \t]*:?-{2,}[-+|: \t]*$/
const CSV_HEADER = /^[\w. "'-]{1,60}(?:,[\w. "'-]{1,60}){1,40}$/

/** Finds every secret in the column whose heading is the name from `start` to `end`. */
export function findColumn(text: string, start: number, end: number, rereads: RereadBudget, spans: Span[]): void {
  const separator = separatorBeside(text, start, end)
  if (!separator || rereads.left <= 0) return
  const headerStart = lineStart(text, start)
  if (headerStart === -1) return
  const headerEnd = lineEnd(text, end)
  if (headerEnd === -1 || headerEnd === text.length) return
  const header = text.slice(headerStart, headerEnd)
  const cells = header.split(separator)
  const column = header.slice(0, start - headerStart).split(separator).length - 1
  if (trimCell(cells[column]!) !== text.slice(start, end)) return
  let rowStart = headerEnd + 1
  const nextEnd = lineEnd(text, rowStart)
  if (nextEnd === -1) return
  const isRuled = RULE_LINE.test(text.slice(rowStart, nextEnd).trimEnd())
  if (separator === "," ? !CSV_HEADER.test(header.trimEnd()) : !isRuled) return
  const kind = secretKind(text.slice(start, end))
  if (kind !== "password" && kind !== "token") return
  if (isRuled) rowStart = nextEnd + 1
  for (let row = 0; row < MAX_ROWS && rowStart < text.length && rereads.left > 0; row++) {
    const rowEnd = lineEnd(text, rowStart)
    if (rowEnd === -1) return
    const line = text.slice(rowStart, rowEnd)
    rereads.left -= line.length + 1
    const rowCells = line.split(separator)
    if (rowCells.length !== cells.length) return
    const value = trimCell(rowCells[column]!)
    const isSecret = kind === "password" ? isPassword(value, false) : isGenerated(value)
    if (isSecret && !value.includes("[REDACTED")) {
      const from =
        rowStart +
        rowCells.slice(0, column).join(separator).length +
        (column > 0 ? 1 : 0) +
        rowCells[column]!.indexOf(value)
      spans.push({ start: from, end: from + value.length, rule: ruleFor(kind) })
    }
    rowStart = rowEnd + 1
  }
}

/** The separator between the cells of the row that contains the name. Undefined if the name is not a complete cell. */
function separatorBeside(text: string, start: number, end: number): "|" | "," | undefined {
  let afterName = end
  while (afterName < end + 60 && isPadding(text[afterName])) afterName++
  let beforeName = start
  while (beforeName > start - 60 && isPadding(text[beforeName - 1])) beforeName--
  const nextCharacter = text[afterName] ?? "\n"
  const previousCharacter = text[beforeName - 1] ?? "\n"
  if (nextCharacter !== "|" && nextCharacter !== "," && nextCharacter !== "\n" && nextCharacter !== "\r")
    return undefined
  if (previousCharacter === "|" || previousCharacter === ",")
    return nextCharacter === previousCharacter || nextCharacter === "\n" || nextCharacter === "\r"
      ? previousCharacter
      : undefined
  return previousCharacter === "\n" && (nextCharacter === "|" || nextCharacter === ",") ? nextCharacter : undefined
}

function isPadding(character: string | undefined): boolean {
  return character === " " || character === "\t" || character === "`" || character === '"' || character === "*"
}

function trimCell(cell: string): string {
  return cell.replace(/^[\s`"*]+|[\s`"*]+$/g, "")
}

// `lineStart` and `lineEnd` are called for every name that could be a heading. Searching in a slice is ten times faster than a
// loop.

function lineStart(text: string, from: number): number {
  const searchStart = Math.max(0, from - MAX_LINE_CHARS - 1)
  const newline = text.slice(searchStart, from).lastIndexOf("\n")
  if (newline === -1) return searchStart === 0 && from <= MAX_LINE_CHARS ? 0 : -1
  return searchStart + newline + 1
}

function lineEnd(text: string, from: number): number {
  const newline = text.slice(from, from + MAX_LINE_CHARS + 1).indexOf("\n")
  if (newline === -1) return from + MAX_LINE_CHARS >= text.length ? text.length : -1
  return from + newline
}
