import { appendFileSync, truncateSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import type { Cursor } from "../../src/agents/kit/connector.ts"
import { type JsonlOptions, readJsonl, recoverRecords } from "../../src/agents/kit/jsonl.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { tempDir } from "../support/temp.ts"

const one = { id: "one", text: "first" }
const two = { id: "two", text: 'with "quotes", {braces} and \n newlines' }
const three = { id: "three", text: "dritte Zeile: äöü → 漢字 🙂" }

describe("reading lines after a cursor", () => {
  test("continues where it stopped", () => {
    const path = fileOf(line(one) + line(two))
    const first = readAll(path)
    expect(first).toMatchObject({ mode: "append", records: [one, two], skipped: [], pending: false })
    appendFileSync(path, line(three))
    const second = readAll(path, first.cursor)
    expect(second).toMatchObject({ mode: "append", records: [three], skipped: [] })
    expect(readAll(path, second.cursor)).toMatchObject({ mode: "append", records: [], cursor: second.cursor })
  })

  test("gives the same cursor whether a file is read at once or in pieces", () => {
    const whole = Buffer.from(line(one) + line(two) + line(three))
    const path = fileOf("")
    let cursor: Cursor | undefined
    for (let size = 0; size <= whole.length; size += 7) {
      writeFileSync(path, whole.subarray(0, size))
      cursor = readAll(path, cursor).cursor
    }
    writeFileSync(path, whole)
    expect(readAll(path, cursor).cursor).toEqual(readAll(path).cursor)
  })

  test("waits for a line that is still being written, even if it is already complete JSON", () => {
    const path = fileOf(line(one) + JSON.stringify(two))
    const first = readAll(path)
    expect(first).toMatchObject({ records: [one], pending: true, skipped: [] })
    appendFileSync(path, "\n")
    expect(readAll(path, first.cursor)).toMatchObject({ records: [two], pending: false })
  })

  test("reads a complete last line without a newline after a minute without writes", () => {
    const path = fileOf(line(one) + JSON.stringify(two))
    settle(path)
    const first = readAll(path)
    expect(first).toMatchObject({ records: [one, two], pending: false })
    appendFileSync(path, `\n${line(three)}`)
    expect(readAll(path, first.cursor)).toMatchObject({ mode: "append", records: [three], skipped: [] })
  })

  test("also reads it if the file's date is in the future, as after setting the clock back", () => {
    const path = fileOf(line(one) + JSON.stringify(two))
    date(path, Date.now() + 86_400_000)
    const first = readAll(path)
    expect(first).toMatchObject({ records: [one, two], pending: false, skipped: [] })
    appendFileSync(path, `\n${line(three)}`)
    expect(readAll(path, first.cursor)).toMatchObject({ mode: "append", records: [three], skipped: [] })
  })

  test("waits if the file's date is slightly ahead, as from a server with a fast clock", () => {
    const path = fileOf(line(one) + JSON.stringify(two))
    const now = Date.now()
    date(path, now + 5_000)
    expect(readAll(path, undefined, { now })).toMatchObject({ records: [one], pending: true })
    expect(readAll(path, undefined, { now: now + 70_000 })).toMatchObject({ records: [one, two], pending: false })
  })

  test("never reads a torn last line, however old, and reports it", () => {
    const path = fileOf(line(one) + JSON.stringify(two).slice(0, -5))
    settle(path)
    expect(readAll(path)).toMatchObject({ records: [one], pending: true, skipped: [] })
  })

  test("preserves a character that two reads split", () => {
    const whole = Buffer.from(line(three))
    const inside = whole.indexOf("漢") + 1
    const path = fileOf("")
    writeFileSync(path, whole.subarray(0, inside))
    const first = readAll(path)
    writeFileSync(path, whole)
    expect(readAll(path, first.cursor).records).toEqual([three])
  })

  test("preserves a line that crosses the border of the read buffer", () => {
    const long = { id: "long", text: "漢".repeat(700_000) }
    const path = fileOf(line(one) + line(long) + line(two))
    expect(readAll(path).records).toEqual([one, long, two])
  })
})

describe("a changed file", () => {
  const grown = () => {
    const path = fileOf(line(one) + line(two))
    return { path, cursor: readAll(path).cursor }
  }

  test("is read from its beginning when it was truncated", () => {
    const { path, cursor } = grown()
    truncateSync(path, line(one).length)
    expect(readAll(path, cursor)).toMatchObject({ mode: "replace", records: [one] })
  })

  test("is read from its beginning when it was rewritten longer than before", () => {
    const { path, cursor } = grown()
    writeFileSync(path, line(three) + line(two) + line(one))
    expect(readAll(path, cursor)).toMatchObject({ mode: "replace", records: [three, two, one] })
  })

  test("is read from its beginning when another file replaced it", () => {
    const { path, cursor } = grown()
    writeFileSync(path, line(three))
    expect(readAll(path, cursor)).toMatchObject({ mode: "replace", records: [three] })
  })

  test("is read from its beginning when one byte in the middle changed and its size did not", () => {
    const { path, cursor } = grown()
    writeFileSync(path, line({ ...one, text: "fir5t" }) + line(two))
    expect(readAll(path, cursor)).toMatchObject({ mode: "replace", records: [{ ...one, text: "fir5t" }, two] })
  })

  test("continues to be read when only its time changed", () => {
    const { path, cursor } = grown()
    settle(path)
    expect(readAll(path, cursor)).toMatchObject({ mode: "append", records: [] })
  })
})

describe("lines that are not exactly one record", () => {
  test("a byte order mark, CRLF and blank lines are not damage", () => {
    const path = fileOf(`\uFEFF${JSON.stringify(one)}\r\n\r\n  \n${JSON.stringify(two)}\r\n`)
    expect(readAll(path)).toMatchObject({ records: [one, two], skipped: [] })
  })

  test("recovers a complete record after half a record, and counts the damage", () => {
    const path = fileOf(JSON.stringify(one).slice(0, 20) + line(two) + line(three))
    const read = readAll(path)
    expect(read.records).toEqual([two, three])
    expect(read.skipped).toEqual([{ reason: "damaged line (records recovered: 1)", where: "byte 0" }])
  })

  test("two records without a newline between them are both read", () => {
    const path = fileOf(JSON.stringify(one) + line(two))
    expect(readAll(path)).toMatchObject({ records: [one, two], skipped: [{ where: "byte 0" }] })
  })

  test("a run of NULs, as a crash leaves it, costs only itself", () => {
    const path = fileOf(`${line(one)}${"\0".repeat(5000)}${line(two)}${"\0".repeat(10)}\n${line(three)}`)
    const read = readAll(path)
    expect(read.records).toEqual([one, two, three])
    expect(read.skipped.length).toBe(2)
  })

  test("counts JSON that is not an object, and text that is not JSON, with its position", () => {
    const path = fileOf(`42\n"text"\n[1]\nnull\nnot json\n${line(one)}`)
    const read = readAll(path)
    expect(read.records).toEqual([one])
    expect(read.skipped.map((skipped) => skipped.where)).toEqual(["byte 0", "byte 3", "byte 10", "byte 14", "byte 19"])
  })

  test("counts a record that is nested too deeply instead of throwing", () => {
    const deep = `{"id":"deep","text":${"[".repeat(100_000)}${"]".repeat(100_000)}}\n`
    const objects = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}\n`
    const read = readAll(fileOf(deep + objects + line(one)))
    expect(read.records).toEqual([one])
    expect(read.skipped.map((skipped) => skipped.reason)).toEqual(Array(2).fill("nested deeper than 200 levels"))
  })

  test("a last line over the limit is counted, and not waited for", () => {
    const path = fileOf(line(one))
    truncateSync(path, 70 << 20)
    const read = readAll(path)
    expect(read).toMatchObject({ records: [one], pending: false, cursor: { offset: line(one).length } })
    expect(read.skipped).toEqual([
      { reason: expect.stringContaining("over the limit"), where: `byte ${line(one).length}` },
    ])
    appendFileSync(path, `\n${line(two)}`)
    expect(readAll(path, read.cursor)).toMatchObject({ mode: "append", records: [two] })
  })
})

describe("options for connectors", () => {
  test("a line that is not wanted is not parsed, and its bytes are still covered by the cursor", () => {
    const path = fileOf(`${line(one)}{"tick": not even JSON}\n${line(two)}`)
    const read = readAll(path, undefined, { isWanted: (text) => !text.startsWith('{"tick"') })
    expect(read).toMatchObject({ records: [one, two], skipped: [] })
    expect(read.cursor).toEqual(readAll(path).cursor)
  })

  test("strip sees each record with the length of its line, and may drop it", () => {
    const seen: number[] = []
    const strip = (record: RawRecord, chars: number) => {
      seen.push(chars)
      return record.id === "one" ? undefined : { id: record.id }
    }
    expect(readAll(fileOf(line(one) + line(two)), undefined, { strip }).records).toEqual([{ id: "two" }])
    expect(seen).toEqual([JSON.stringify(one).length, JSON.stringify(two).length])
  })

  test("a reader that stops early gets the cursor of what it consumed", () => {
    const path = fileOf(line(one) + line(two))
    const reading = readJsonl(path, undefined)
    for (const _ of reading.records) break
    expect(reading.end().cursor.offset).toBe(0)
    expect(readAll(path, reading.end().cursor).records).toEqual([one, two])
  })
})

describe("recovering records from a damaged line", () => {
  const nested = { type: "user", message: { role: "user", content: [{ type: "text", text: "hi" }] }, uuid: "u" }
  const text = JSON.stringify(nested)

  test("finds a complete record wherever the broken one before it was cut", () => {
    for (let cut = 1; cut < text.length; cut++) {
      expect(recoverRecords(text.slice(0, cut) + JSON.stringify(two)), `cut at ${cut}`).toContainEqual(two)
    }
  })

  test("finds a record that was written into the middle of another's string", () => {
    const at = text.indexOf("hi") + 1
    expect(recoverRecords(text.slice(0, at) + JSON.stringify(two) + text.slice(at))).toEqual([two])
  })

  test("does not mistake the pieces of a broken record for records", () => {
    expect(recoverRecords(text.slice(0, -1))).toEqual([])
    expect(recoverRecords(text.slice(5))).toEqual([])
    expect(recoverRecords(`[${text},${text}]`)).toEqual([])
  })

  test("loses only the record with a bad escape", () => {
    const bad = '{"id":"bad","text":"a\\d","more":{"x":1,"y":2}}'
    expect(recoverRecords(bad)).toEqual([])
    expect(recoverRecords(bad + JSON.stringify(two))).toContainEqual(two)
  })
})

function line(record: unknown): string {
  return `${JSON.stringify(record)}\n`
}

function fileOf(content: string): string {
  const path = join(tempDir(), "session.jsonl")
  writeFileSync(path, content)
  return path
}

function settle(path: string): void {
  date(path, Date.now() - 3_600_000)
}

function date(path: string, at: number): void {
  utimesSync(path, at / 1000, at / 1000)
}

function readAll(path: string, after?: Cursor, options?: JsonlOptions) {
  const reading = readJsonl(path, after, options)
  const records = [...reading.records]
  return { mode: reading.mode, records, ...reading.end() }
}
