import { EditProblem, lineNumber } from "./edit.ts"

/** A header or a key of a TOML text, with its position from the start of its line to the end. */
export type TomlStatement = {
  type: "header" | "list_header" | "key"
  /** For a header, the table; for a key, the table followed by the key's own name. */
  path: string[]
  start: number
  /** The position after the line's end. */
  end: number
  /** The text between = and the end or comment, trimmed; empty for headers. */
  value: string
}

/** Throws an EditProblem for invalid TOML. Only strings, brackets and names are checked, not values. */
export function tomlStatements(text: string): TomlStatement[] {
  const statements: TomlStatement[] = []
  let table: string[] = []
  let at = text.startsWith("\ufeff") ? 1 : 0
  while (at < text.length) {
    const start = at
    at = skipBlanks(text, at)
    if (isLineEnd(text, at) || text[at] === "#") {
      at = nextLine(text, at)
      continue
    }
    if (text[at] === "[") {
      const double = text[at + 1] === "["
      const name = readName(text, at + (double ? 2 : 1))
      at = name.end
      if (!text.startsWith(double ? "]]" : "]", at)) throw wrong(text, at)
      at = lineRest(text, at + (double ? 2 : 1))
      table = name.path
      statements.push({ type: double ? "list_header" : "header", path: table, start, end: at, value: "" })
      continue
    }
    const name = readName(text, at)
    if (text[name.end] !== "=") throw wrong(text, name.end)
    const valueStart = skipBlanks(text, name.end + 1)
    const valueEnd = pastValue(text, valueStart)
    at = lineRest(text, valueEnd)
    const value = text.slice(valueStart, valueEnd).trim()
    statements.push({ type: "key", path: [...table, ...name.path], start, end: at, value })
  }
  return statements
}

/** Reads a dotted name such as `a."b c".d`, with blanks around the dots. */
function readName(text: string, from: number): { path: string[]; end: number } {
  const path: string[] = []
  let at = from
  for (;;) {
    at = skipBlanks(text, at)
    if (text[at] === '"' || text[at] === "'") {
      const end = pastString(text, at)
      path.push(text[at] === '"' ? unquote(text, at, end) : text.slice(at + 1, end - 1))
      at = end
    } else {
      const bare = /^[\w-]+/.exec(text.slice(at, at + 500))?.[0]
      if (bare === undefined) throw wrong(text, at)
      path.push(bare)
      at += bare.length
    }
    at = skipBlanks(text, at)
    if (text[at] !== ".") return { path, end: at }
    at++
  }
}

function unquote(text: string, start: number, end: number): string {
  try {
    return JSON.parse(text.slice(start, end)) as string
  } catch {
    return text.slice(start + 1, end - 1) // an escape that JSON does not have; none of dex's names has one
  }
}

/** The end of a value: on this line, or on the line where its last bracket or its long string ends. */
function pastValue(text: string, from: number): number {
  let at = from
  let depth = 0
  while (at < text.length) {
    const character = text[at]!
    if (character === '"' || character === "'") at = pastString(text, at)
    else if (character === "#") {
      if (depth === 0) return at
      at = nextLine(text, at)
    } else if (depth === 0 && isLineEnd(text, at)) return at
    else {
      if ("[{".includes(character)) depth++
      if ("]}".includes(character)) depth--
      if (depth < 0) throw wrong(text, at)
      at++
    }
  }
  if (depth > 0) throw wrong(text, from)
  return at
}

function pastString(text: string, start: number): number {
  const quote = text[start]!
  const long = quote.repeat(3)
  if (text.startsWith(long, start)) {
    let at = start + 3
    while (at < text.length && !text.startsWith(long, at)) at += quote === '"' && text[at] === "\\" ? 2 : 1
    if (at >= text.length) throw wrong(text, start)
    at += 3
    // Up to two quotes may precede the closing three.
    while (text[at] === quote) at++
    return at
  }
  let at = start + 1
  while (at < text.length && text[at] !== quote && text[at] !== "\n") at += quote === '"' && text[at] === "\\" ? 2 : 1
  if (text[at] !== quote) throw wrong(text, start)
  return at + 1
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (text[at] === " " || text[at] === "\t") at++
  return at
}

function isLineEnd(text: string, at: number): boolean {
  return at >= text.length || text[at] === "\n" || text.startsWith("\r\n", at)
}

function nextLine(text: string, at: number): number {
  const end = text.indexOf("\n", at)
  return end < 0 ? text.length : end + 1
}

/** Skips the rest of the line, which may contain only blanks and a comment. */
function lineRest(text: string, from: number): number {
  const at = skipBlanks(text, from)
  if (!isLineEnd(text, at) && text[at] !== "#") throw wrong(text, at)
  return nextLine(text, at)
}

function wrong(text: string, at: number): EditProblem {
  return new EditProblem(`is not valid TOML at line ${lineNumber(text, Math.min(at, text.length))}`)
}
