import { isDeepStrictEqual } from "node:util"
import { createScanner, getNodeValue, type JSONVisitor, type Node, parseTree, visit } from "jsonc-parser"
import type { JsonAddition } from "../agents/kit/wiring.ts"
import { isRecord } from "../core/record.ts"
import { applyEdit, EditProblem, lineNumber, newlineOf, type TextEdit } from "./edit.ts"

/** `more`: the entry is present, but somebody extended it. `other`: a different entry has the name. */
export type Presence = "absent" | "same" | "more" | "other"

export function findInJson(text: string, { type, path, value }: JsonAddition): Presence {
  const node = nodeAt(jsonTree(text), path)
  const presentValue = node && plainValue(node)
  if (type === "property") {
    if (presentValue === undefined) return "absent"
    if (isDeepStrictEqual(presentValue, value)) return "same"
    return isRecord(presentValue) && isRecord(value) && isDeepStrictEqual(presentValue, { ...presentValue, ...value })
      ? "more"
      : "other"
  }
  if (!Array.isArray(presentValue)) return "absent"
  if (presentValue.some((item) => isDeepStrictEqual(item, value))) return "same"
  const wantedStrings = stringsIn(value)
  const hasAll = (strings: string[]) => wantedStrings.every((text) => strings.includes(text))
  return presentValue.some((item) => hasAll(stringsIn(item))) ? "more" : "absent"
}

/**
 * Inserts the addition at the end of its parent, and creates missing parents. Comments, order, indentation and line endings stay
 * as they are. `made` is the number of names in the path that existed before.
 */
export function addToJson(text: string, { type, path, value }: JsonAddition): { edits: TextEdit[]; made: number } {
  const root = jsonTree(text)
  const nestedFrom = (from: number): unknown =>
    path.slice(from).reduceRight<unknown>((inner, key) => ({ [key]: inner }), type === "item" ? [value] : value)
  if (root === undefined) return { edits: [fillEmpty(text, nestedFrom(0))], made: 0 }

  let existingDepth = path.length
  while (nodeAt(root, path.slice(0, existingDepth)) === undefined) existingDepth--
  const holder = nodeAt(root, path.slice(0, existingDepth))!
  const key = path[existingDepth]
  if (key === undefined && type === "property") throw new EditProblem(`has ${path.join(".")} already`)
  const [wantedType, description] = key === undefined ? ["array", "a list"] : ["object", "an object"]
  if (holder.type !== wantedType) {
    const location = path.slice(0, existingDepth).join(".") || "its top"
    throw new EditProblem(`should have ${description} at ${location}, but has something else`)
  }
  return {
    edits: insertLast(text, root, holder, key, key === undefined ? value : nestedFrom(existingDepth + 1)),
    made: existingDepth,
  }
}

/**
 * Removes the addition, and every parent that is now empty and that dex created. The parents at the first `existingDepth` names
 * of the path existed before.
 */
export function removeFromJson(text: string, { type, path, value }: JsonAddition, existingDepth: number): string {
  const node = nodeAt(jsonTree(text), path)
  const isOurs = (item: Node) => isDeepStrictEqual(plainValue(item), value)
  let member = type === "property" ? node?.parent : node?.children?.findLast(isOurs)
  if (member === undefined) return text
  let depth = type === "property" ? path.length - 1 : path.length
  for (; depth > existingDepth && isAlone(text, member); depth--) member = member.parent!.parent!
  return removeMember(text, member)
}

/** True if only white space, comments and an empty object remain. */
export function isEmptyJson(text: string): boolean {
  const root = jsonTree(text)
  return root === undefined || (root.type === "object" && root.children!.length === 0)
}

export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  return edits.reduce(applyEdit, text)
}

const MAX_DEPTH = 200
const WITH_COMMENTS = { allowTrailingComma: true, allowEmptyContent: true }

/** Undefined for a text of only white space and comments. Throws an EditProblem if the text is not JSON. */
function jsonTree(text: string): Node | undefined {
  const json = text.replace(/^\ufeff/, " ")
  const checkDepth: JSONVisitor["onObjectBegin"] = (_at, _length, _line, _column, path) => {
    if (path().length > MAX_DEPTH) throw new EditProblem("is nested too deeply")
  }
  const onError: JSONVisitor["onError"] = (_code, at) => {
    throw new EditProblem(`is not valid JSON at line ${lineNumber(text, at)}`)
  }
  visit(json, { onObjectBegin: checkDepth, onArrayBegin: checkDepth, onError }, WITH_COMMENTS)
  return parseTree(json, [], WITH_COMMENTS)
}

/** The node at a path. If a key occurs twice, the last one counts. */
function nodeAt(root: Node | undefined, path: string[]): Node | undefined {
  return path.reduce((node, key) => {
    const properties = node?.type === "object" ? node.children! : []
    return properties.findLast(({ children }) => children?.[0]?.value === key)?.children?.[1]
  }, root)
}

/** The value as plain objects. The library's objects have no prototype, which `isDeepStrictEqual` treats as a difference. */
function plainValue(node: Node): unknown {
  return structuredClone(getNodeValue(node))
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

function fillEmpty(text: string, value: unknown): TextEdit {
  const nl = newlineOf(text)
  const leadingNewline = /(^\ufeff?|\n\s*)$/.test(text) ? "" : nl
  const inserted = leadingNewline + JSON.stringify(value, undefined, 2).replaceAll("\n", nl) + nl
  return { at: text.length, removed: "", inserted }
}

function insertLast(text: string, root: Node, holder: Node, key: string | undefined, value: unknown): TextEdit[] {
  const nl = newlineOf(text)
  const first = root.children![0]
  // Uses the indentation of the file's first level, or two spaces if it has none.
  const indentUnit = (first && /^[ \t]+$/.exec(lineBefore(text, first))?.[0]) ?? "  "
  const name = key === undefined ? "" : `${JSON.stringify(key)}: `
  const onOneLine = name + JSON.stringify(value)
  const onLines = (indent: string) =>
    nl + indent + name + JSON.stringify(value, undefined, indentUnit).replaceAll("\n", nl + indent)
  const last = holder.children!.at(-1)

  if (last === undefined) {
    const start = holder.offset + 1
    const inner = text.slice(start, endOf(holder) - 1)
    const content = inner.trimEnd()
    if (content === "" && holder !== root && !text.slice(root.offset, endOf(root)).includes("\n"))
      return [{ at: start, removed: inner, inserted: onOneLine }]
    const indent = /^[ \t]*/.exec(lineBefore(text, holder))![0]
    const inserted = onLines(indent + indentUnit) + nl + indent
    return [{ at: start + content.length, removed: inner.slice(content.length), inserted }]
  }
  const afterComma = commaEnd(text, last)
  const after = afterComma ?? endOf(last)
  const comma = afterComma === undefined ? [{ at: endOf(last), removed: "", inserted: "," }] : []
  const indent = lineBefore(text, last)
  if (indent.trim() !== "") return [{ at: after, removed: "", inserted: ` ${onOneLine}` }, ...comma]
  // A comment after a value belongs to the value.
  const [comments] = /^(?:[ \t]*(?:\/\/[^\r\n]*|\/\*[^\n]*?\*\/))*/.exec(text.slice(after))!
  return [{ at: after + comments.length, removed: "", inserted: onLines(indent) }, ...comma]
}

function removeMember(text: string, member: Node): string {
  const holder = member.parent!
  if (isAlone(text, member)) return cut(text, holder.offset + 1, endOf(holder) - 1)
  const afterComma = commaEnd(text, member)
  const end = afterComma ?? endOf(member)
  let start = member.offset
  while (" \t".includes(text[start - 1]!)) start--
  // The rest of the line must not become part of a comment at the end of the previous line.
  const isOnOwnLine = text[start - 1] === "\n" && /^[ \t]*(\r?\n|\/\/)/.test(text.slice(end))
  if (isOnOwnLine) start -= text[start - 2] === "\r" ? 2 : 1
  else if (afterComma !== undefined) return cut(text, member.offset, end + text.slice(end).search(/[^ \t]/))

  const before = holder.children!.at(-2)
  if (afterComma !== undefined || before === undefined) return cut(text, start, end)
  const comma = commaEnd(text, before)! - 1
  return cut(cut(text, start, end), comma, comma + 1)
}

/** True if the parent has no other content, not even a comment. */
function isAlone(text: string, member: Node): boolean {
  const { offset, length } = member.parent!
  const others = text.slice(offset + 1, member.offset) + text.slice(endOf(member), offset + length - 1)
  return others.replace(",", "").trim() === ""
}

/** The position after the comma that follows a node; white space and comments may come before it. */
function commaEnd(text: string, node: Node): number | undefined {
  const scanner = createScanner(text, true)
  scanner.setPosition(endOf(node))
  scanner.scan()
  return text[scanner.getTokenOffset()] === "," ? scanner.getPosition() : undefined
}

function lineBefore(text: string, { offset }: Node): string {
  return text.slice(text.lastIndexOf("\n", offset - 1) + 1, offset)
}

function cut(text: string, from: number, to: number): string {
  return text.slice(0, from) + text.slice(to)
}

function endOf({ offset, length }: Node): number {
  return offset + length
}
