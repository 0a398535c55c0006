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

/** What a pattern may try again and again: runs of one sign, and of what stands around names, places and times. */
const PIECES = [
  "a",
  "1",
  " ",
  "-",
  "─",
  "=",
  ".",
  "/",
  "\\",
  "(",
  "[",
  "'",
  '"',
  "`",
  ":",
  "a.",
  "a/",
  "a1",
  "a ",
  "aB",
  "1.",
  ") [",
  "./",
  "::",
  " > ",
  " # ",
  "a.ts:1:1 ",
  "we should ",
  "\u001b[",
]

/** Texts of about this size in one line and in many, each line with this beginning. */
export function* hostileTexts(size: number, beginning = ""): Generator<string> {
  for (const piece of PIECES) {
    yield `${beginning}${piece.repeat(size / piece.length)}\u0001\n`
    for (const length of [piece.length, 1_900]) {
      const line = `${beginning}${piece.repeat(length / piece.length)}\u0001\n`
      yield line.repeat(size / line.length)
    }
  }
}

/** How long this process had a processor meanwhile: others on the machine do not count. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
