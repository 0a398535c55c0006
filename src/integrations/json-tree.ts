import { EditProblem, lineNumber } from "./edit.ts"

/** Where everything stands in a JSON text with comments and trailing commas. Positions are into the text itself. */
export type JsonNode = { start: number; end: number } & (
  | { type: "object"; members: Member[] }
  | { type: "array"; members: Member[] }
  | { type: "scalar"; value: unknown }
)
export type Container = Extract<JsonNode, { members: Member[] }>
/** A property or an item. `key` is there in objects only; `comma` is where the comma after it stands. */
export type Member = { start: number; end: number; key?: string; value: JsonNode; comma?: number }

const MAX_DEPTH = 200

/** Undefined for a text that holds nothing but space and comments. Throws an EditProblem for what is not JSON. */
export function jsonTree(text: string): JsonNode | undefined {
  const start = skipSpace(text, text.startsWith("\ufeff") ? 1 : 0)
  if (start >= text.length) return undefined
  const node = readValue(text, start, 0)
  const rest = skipSpace(text, node.end)
  if (rest < text.length) throw wrong(text, rest)
  return node
}

export function jsonValue(node: JsonNode): unknown {
  if (node.type === "scalar") return node.value
  if (node.type === "array") return node.members.map((member) => jsonValue(member.value))
  return Object.fromEntries(node.members.map((member) => [member.key!, jsonValue(member.value)]))
}

/** The member that counts where a key stands twice: the last one. */
export function memberOf(node: JsonNode, key: string): Member | undefined {
  return node.type === "object" ? node.members.findLast((member) => member.key === key) : undefined
}

/** Past white space and comments. */
export function skipSpace(text: string, from: number): number {
  let at = from
  for (;;) {
    while (at < text.length && " \t\r\n".includes(text[at]!)) at++
    const end = commentEnd(text, at)
    if (end === at) return at
    at = end
  }
}

/** Where the comment that begins here ends (a line's end is not part of it), or `at` where none begins. */
export function commentEnd(text: string, at: number): number {
  if (text.startsWith("//", at)) {
    const end = text.indexOf("\n", at)
    if (end < 0) return text.length
    return text[end - 1] === "\r" ? end - 1 : end
  }
  if (!text.startsWith("/*", at)) return at
  const end = text.indexOf("*/", at + 2)
  if (end < 0) throw wrong(text, at)
  return end + 2
}

function readValue(text: string, start: number, depth: number): JsonNode {
  if (depth > MAX_DEPTH) throw new EditProblem("is nested too deeply")
  const first = text[start]
  if (first === "{" || first === "[") return readContainer(text, start, depth)
  if (first === '"') return { type: "scalar", ...readString(text, start) }
  const word = /^(?:true|false|null|-?\d[\d.eE+-]*)/.exec(text.slice(start, start + 400))?.[0]
  if (word === undefined) throw wrong(text, start)
  try {
    return { type: "scalar", start, end: start + word.length, value: JSON.parse(word) }
  } catch {
    throw wrong(text, start)
  }
}

function readContainer(text: string, start: number, depth: number): JsonNode {
  const isObject = text[start] === "{"
  const close = isObject ? "}" : "]"
  const members: Member[] = []
  let at = skipSpace(text, start + 1)
  while (text[at] !== close) {
    if (members.length > 0 && members.at(-1)!.comma === undefined) throw wrong(text, at)
    const member = isObject ? readProperty(text, at, depth) : readItem(text, at, depth)
    members.push(member)
    at = skipSpace(text, member.end)
    if (text[at] === ",") {
      member.comma = at
      at = skipSpace(text, at + 1)
    }
  }
  return { type: isObject ? "object" : "array", start, end: at + 1, members }
}

function readItem(text: string, start: number, depth: number): Member {
  const value = readValue(text, start, depth + 1)
  return { start, end: value.end, value }
}

function readProperty(text: string, start: number, depth: number): Member {
  if (text[start] !== '"') throw wrong(text, start)
  const key = readString(text, start)
  const colon = skipSpace(text, key.end)
  if (text[colon] !== ":") throw wrong(text, colon)
  const value = readValue(text, skipSpace(text, colon + 1), depth + 1)
  return { start, end: value.end, key: key.value, value }
}

function readString(text: string, start: number): { start: number; end: number; value: string } {
  let end = start + 1
  while (end < text.length && text[end] !== '"' && text[end] !== "\n") end += text[end] === "\\" ? 2 : 1
  try {
    return { start, end: end + 1, value: JSON.parse(text.slice(start, end + 1)) as string }
  } catch {
    throw wrong(text, start)
  }
}

function wrong(text: string, at: number): EditProblem {
  return new EditProblem(`is not valid JSON at line ${lineNumber(text, Math.min(at, text.length))}`)
}
