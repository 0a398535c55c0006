import { EditProblem, lineNumber } from "./edit.ts"

/** A header or a key in a TOML text, with the positions of the lines that it spans. */
export type TomlStatement = {
  type: "header" | "list_header" | "key"
  /** For a header, the name of the table; for a key, that name followed by the name of the key. */
  path: string[]
  start: number
  /** The position after the end of its last line. */
  end: number
  /** The text between = and the end or comment, trimmed; empty for headers. */
  value: string
}

/** Throws an EditProblem for invalid TOML. Only strings, brackets and names are checked, not values. */
export function tomlStatements(text: string): TomlStatement[] {
  const statements: TomlStatement[] = []
  let table: string[] = []
  let pos = text.startsWith("\ufeff") ? 1 : 0
  while (pos < text.length) {
    const start = pos
    pos = skipBlanks(text, pos)
    if (isLineEnd(text, pos) || text[pos] === "#") {
      pos = skipLine(text, pos)
      continue
    }
    if (text[pos] === "[") {
      const isList = text[pos + 1] === "["
      const name = readName(text, pos + (isList ? 2 : 1))
      pos = name.end
      if (!text.startsWith(isList ? "]]" : "]", pos)) throw syntaxProblem(text, pos)
      pos = skipLineRest(text, pos + (isList ? 2 : 1))
      table = name.path
      statements.push({ type: isList ? "list_header" : "header", path: table, start, end: pos, value: "" })
      continue
    }
    const name = readName(text, pos)
    if (text[name.end] !== "=") throw syntaxProblem(text, name.end)
    const valueStart = skipBlanks(text, name.end + 1)
    const valueEnd = skipValue(text, valueStart)
    pos = skipLineRest(text, valueEnd)
    const value = text.slice(valueStart, valueEnd).trim()
    statements.push({ type: "key", path: [...table, ...name.path], start, end: pos, value })
  }
  return statements
}

/** Reads a dotted name such as `a."b c".d`, with blanks around the dots. */
function readName(text: string, from: number): { path: string[]; end: number } {
  const path: string[] = []
  let pos = from
  for (;;) {
    pos = skipBlanks(text, pos)
    if (text[pos] === '"' || text[pos] === "'") {
      const end = skipString(text, pos)
      path.push(text[pos] === '"' ? unquote(text, pos, end) : text.slice(pos + 1, end - 1))
      pos = end
    } else {
      const bareName = /^[\w-]+/.exec(text.slice(pos, pos + 500))?.[0]
      if (bareName === undefined) throw syntaxProblem(text, pos)
      path.push(bareName)
      pos += bareName.length
    }
    pos = skipBlanks(text, pos)
    if (text[pos] !== ".") return { path, end: pos }
    pos++
  }
}

function unquote(text: string, start: number, end: number): string {
  try {
    return JSON.parse(text.slice(start, end)) as string
  } catch {
    return text.slice(start + 1, end - 1) // an escape that JSON does not have; none of dex's names has one
  }
}

/** Returns the position after a value. A value with brackets, or in triple quotes, may span several lines. */
function skipValue(text: string, from: number): number {
  let pos = from
  let depth = 0
  while (pos < text.length) {
    const character = text[pos]!
    if (character === '"' || character === "'") pos = skipString(text, pos)
    else if (character === "#") {
      if (depth === 0) return pos
      pos = skipLine(text, pos)
    } else if (depth === 0 && isLineEnd(text, pos)) return pos
    else {
      if ("[{".includes(character)) depth++
      if ("]}".includes(character)) depth--
      if (depth < 0) throw syntaxProblem(text, pos)
      pos++
    }
  }
  if (depth > 0) throw syntaxProblem(text, from)
  return pos
}

function skipString(text: string, start: number): number {
  const quote = text[start]!
  const tripleQuote = quote.repeat(3)
  if (text.startsWith(tripleQuote, start)) {
    let pos = start + 3
    while (pos < text.length && !text.startsWith(tripleQuote, pos)) pos += quote === '"' && text[pos] === "\\" ? 2 : 1
    if (pos >= text.length) throw syntaxProblem(text, start)
    pos += 3
    // Up to two quotes may precede the closing three.
    while (text[pos] === quote) pos++
    return pos
  }
  let pos = start + 1
  while (pos < text.length && text[pos] !== quote && text[pos] !== "\n")
    pos += quote === '"' && text[pos] === "\\" ? 2 : 1
  if (text[pos] !== quote) throw syntaxProblem(text, start)
  return pos + 1
}

function skipBlanks(text: string, from: number): number {
  let pos = from
  while (text[pos] === " " || text[pos] === "\t") pos++
  return pos
}

function isLineEnd(text: string, pos: number): boolean {
  return pos >= text.length || text[pos] === "\n" || text.startsWith("\r\n", pos)
}

function skipLine(text: string, pos: number): number {
  const end = text.indexOf("\n", pos)
  return end < 0 ? text.length : end + 1
}

/** Skips the rest of the line, which may contain only blanks and a comment. */
function skipLineRest(text: string, from: number): number {
  const pos = skipBlanks(text, from)
  if (!isLineEnd(text, pos) && text[pos] !== "#") throw syntaxProblem(text, pos)
  return skipLine(text, pos)
}

function syntaxProblem(text: string, pos: number): EditProblem {
  return new EditProblem(`is not valid TOML at line ${lineNumber(text, Math.min(pos, text.length))}`)
}
