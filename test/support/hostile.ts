/** The values that a field of a hostile record may have instead of the expected one. */
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

/** Copies of a record, each with one field, at any depth, replaced or removed. */
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

/** Texts on which a pattern may backtrack: runs of one character, and of what surrounds names, paths and times. */
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

/** Texts of about this size, on one line and on many, each line with this beginning. */
export function* hostileTexts(size: number, beginning = ""): Generator<string> {
  for (const piece of PIECES) {
    yield `${beginning}${piece.repeat(size / piece.length)}\u0001\n`
    for (const length of [piece.length, 1_900]) {
      const line = `${beginning}${piece.repeat(length / piece.length)}\u0001\n`
      yield line.repeat(size / line.length)
    }
  }
}

/** The processor time that `work` took, in milliseconds: other processes on the machine do not count. */
export function processorMs(work: () => void): number {
  const before = process.cpuUsage()
  work()
  const { user, system } = process.cpuUsage(before)
  return (user + system) / 1000
}
