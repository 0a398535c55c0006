import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { afterAll, describe, expect, test } from "vitest"
import { generator } from "../../bench/corpus.ts"
import { loadConnectors } from "../../src/agents/connectors.ts"
import type { Connector, Unit } from "../../src/agents/kit/connector.ts"
import { homeOf, readAll, recordsOf, unitsOf } from "../agents/contract.ts"
import { variantFixtures } from "../support/variant-fixtures.ts"

/** 50 for each connector in CI, 10,000 with `npm run torture`. */
const TRANSCRIPTS = Number(process.env.DEX_FUZZ ?? 50)
const FIXTURES = join(import.meta.dirname, "../fixtures")
const dir = mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "dex-fuzz-"))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

for (const connector of (await loadConnectors()).connectors) {
  describe(`${connector.source}, ${TRANSCRIPTS} damaged transcripts`, () => {
    test("never throws, keeps every undamaged line, and recovers complete records from damaged lines", {
      timeout: Math.max(300_000, TRANSCRIPTS * 200),
    }, async ({ skip }) => {
      const sources = await lineSources(connector)
      if (sources.length === 0) {
        console.log(`NOT RUN: ${connector.source} keeps no line-based transcripts in these fixtures`)
        return skip()
      }
      const random = generator(2026)
      let inDamaged = 0
      let recovered = 0
      for (let i = 0; i < TRANSCRIPTS; i++) {
        const source = sources[Math.floor(random() * sources.length)]!
        const damaged = damage(source.lines, random)
        writeFileSync(source.unit.path, damaged.content)
        utimesSync(source.unit.path, 1_700_000_000, 1_700_000_000)
        const reading = await connector.read(source.unit)
        const records = [...reading.records]
        reading.end()
        connector.parse(records, { key: source.unit.key, path: source.unit.path })
        const read = new Set(records.map((record) => JSON.stringify(record)))
        for (const line of damaged.untouched) {
          for (const record of source.recordsOf[line]!)
            expect(read.has(record), `transcript ${i}, line ${line} of ${source.unit.key}`).toBe(true)
        }
        for (const line of damaged.whole) {
          for (const record of source.recordsOf[line]!) {
            inDamaged++
            if (read.has(record)) recovered++
          }
        }
      }
      console.log(`${connector.source}: ${recovered} of ${inDamaged} whole records inside damaged lines recovered`)
      expect(recovered / inDamaged).toBeGreaterThanOrEqual(0.99)
    })

    test("never throws on rows of a damaged database", { timeout: Math.max(300_000, TRANSCRIPTS * 400) }, async ({
      skip,
    }) => {
      const homes = await databaseHomes(connector)
      if (homes.length === 0) return skip()
      const random = generator(7)
      const rounds = Math.ceil(TRANSCRIPTS / 20)
      for (let i = 0; i < rounds; i++) {
        const { home, files } = homes[i % homes.length]!
        const originals = files.map((file) => readFileSync(file))
        for (const file of files) damageRows(file, random)
        await readAll(connector, home)
        for (const [n, file] of files.entries()) writeFileSync(file, originals[n]!)
      }
    })

    test("never throws on damaged files that are read as one piece", {
      timeout: Math.max(300_000, TRANSCRIPTS * 200),
    }, async ({ skip }) => {
      const units = await wholeFiles(connector)
      if (units.length === 0) return skip()
      const random = generator(11)
      for (let i = 0; i < TRANSCRIPTS; i++) {
        const { unit, content } = units[i % units.length]!
        writeFileSync(unit.path, vandalise(content, random))
        utimesSync(unit.path, 1_700_000_000, 1_700_000_000)
        const reading = await connector.read(unit)
        connector.parse([...reading.records], { key: unit.key, path: unit.path })
        reading.end()
        writeFileSync(unit.path, content)
      }
    })
  })
}

/** Every transcript in the fixtures that is read as one piece of JSON or Markdown. */
async function wholeFiles(connector: Connector): Promise<{ unit: Unit; content: string }[]> {
  const files: { unit: Unit; content: string }[] = []
  for (const fixture of await fixturesOf(connector))
    for (const unit of await unitsOf(connector, await homeOf(fixture)))
      if (/\.(json|md)$/.test(unit.path)) files.push({ unit, content: readFileSync(unit.path, "utf8") })
  return files
}

type Source = { unit: Unit; lines: string[]; recordsOf: string[][] }

/** Every line-based transcript in the fixtures, with the records that each line gives on its own. */
async function lineSources(connector: Connector): Promise<Source[]> {
  const sources: Source[] = []
  for (const fixture of await fixturesOf(connector)) {
    for (const unit of await unitsOf(connector, await homeOf(fixture))) {
      if (!unit.path.endsWith(".jsonl")) continue
      const lines = readFileSync(unit.path, "utf8")
        .split("\n")
        .filter((line) => line !== "")
      writeFileSync(unit.path, "")
      const always = new Set((await recordsOf(connector, unit)).map((record) => JSON.stringify(record)))
      const given: string[][] = []
      for (const line of lines) {
        writeFileSync(unit.path, `${line}\n`)
        given.push(
          (await recordsOf(connector, unit))
            .map((record) => JSON.stringify(record))
            .filter((record) => !always.has(record)),
        )
      }
      if (lines.length > 1) sources.push({ unit, lines, recordsOf: given })
    }
  }
  return sources
}

/** Damages a file like crashes and concurrent writers do: mostly splices, some missing newlines, some runs of NULs. */
function damage(lines: string[], random: () => number): { content: string; untouched: number[]; whole: number[] } {
  const out: string[] = []
  const untouched: number[] = []
  const whole: number[] = []
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i]!
    const roll = random()
    if (roll > 0.12) {
      out.push(`${line}\n`)
      untouched.push(i)
    } else if (roll < 0.07) {
      const other = lines[Math.floor(random() * lines.length)]!
      out.push(`${other.slice(0, 1 + Math.floor(random() * (other.length - 1)))}${line}\n`)
      whole.push(i)
    } else if (roll < 0.08 && i + 1 < lines.length) {
      out.push(`${line}${lines[i + 1]}\n`)
      whole.push(i, i + 1)
      i++
    } else if (roll < 0.1) {
      out.push(`${"\0".repeat(1 + Math.floor(random() * 600))}${line}\n`)
      whole.push(i)
    } else out.push(`${vandalise(line, random)}\n`)
  }
  const frame = random()
  const content = out.join("")
  return {
    content: frame < 0.1 ? `\u{feff}${content}` : frame < 0.2 ? content.replaceAll("\n", "\r\n") : content,
    untouched,
    whole,
  }
}

const HOSTILE = [
  "null",
  "0",
  "-1e999",
  "1e308",
  '""',
  "[]",
  "{}",
  "true",
  '"\\ud800"',
  `${"[".repeat(300)}${"]".repeat(300)}`,
  `"${"x".repeat(5000)}"`,
  '{"type":{"type":[]}}',
  '"__proto__"',
  "[[[null]]]",
]

/** Replaces parts of a record with values of unexpected types, keys that are special in JavaScript, or cut values. */
function vandalise(line: string, random: () => number): string {
  const roll = random()
  if (roll < 0.15) return line.slice(0, Math.floor(random() * line.length))
  if (roll < 0.25) return line.replaceAll('"type"', '"constructor"')
  if (roll < 0.35) return "\u0000\u0001\u001b[31m{"
  const values = [...line.matchAll(/":\s*("(?:[^"\\]|\\.){0,80}"|\d{1,15}|true|false|null)/g)]
  if (values.length === 0) return line
  const chosen = values[Math.floor(random() * values.length)]!
  const hostile = HOSTILE[Math.floor(random() * HOSTILE.length)]!
  return `${line.slice(0, chosen.index)}":${hostile}${line.slice(chosen.index + chosen[0].length)}`
}

async function databaseHomes(connector: Connector): Promise<{ home: string; files: string[] }[]> {
  const homes: { home: string; files: string[] }[] = []
  for (const fixture of await fixturesOf(connector)) {
    const home = await homeOf(fixture)
    const files = readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && /\.(db|vscdb|sqlite3?)$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name))
    if (files.length > 0) homes.push({ home, files })
  }
  return homes
}

/** Overwrites random text and blob values of random rows. */
function damageRows(file: string, random: () => number): void {
  const db = new Database(file)
  try {
    db.pragma("journal_mode = delete")
    const tables = db
      .prepare("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
      .pluck()
      .all() as string[]
    for (const table of tables) {
      const columns = (db.pragma(`table_info("${table}")`) as { name: string; pk: number }[])
        .filter((column) => column.pk === 0)
        .map((column) => column.name)
      const rows = db.prepare(`select rowid from "${table}"`).pluck().all() as number[]
      for (const row of rows) {
        if (random() > 0.15 || columns.length === 0) continue
        const column = columns[Math.floor(random() * columns.length)]!
        const old = db.prepare(`select "${column}" from "${table}" where rowid = ?`).pluck().get(row)
        const text = typeof old === "string" ? old : Buffer.isBuffer(old) ? old.toString("latin1") : String(old)
        const value =
          random() < 0.2
            ? null
            : random() < 0.5
              ? vandalise(text, random)
              : HOSTILE[Math.floor(random() * HOSTILE.length)]!
        try {
          db.prepare(`update "${table}" set "${column}" = ? where rowid = ?`).run(value, row)
        } catch {
          // the schema refuses the value, so the agent's own database can never contain it
        }
      }
    }
  } finally {
    db.close()
  }
}

async function fixturesOf(connector: Connector): Promise<string[]> {
  const folder = (await variantFixtures(connector.source)) ?? join(FIXTURES, connector.source)
  return readdirSync(folder).map((name) => join(folder, name))
}
