import { appendFileSync, closeSync, ftruncateSync, openSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { readJsonl, recoverRecords } from "../../src/agents/kit/jsonl.ts"
import { processorMs } from "../support/hostile.ts"
import { tempDir } from "../support/temp.ts"

const one = { id: "one", text: "first" }
const two = { id: "two", text: "second" }
const line = (record: unknown) => `${JSON.stringify(record)}\n`

test("a line of 300 MB is counted and skipped without being in memory", () => {
  const path = join(tempDir(), "session.jsonl")
  writeFileSync(path, line(one))
  const fd = openSync(path, "r+")
  ftruncateSync(fd, 300 << 20)
  closeSync(fd)
  appendFileSync(path, `\n${line(two)}`)
  const before = process.memoryUsage().rss
  const reading = readJsonl(path, undefined)
  const records = [...reading.records]
  const { skipped } = reading.end()
  expect(records).toEqual([one, two])
  expect(skipped).toEqual([{ reason: expect.stringContaining("over the limit"), where: `byte ${line(one).length}` }])
  expect(process.memoryUsage().rss - before).toBeLessThan(200 << 20)
})

test("recovering records takes linear time for a hostile line", () => {
  const hostile = ['{"', '{"a":', '{"a":1,"b":{', '{"a":"', '[{"a":1},', '{"a":1,"b":2}:', '{"a":1,"b":2} ', '\0{"']
  for (const piece of hostile) {
    const took = processorMs(() => void recoverRecords(piece.repeat(Math.ceil(2_000_000 / piece.length))))
    expect(took, JSON.stringify(piece)).toBeLessThan(5_000)
  }
})
