import assert from "node:assert/strict"
import { createHash } from "node:crypto"
import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { join, relative, sep } from "node:path"
import { pathToFileURL } from "node:url"
import {
  type Connector,
  type Cursor,
  isUnreadable,
  type Parsed,
  type Unit,
  type Watched,
} from "../agents/kit/connector.ts"
import type { RawRecord } from "../core/record.ts"

/**
 * The modification time of fixtures. It is old enough that an unterminated last line counts as complete, and constant so that
 * golden files do not change.
 */
const FIXTURE_TIME = new Date("2026-01-01T00:00:00Z")

export type ContractTest = { name: string; run(): Promise<void> }

/**
 * Returns the tests that every connector must pass, for any test runner: every check with every fixture. A test throws if it
 * fails. A fixture is a folder named `<agent version>-<what it shows>` with either `home/` (a home directory as the agent left
 * it) or `make.ts` (exports `make(home)`, for what cannot be committed as a file: databases, compressed files), and
 * `expected.json`, which a person reads before accepting it (`DEX_ACCEPT_GOLDEN=1` writes it).
 */
export function contractOf(connector: Connector, fixtures: string): ContractTest[] {
  return readdirSync(fixtures)
    .sort()
    .flatMap((fixture) =>
      Object.entries(CHECKS).map(([name, check]) => ({
        name: `${connector.source}, fixture ${fixture}: ${name}`,
        run: async () => {
          const dir = mkdtempSync(join(tmpdir(), "dex-contract-"))
          try {
            await check(connector, await unpackFixture(join(fixtures, fixture), dir), join(fixtures, fixture))
          } finally {
            rmSync(dir, { recursive: true, force: true })
          }
        },
      })),
    )
}

type Check = (connector: Connector, home: string, fixture: string) => Promise<void>

const CHECKS: Record<string, Check> = {
  "reads what its golden file says": async (connector, home, fixture) => {
    const goldenFile = join(fixture, "expected.json")
    const result = makePortable(await readAll(connector, home), home)
    if (process.env.DEX_ACCEPT_GOLDEN || !existsSync(goldenFile)) {
      if (process.env.CI) throw new Error(`${goldenFile} is missing: run with DEX_ACCEPT_GOLDEN=1, read it, commit it`)
      writeFileSync(goldenFile, `${JSON.stringify(result, null, 1)}\n`)
    }
    assert.deepEqual(result, JSON.parse(readFileSync(goldenFile, "utf8")))
  },
  "leaves the source unchanged, byte for byte, and nothing next to it": async (connector, home) => {
    const hashesBefore = treeHash(home)
    await readAll(connector, home)
    assert.deepEqual(treeHash(home), hashesBefore)
  },
  "gives the same keys in the same order on a second read, and each key once in a conversation": async (
    connector,
    home,
  ) => {
    const firstRead = await readAll(connector, home)
    assert.deepEqual(await readAll(connector, home), firstRead)
    for (const conversation of firstRead.flatMap((unit) => unit.conversations)) {
      const keys = conversation.messages.map((message) => message.key)
      assert.equal(new Set(keys).size, keys.length)
    }
  },
  "finds only files whose changes its watched folders report": async (connector, home) => {
    const watched = connector
      .roots({ home, env: {}, platform: "linux" })
      .flatMap((root) => connector.watched?.(root) ?? [{ folder: root, depth: Infinity }])
    const files = (await unitsOf(connector, home)).map((unit) => unit.path)
    assert.deepEqual(
      files.filter((file) => !watched.some((area) => covers(area, file))),
      [],
    )
  },
  "parses the stored records like the source": async (connector, home) => {
    for (const unit of await unitsOf(connector, home)) {
      const records = await recordsOf(connector, unit)
      const storedRecords = records.map((record) => JSON.parse(JSON.stringify(record)) as RawRecord)
      assert.deepEqual(connector.parse(storedRecords, unitNameOf(unit)), connector.parse(records, unitNameOf(unit)))
    }
  },
  "resumes from any cursor without losing or repeating a record": async (connector, home) => {
    for (const unit of await lineUnits(connector, home)) {
      const content = readFileSync(unit.path)
      const allRecords = await recordsOf(connector, unit)
      for (const cut of cutOffsets(content)) {
        const firstReading = await writeAndRead(connector, unit, content.subarray(0, cut))
        const secondReading = await writeAndRead(connector, unit, content, firstReading.cursor)
        assert.equal(secondReading.mode, "append")
        assert.deepEqual([...firstReading.records, ...secondReading.records], allRecords)
      }
    }
  },
  "keeps the rest if the last line is incomplete, and reads that line once it is complete": async (connector, home) => {
    for (const unit of await lineUnits(connector, home)) {
      const allRecords = await recordsOf(connector, unit)
      const content = readFileSync(unit.path)
      const lastLine = content.subarray(content.lastIndexOf(10, content.length - 2) + 1)
      appendFileSync(unit.path, lastLine.subarray(0, lastLine.length >> 1))
      touch(unit.path, Date.now())
      assert.deepEqual(await recordsOf(connector, unit), allRecords)
    }
  },
  "keeps the complete record of a spliced line, and reports that the line was damaged": async (connector, home) => {
    for (const unit of await lineUnits(connector, home)) {
      const allRecords = await recordsOf(connector, unit)
      const content = readFileSync(unit.path, "utf8")
      const line = content.slice(0, content.indexOf("\n"))
      writeFileSync(unit.path, `${line.slice(0, line.length >> 1)}${content}`)
      const reading = await connector.read(unit)
      assert.deepEqual([...reading.records], allRecords)
      assert.equal(reading.end().skipped.length, 1)
    }
  },
  "counts a record of an unknown type and continues": async (connector, home) => {
    for (const unit of await lineUnits(connector, home)) {
      const parsedBefore = connector.parse(await recordsOf(connector, unit), unitNameOf(unit))
      for (const type of UNKNOWN_TYPES)
        appendFileSync(unit.path, `${JSON.stringify({ type, id: "x", payload: { deep: [1, null] } })}\n`)
      const parsedAfter = connector.parse(await recordsOf(connector, unit), unitNameOf(unit))
      assert.deepEqual(parsedAfter.conversations, parsedBefore.conversations)
      assert.equal(sumOf(parsedAfter.unknown), sumOf(parsedBefore.unknown) + UNKNOWN_TYPES.length)
      assert.deepEqual(
        Object.values(parsedAfter.unknown).filter((count) => !Number.isSafeInteger(count)),
        [],
      )
    }
  },
}

/** Unknown record types. Some are names of properties that every object has. */
const UNKNOWN_TYPES = ["never_seen_before", "constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]

/** Returns true if a watch on the folder reports changes to the file. Follows the same rules as `src/watch`. */
function covers({ folder, depth, files, skip = [] }: Watched, file: string): boolean {
  const segments = relative(folder, file).split(sep)
  const folders = segments.slice(0, -1)
  return (
    segments[0] !== ".." &&
    folders.length <= depth &&
    !folders.some((name) => skip.includes(name)) &&
    (files === undefined || files.test(segments.join("/")))
  )
}

/** Creates the home of a fixture in a folder and returns its path. All its files get FIXTURE_TIME. */
export async function unpackFixture(fixture: string, dir: string): Promise<string> {
  const home = join(dir, "home")
  mkdirSync(home)
  const maker = join(fixture, "make.ts")
  if (existsSync(maker)) {
    const { make } = (await import(pathToFileURL(maker).href)) as { make: (home: string) => void | Promise<void> }
    await make(home)
  } else cpSync(join(fixture, "home"), home, { recursive: true })
  for (const entry of readdirSync(home, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) touch(join(entry.parentPath, entry.name), FIXTURE_TIME.getTime())
  }
  return home
}

const scratchOf = (home: string) => join(home, "..", "scratch")

export async function unitsOf(connector: Connector, home: string): Promise<Unit[]> {
  const machine = { home, env: {}, platform: "linux" as const }
  const discovered = connector
    .roots(machine)
    .flatMap((root) => [...connector.discover(root, () => false, scratchOf(home))])
  const units = discovered.filter((unit): unit is Unit => !isUnreadable(unit))
  return units.sort((a, b) => (a.key < b.key ? -1 : 1))
}

export async function recordsOf(connector: Connector, unit: Unit): Promise<RawRecord[]> {
  const scratch = mkdtempSync(join(tmpdir(), "dex-scratch-"))
  try {
    return [...(await connector.read(unit, undefined, scratch)).records]
  } finally {
    rmSync(scratch, { recursive: true, force: true })
  }
}

export type UnitResult = Parsed & { unit: string }

/** Returns everything that a connector reads in a home. */
export async function readAll(connector: Connector, home: string): Promise<UnitResult[]> {
  const units: UnitResult[] = []
  for (const unit of await unitsOf(connector, home)) {
    units.push({ unit: unit.key, ...connector.parse(await recordsOf(connector, unit), unitNameOf(unit)) })
  }
  return units
}

function unitNameOf(unit: Unit): { key: string; path: string } {
  return { key: unit.key, path: unit.path }
}

async function lineUnits(connector: Connector, home: string): Promise<Unit[]> {
  return (await unitsOf(connector, home)).filter((unit) => unit.path.endsWith(".jsonl"))
}

/** Writes `content` to the unit's file and reads from the cursor on, as a later sync would. */
async function writeAndRead(connector: Connector, unit: Unit, content: Buffer, after?: Cursor) {
  writeFileSync(unit.path, content)
  touch(unit.path, Date.now())
  const reading = await connector.read(unit, after)
  const records = [...reading.records]
  return { mode: reading.mode, records, cursor: reading.end().cursor }
}

/** Returns up to about sixty offsets at which to cut the content: at line ends, inside lines and inside characters. */
function cutOffsets(content: Buffer): number[] {
  const step = Math.max(1, Math.floor(content.length / 30))
  const offsets = new Set<number>([0])
  for (let at = step; at < content.length; at += step) {
    offsets.add(at)
    offsets.add(content.indexOf(10, at) + 1)
  }
  return [...offsets].filter((at) => at <= content.lastIndexOf(10) + 1)
}

function touch(path: string, at: number): void {
  utimesSync(path, at / 1000, at / 1000)
}

function makePortable<T>(value: T, home: string): T {
  return JSON.parse(JSON.stringify(value).replaceAll(JSON.stringify(home).slice(1, -1), "~")) as T
}

function sumOf(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

/** Maps every file to its modification time and a hash of its content. */
export function treeHash(dir: string): Record<string, string> {
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    files.map((entry) => {
      const path = join(entry.parentPath, entry.name)
      const hash = createHash("sha256").update(readFileSync(path)).digest("hex")
      return [relative(dir, path), `${statSync(path).mtimeMs} ${hash}`]
    }),
  )
}
