import type { RawRecord } from "../core/record.ts"
import { redactRecord } from "../redact/redact.ts"
import { visibleIn } from "../render/visible.ts"
import { maskedPlaces, type Places } from "./mask-places.ts"

/** One kind of removed text, and how often it was removed. `earlier`: already when dex read it. */
export type TakenOut = { what: string; count: number; earlier?: boolean }

const MARK = /\[REDACTED:([\w-]+)\]/g
const HOME = "your home folder's path"
const NAME = "your name in other paths"

/**
 * A copy of a value for others: without invisible characters, redacted by the newest rules, and without names of places on
 * this machine.
 */
export function forOthers<T extends object>(value: T, places: Places): { value: T; taken_out: TakenOut[] } {
  const seen = visibleIn(structuredClone(value)).output as RawRecord
  const earlier = marksIn(JSON.stringify(seen))
  const { record, redactions } = redactRecord(seen)
  let homes = 0
  let names = 0
  const masked = everyText(record, (text) => {
    const hidden = maskedPlaces(text, places)
    homes += hidden.homes
    names += hidden.names
    return hidden.text
  })
  return {
    value: masked as T,
    taken_out: [
      ...Object.entries(redactions).map(([what, count]) => ({ what, count })),
      ...(homes > 0 ? [{ what: HOME, count: homes }] : []),
      ...(names > 0 ? [{ what: NAME, count: names }] : []),
      ...[...earlier].map(([what, count]) => ({ what, count, earlier: true })),
    ],
  }
}

/** Adds up several lists. */
export function addedUp(lists: Iterable<TakenOut[]>): TakenOut[] {
  const sums = new Map<string, TakenOut>()
  for (const one of [...lists].flat()) {
    const name = `${one.what}${one.earlier ? "+" : ""}`
    sums.set(name, { ...one, count: one.count + (sums.get(name)?.count ?? 0) })
  }
  return [...sums.values()]
}

function marksIn(text: string): Map<string, number> {
  const counts = new Map<string, number>()
  for (const [, rule] of text.matchAll(MARK)) counts.set(rule!, (counts.get(rule!) ?? 0) + 1)
  return counts
}

function everyText(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === "string") return change(value)
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map((one) => everyText(one, change))
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, everyText(inner, change)]))
}
