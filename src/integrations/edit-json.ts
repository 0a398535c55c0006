import { isDeepStrictEqual } from "node:util"
import type { JsonAddition } from "../agents/kit/wiring.ts"
import { applyEdit, type Edit, EditProblem, newlineOf } from "./edit.ts"
import {
  type Container,
  commentEnd,
  type JsonNode,
  jsonTree,
  jsonValue,
  type Member,
  memberOf,
  skipSpace,
} from "./json-tree.ts"

/** `more`: all of it is there, and something that was added to it. `other`: the name is taken. */
export type Presence = "absent" | "same" | "more" | "other"

export function findInJson(text: string, { type, path, value }: JsonAddition): Presence {
  const node = nodeAt(jsonTree(text), path)
  if (type === "property") {
    if (node === undefined) return "absent"
    return isSame(node, value) ? "same" : holdsAll(node, value) ? "more" : "other"
  }
  if (node?.type !== "array") return "absent"
  if (node.members.some((item) => isSame(item.value, value))) return "same"
  const wanted = stringsIn(value)
  const holdsAllStrings = (found: string[]) => wanted.every((text) => found.includes(text))
  return node.members.some((item) => holdsAllStrings(stringsIn(jsonValue(item.value)))) ? "more" : "absent"
}

/**
 * Puts the addition last where it belongs and makes what is missing on the way to it. Nothing else changes: no comment,
 * no order, no indentation, no line ending. `made` says how many of the path's names were there before.
 */
export function addToJson(text: string, addition: JsonAddition): { edits: Edit[]; made: number } {
  const root = jsonTree(text)
  const { type, path } = addition
  const wrapped = (from: number): unknown =>
    path
      .slice(from)
      .reduceRight<unknown>((inner, key) => ({ [key]: inner }), type === "item" ? [addition.value] : addition.value)
  if (root === undefined) return { edits: [fillEmpty(text, wrapped(0))], made: 0 }

  let node: JsonNode = root
  for (const [depth, key] of path.entries()) {
    if (node.type !== "object") throw notA("an object", path.slice(0, depth))
    const next: Member | undefined = memberOf(node, key)
    if (next === undefined) return { edits: insertMember(text, root, node, key, wrapped(depth + 1)), made: depth }
    node = next.value
  }
  if (type === "property") throw new EditProblem(`has ${path.join(".")} already`)
  if (node.type !== "array") throw notA("a list", path)
  return { edits: insertMember(text, root, node, undefined, addition.value), made: path.length }
}

/** The text without the addition and, where `made` says that dex put them there, without its empty surroundings. */
export function removeFromJson(text: string, addition: JsonAddition, made: number): string {
  const { type, path, value } = addition
  const holder = nodeAt(jsonTree(text), type === "property" ? path.slice(0, -1) : path)
  if (holder === undefined || holder.type === "scalar") return text
  const gone = holder.members.findLastIndex((member) =>
    type === "property" ? member.key === path.at(-1) : isSame(member.value, value),
  )
  if (gone < 0) return text
  let left = removeMember(text, holder, gone)
  for (let depth = type === "property" ? path.length - 1 : path.length; depth > made; depth--) {
    const root = jsonTree(left)
    const inner = nodeAt(root, path.slice(0, depth))
    const outer = nodeAt(root, path.slice(0, depth - 1))
    const isEmpty = inner !== undefined && inner.type !== "scalar" && inner.end - inner.start === 2
    if (!isEmpty || outer?.type !== "object") break
    left = removeMember(
      left,
      outer,
      outer.members.findLastIndex((member) => member.key === path[depth - 1]),
    )
  }
  return left
}

function nodeAt(root: JsonNode | undefined, path: string[]): JsonNode | undefined {
  return path.reduce<JsonNode | undefined>((node, key) => node && memberOf(node, key)?.value, root)
}

function isSame(node: JsonNode, value: unknown): boolean {
  return isDeepStrictEqual(jsonValue(node), value)
}

function holdsAll(node: JsonNode, wanted: unknown): boolean {
  if (node.type !== "object" || typeof wanted !== "object" || wanted === null) return isSame(node, wanted)
  return Object.entries(wanted).every(([key, value]) => {
    const member = memberOf(node, key)
    return member !== undefined && isSame(member.value, value)
  })
}

function stringsIn(value: unknown): string[] {
  if (typeof value === "string") return [value]
  return typeof value === "object" && value !== null ? Object.values(value).flatMap(stringsIn) : []
}

function notA(what: string, path: string[]): EditProblem {
  return new EditProblem(`should have ${what} at ${path.join(".") || "its top"}, and has something else there`)
}

function fillEmpty(text: string, value: unknown): Edit {
  const nl = newlineOf(text)
  const before = text === "" || text === "\ufeff" || /\n\s*$/.test(text) ? "" : nl
  return {
    at: text.length,
    removed: "",
    inserted: `${before}${JSON.stringify(value, undefined, 2).replaceAll("\n", nl)}${nl}`,
  }
}

function insertMember(
  text: string,
  root: JsonNode,
  holder: Container,
  key: string | undefined,
  value: unknown,
): Edit[] {
  const nl = newlineOf(text)
  const unit = indentUnit(text, root)
  const name = key === undefined ? "" : `${JSON.stringify(key)}: `
  const onLines = (indent: string) => name + JSON.stringify(value, undefined, unit).replaceAll("\n", nl + indent)
  const onOneLine = name + JSON.stringify(value)
  const last = holder.members.at(-1)

  if (last === undefined) {
    const inner = text.slice(holder.start + 1, holder.end - 1)
    if (inner.trim() === "" && holder !== root && !text.slice(root.start, root.end).includes("\n"))
      return [{ at: holder.start + 1, removed: inner, inserted: onOneLine }]
    const kept = inner.trimEnd()
    const indent = lineIndent(text, holder.start)
    const inserted = `${nl}${indent}${unit}${onLines(indent + unit)}${nl}${indent}`
    return [{ at: holder.start + 1 + kept.length, removed: inner.slice(kept.length), inserted }]
  }
  const after = last.comma === undefined ? last.end : last.comma + 1
  const comma = last.comma === undefined ? "," : ""
  if (!standsFirstOnLine(text, last.start)) return [{ at: after, removed: "", inserted: `${comma} ${onOneLine}` }]
  const indent = lineIndent(text, last.start)
  const inserted = nl + indent + onLines(indent)
  const point = pastCommentsOnLine(text, after)
  if (point === after) return [{ at: after, removed: "", inserted: comma + inserted }]
  const added = { at: point, removed: "", inserted }
  return comma === "" ? [added] : [added, { at: last.end, removed: "", inserted: comma }]
}

/** A comment behind a value belongs to it. */
function pastCommentsOnLine(text: string, from: number): number {
  let point = from
  for (;;) {
    let at = point
    while (text[at] === " " || text[at] === "\t") at++
    const end = commentEnd(text, at)
    if (end === at || text.slice(at, end).includes("\n")) return point
    point = end
  }
}

function removeMember(text: string, holder: Container, index: number): string {
  const member = holder.members[index]!
  const before = holder.members[index - 1]
  let from = member.start
  while (from > holder.start + 1 && " \t".includes(text[from - 1]!)) from--
  const rest = text.slice(member.comma === undefined ? member.end : member.comma + 1)
  // What else stands on its line must not get behind a comment that ends the line before.
  const ownLine = standsFirstOnLine(text, member.start) && /^[ \t]*(\r?\n|\/\/)/.test(rest)
  if (ownLine) from -= text[from - 2] === "\r" ? 2 : 1
  if (member.comma !== undefined) {
    const start = ownLine ? from : member.start
    const next = holder.members[index + 1]
    const end = ownLine || next === undefined ? member.comma + 1 : skipBlanks(text, member.comma + 1)
    return text.slice(0, start) + text.slice(end)
  }
  if (before?.comma !== undefined)
    return text.slice(0, before.comma) + text.slice(before.comma + 1, from) + text.slice(member.end)
  const inner = text.slice(holder.start + 1, from) + text.slice(member.end, holder.end - 1)
  return text.slice(0, holder.start + 1) + (inner.trim() === "" ? "" : inner) + text.slice(holder.end - 1)
}

function skipBlanks(text: string, from: number): number {
  let at = from
  while (text[at] === " " || text[at] === "\t") at++
  return at
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf("\n", at - 1) + 1
}

function lineIndent(text: string, at: number): string {
  return /^[ \t]*/.exec(text.slice(lineStart(text, at), at))![0]
}

function standsFirstOnLine(text: string, at: number): boolean {
  const start = lineStart(text, at)
  return start > 0 && text.slice(start, at).trim() === ""
}

/** What one level is indented by: as the file's own first level is, two spaces where it does not say. */
function indentUnit(text: string, root: JsonNode): string {
  if (root.type === "scalar" || root.members.length === 0) return "  "
  const first = root.members[0]!.start
  return (standsFirstOnLine(text, first) && lineIndent(text, first)) || "  "
}

/** True where nothing but space, comments and an empty object are left. */
export function isEmptyJson(text: string): boolean {
  const root = jsonTree(text)
  return root === undefined || (root.type === "object" && skipSpace(text, root.start + 1) === root.end - 1)
}

export function applyAll(text: string, edits: readonly Edit[]): string {
  return edits.reduce(applyEdit, text)
}
