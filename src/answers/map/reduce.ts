import { formatRef, type Ref } from "../../core/ref.ts"
import type { Schema } from "../../core/schema.ts"
import { toJson } from "../../render/json.ts"
import { itemsOf, listsOf, type MapResult } from "./schema.ts"

/** A result, and the conversations it was made of. */
export type PartialResult = { result: MapResult; refs: string[] }

/**
 * Merges parts in a tree, neighbours first, until one is left. `merge` gives undefined when it could not: those parts
 * are then put side by side, and nothing is lost. What is too large to be merged stays side by side as well.
 */
export async function reduce(
  parts: PartialResult[],
  schema: Schema,
  budget: number,
  mergeAll: (groups: PartialResult[][]) => Promise<(PartialResult | undefined)[]>,
): Promise<{ part: PartialResult; unmerged: number }> {
  let level = parts
  let unmerged = 0
  while (level.length > 1) {
    const groups = grouped(level, schema, budget)
    const several = groups.filter((group) => group.length > 1)
    if (several.length === 0) return { part: sideBySide(level, schema), unmerged: unmerged + level.length }
    const merged = await mergeAll(several)
    level = groups.map((group) => {
      const [only, ...others] = group
      if (others.length === 0) return only!
      const part = merged[several.indexOf(group)]
      if (!part) unmerged += group.length
      return part ?? sideBySide(group, schema)
    })
  }
  return { part: level[0] ?? { result: {}, refs: [] }, unmerged }
}

/** A part as a model is shown it: every item a line of data. */
export function shownPart({ result }: PartialResult, schema: Schema): string {
  const lists = new Set(listsOf(schema))
  return Object.entries(result)
    .flatMap(([name, value]) =>
      lists.has(name)
        ? [`in ${name}:`, ...itemsOf(result, name).map((item) => `| ${toJson(item)}`)]
        : [`in ${name}:`, `| ${toJson(value)}`],
    )
    .map((line) => `${line}\n`)
    .join("")
}

/** Whether a merged item may name this ref: only if an item of the parts did. */
export function refsIn(parts: PartialResult[], schema: Schema): (ref: Ref) => boolean {
  const known = new Set(parts.flatMap(({ result }) => itemRefs(result, schema)))
  return (ref) => known.has(formatRef(ref))
}

export function itemRefs(result: MapResult, schema: Schema): string[] {
  return listsOf(schema).flatMap((name) => itemsOf(result, name).flatMap((item) => item.refs))
}

export function countItems(result: MapResult, schema: Schema): number {
  return listsOf(schema).reduce((sum, name) => sum + itemsOf(result, name).length, 0)
}

function grouped(parts: PartialResult[], schema: Schema, budget: number): PartialResult[][] {
  const groups: PartialResult[][] = []
  let room = 0
  for (const part of parts) {
    const size = shownPart(part, schema).length
    if (size > room || groups.length === 0) {
      groups.push([])
      room = budget
    }
    groups.at(-1)!.push(part)
    room -= size
  }
  return groups
}

/** Lists one after the other; of anything else, texts are joined and the first of other values stays. */
function sideBySide(parts: PartialResult[], schema: Schema): PartialResult {
  const result: MapResult = {}
  for (const [name, { type, enum: choices }] of Object.entries(schema.properties ?? {})) {
    const values = parts.flatMap(({ result }) => (result[name] === undefined ? [] : [result[name]]))
    if (values.length === 0) continue
    if (type === "array") result[name] = values.flat()
    else result[name] = type === "string" && !choices ? [...new Set(values)].join("\n") : values[0]
  }
  return { result, refs: [...new Set(parts.flatMap(({ refs }) => refs))] }
}
