/** The values that a field of a hostile record may have in place of the one that is meant. */
const VALUES = [
  null,
  0,
  -1,
  1e308,
  true,
  "",
  "__proto__",
  "constructor",
  "\u0000\ud800",
  [],
  [null],
  [[{}]],
  {},
  { type: null },
]

/** Copies of a record, each with one field, at any depth, replaced by something else or gone. */
export function* hostileCopies(record: unknown): Generator<unknown> {
  if (typeof record !== "object" || record === null) return
  for (const [key, field] of Object.entries(record)) {
    for (const value of VALUES) yield replaced(record, key, value)
    yield replaced(record, key, undefined)
    for (const inner of hostileCopies(field)) yield replaced(record, key, inner)
  }
}

function replaced(record: object, key: string, value: unknown): unknown {
  if (Array.isArray(record)) return record.with(Number(key), value)
  return { ...record, [key]: value }
}
