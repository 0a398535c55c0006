import { spawn } from "node:child_process"
import { appendFileSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { expect, test } from "vitest"
import { addsUp, summaryOf, type Trace } from "../../src/core/trace.ts"
import { appendTrace, traceLine } from "../../src/trace/append.ts"
import { LIMITS, type Limits } from "../../src/trace/files.ts"
import { forgetTraces } from "../../src/trace/forget.ts"
import { findTraces, readTraces } from "../../src/trace/read.ts"
import { tempDir } from "../support/temp.ts"
import { idOf, rowOf, traceOf } from "./traces.ts"

const ALL = { tail: 1_000_000 }

function writer(dir: string, number: number, count: number, limits: Limits): Promise<void> {
  const program = join(import.meta.dirname, "writer.ts")
  const child = spawn(process.execPath, [program, dir, String(number), String(count), JSON.stringify(limits)], {
    stdio: ["ignore", "ignore", "inherit"],
  })
  return new Promise((resolve, reject) =>
    child.on("exit", (code) => (code === 0 ? resolve() : reject(new Error(`writer ${number} ended with ${code}`)))),
  )
}

/** The stored numbers of each writer, in their order in the files. */
function keptOf(dir: string): Map<number, number[]> {
  const kept = new Map<number, number[]>()
  for (const { trace_id } of readTraces(dir, ALL).traces) {
    const writer = Number.parseInt(trace_id.slice(2, 8), 16)
    kept.set(writer, [...(kept.get(writer) ?? []), Number.parseInt(trace_id.slice(8), 16)])
  }
  return kept
}

const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

test("many processes write at once: every line is complete, and each is there once", async () => {
  const dir = join(tempDir(), "traces")
  const limits = { ...LIMITS, fileBytes: 40_000, files: 10_000 }
  await Promise.all(upTo(6).map((number) => writer(dir, number, 300, limits)))
  expect(readTraces(dir, ALL).unreadable).toBe(0)
  const kept = keptOf(dir)
  for (const number of upTo(6)) expect([number, kept.get(number)]).toEqual([number, upTo(300)])
  expect(readdirSync(dir).length).toBeGreaterThan(10)
})

test("many processes rotate at once: only the oldest lines are deleted, and the size stays bounded", async () => {
  const dir = join(tempDir(), "traces")
  const limits = { ...LIMITS, fileBytes: 60_000, files: 4 }
  await Promise.all(upTo(6).map((number) => writer(dir, number, 300, limits)))
  const sizes = readdirSync(dir).map((name) => statSync(join(dir, name)).size)
  expect(sizes.length).toBeLessThanOrEqual(limits.files)
  for (const size of sizes) expect(size).toBeLessThanOrEqual(limits.fileBytes + 6 * 2_000)
  expect(readTraces(dir, ALL).unreadable).toBe(0)
  const kept = keptOf(dir)
  expect([...kept.values()].flat().length).toBeGreaterThan(100)
  for (const numbers of kept.values()) expect(numbers).toEqual(upTo(300).slice(-numbers.length))
})

test("fills its files with the real limits and never exceeds them", () => {
  const dir = join(tempDir(), "traces")
  const long = Array.from({ length: 100 }, (_, i) => rowOf(`claude_code:${i}`, "x".repeat(80)))
  const count = 1_500
  for (const n of upTo(count)) appendTrace(dir, traceOf({ trace_id: idOf(1, n), ranking: long }))
  const sizes = readdirSync(dir).map((name) => statSync(join(dir, name)).size)
  expect(sizes.length).toBe(LIMITS.files)
  for (const size of sizes) expect(size).toBeLessThanOrEqual(LIMITS.fileBytes)
  expect(sizes.reduce((sum, size) => sum + size)).toBeGreaterThan(3 * LIMITS.fileBytes)
  const kept = keptOf(dir).get(1)!
  expect(kept).toEqual(upTo(count).slice(-kept.length))
  expect(readTraces(dir, { tail: 2 }).traces.map((trace) => trace.trace_id)).toEqual([
    idOf(1, count - 2),
    idOf(1, count - 1),
  ])
})

test("with room for only one line, the newest is kept", () => {
  const dir = join(tempDir(), "traces")
  const limits = { ...LIMITS, fileBytes: 1, files: 1 }
  for (const n of upTo(20)) {
    appendTrace(dir, traceOf({ trace_id: idOf(1, n) }), limits)
    expect(readTraces(dir, ALL).traces.map((trace) => trace.trace_id)).toEqual([idOf(1, n)])
  }
})

test("an incomplete line is counted, and costs no other line", () => {
  const dir = join(tempDir(), "traces")
  appendTrace(dir, traceOf({ trace_id: idOf(1, 1) }))
  const [file] = readdirSync(dir)
  appendFileSync(join(dir, file!), `\n{"trace_id":"${idOf(1, 2)}","ts":"2026-`)
  expect(readTraces(dir, ALL)).toMatchObject({ traces: [{ trace_id: idOf(1, 1) }], unreadable: 1 })
  appendTrace(dir, traceOf({ trace_id: idOf(1, 3) }))
  expect(readTraces(dir, ALL)).toMatchObject({
    traces: [{ trace_id: idOf(1, 1) }, { trace_id: idOf(1, 3) }],
    unreadable: 1,
  })
  writeFileSync(join(dir, file!), 'null\n[]\n"text"\n{"trace_id":7}\n\0\n')
  expect(readTraces(dir, ALL)).toEqual({ traces: [], unreadable: 5 })
})

test("only their owner can read traces", () => {
  const dir = join(tempDir(), "traces")
  appendTrace(dir, traceOf())
  expect(statSync(dir).mode & 0o777).toBe(0o700)
  for (const name of readdirSync(dir)) expect(statSync(join(dir, name)).mode & 0o777).toBe(0o600)
})

test("a trace is found by its id and by a prefix of it", () => {
  const dir = join(tempDir(), "traces")
  const [one, other] = ["T-aaaa000000000001", "T-aabb000000000002"]
  appendTrace(dir, traceOf({ trace_id: one }))
  appendTrace(dir, traceOf({ trace_id: other, query: `quotes ${one}` }))
  const ids = (prefix: string) => findTraces(dir, prefix).map((trace) => trace.trace_id)
  expect(ids(one)).toEqual([one])
  expect(ids("aabb")).toEqual([other])
  expect(ids("T-AA")).toEqual([other, one])
  expect(ids("T-ff")).toEqual([])
  expect(findTraces(join(dir, "nowhere"), one)).toEqual([])
})

test("a line never exceeds its limit, whatever a trace contains, and can be read back", () => {
  const dir = tempDir()
  const words = fc.string({ unit: "binary", maxLength: 3000 })
  const trace: fc.Arbitrary<Trace> = fc
    .record({
      query: words,
      project: words,
      args: fc.dictionary(words, fc.oneof(words, fc.integer(), fc.array(words, { maxLength: 50 })), { maxKeys: 30 }),
      error: fc.record({ code: words, message: words }),
      ranking: fc.array(fc.tuple(words, words), { maxLength: 120 }),
      skipped: fc.array(words, { maxLength: 120 }),
    })
    .map(({ ranking, skipped, ...rest }) =>
      traceOf({
        ...rest,
        ranking: ranking.map(([ref, summary]) => rowOf(ref, summary)),
        skipped: skipped.map((ref) => ({ ref, score: 1, skipped_reason: "floor" as const })),
      }),
    )
  fc.assert(
    fc.property(trace, (given) => {
      const line = traceLine(given, LIMITS.lineBytes)
      expect(line.length).toBeLessThanOrEqual(LIMITS.lineBytes)
      expect(line.subarray(1, -1).includes(10)).toBe(false)
      writeFileSync(join(dir, "000001.ndjson"), line)
      const { traces, unreadable } = readTraces(dir, ALL)
      expect(unreadable).toBe(0)
      expect(traces[0]).toMatchObject({ ranking_total: given.ranking_total, skipped_total: given.skipped_total })
      for (const { summary } of traces[0]!.ranking) {
        expect(summary.length).toBeLessThanOrEqual(80)
        expect(summary).not.toMatch(/[\p{Cc}\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/u)
      }
    }),
    { numRuns: 200 },
  )
})

test("a summary is one short line", () => {
  expect(summaryOf("one\ntwo\r\n\tthree \u001b[31mred\u202e")).toBe("one two three [31mred")
  expect(summaryOf(`${"é".repeat(79)}😀😀`)).toBe(`${"é".repeat(79)}…`)
  expect(summaryOf("")).toBe("")
})

test("the arithmetic of a row is right only if its terms add up to its score", () => {
  const row = (score_final: number, ...values: number[]) => ({
    score_final,
    terms: values.map((value, i) => ({ name: `t${i}`, value })),
  })
  expect(addsUp(row(0.3, 0.1, 0.2))).toBe(true) // 0.1 + 0.2 is not 0.3 in floating point
  expect(addsUp(row(12.5, 10, 4, -1.5))).toBe(true)
  expect(addsUp(row(0))).toBe(true)
  expect(addsUp(row(12.5, 10, 4))).toBe(false)
  expect(addsUp(row(12.5000001, 12.5))).toBe(false)
  expect(addsUp(row(0.0164, 0.0163))).toBe(false)
  expect(addsUp(row(1))).toBe(false)
})

test("forgets every trace that names a conversation, byte for byte, and no other", () => {
  const dir = join(tempDir(), "traces")
  const gone = { source: "claude_code" as const, id: "deadbeef-1111-4111-8111-111111111111" }
  const limits = { ...LIMITS, fileBytes: 1_500, files: 100 }
  const kept = [traceOf({ query: "kept one" }), traceOf({ query: "kept two", args: { ids: ["dead"], limit: 5 } })]
  const forgotten = [
    traceOf({ ranking: [rowOf("codex:other"), rowOf(`claude_code:${gone.id}#3`, "a zebra in the title")] }),
    traceOf({ skipped: [{ ref: `claude_code:${gone.id}`, skipped_reason: "floor" }], query: "zebra" }),
    traceOf({ ranking: [], args: { ids: ["deadbeef"] }, query: "zebra by prefix" }),
    traceOf({ ranking: [], error: { code: "x", message: `could be claude_code:${gone.id} or zebra` } }),
  ]
  kept[1]!.args = { ids: ["codex:deadbeef"], session: "beefdead" }
  for (const trace of [...forgotten, ...kept, ...forgotten]) appendTrace(dir, trace, limits)
  expect(readdirSync(dir).length).toBeGreaterThan(2)
  expect(forgetTraces(dir, [gone])).toBe(8)
  const bytes = readdirSync(dir).map((name) => readFileSync(join(dir, name), "latin1"))
  expect(bytes.join("")).not.toMatch(/zebra|deadbeef-1111/)
  expect(readTraces(dir, ALL)).toMatchObject({ traces: [{ query: "kept one" }, { query: "kept two" }], unreadable: 0 })
  expect(forgetTraces(dir, [gone])).toBe(0)
  expect(forgetTraces(join(dir, "nowhere"), [gone])).toBe(0)
})

test("forgetting while others write loses none of their lines", async () => {
  const dir = join(tempDir(), "traces")
  const limits = { ...LIMITS, fileBytes: 400_000, files: 10_000 }
  const gone = { source: "claude_code" as const, id: "1-" } // a prefix of every id that writer 1 names
  let writing = true
  const writers = Promise.all([1, 2, 3].map((number) => writer(dir, number, 2_500, limits))).then(() => {
    writing = false
  })
  while (writing) {
    forgetTraces(dir, [gone])
    await new Promise(setImmediate)
  }
  await writers
  forgetTraces(dir, [gone])
  const kept = keptOf(dir)
  expect(kept.get(1)).toBe(undefined)
  for (const number of [2, 3]) expect(kept.get(number)).toEqual(upTo(2_500))
})
