import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join, relative, sep } from "node:path"
import { pathToFileURL } from "node:url"
import { describe, expect, test } from "vitest"
import {
  type Connector,
  type Cursor,
  isUnreadable,
  type Parsed,
  type Unit,
  type Watched,
} from "../../src/agents/kit/connector.ts"
import type { Conversation } from "../../src/core/conversation.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { tempDir, treeHash } from "../support/temp.ts"

/** Old enough that an unterminated last line counts as settled; fixed, so that goldens do not move. */
const FIXTURE_TIME = new Date("2026-01-01T00:00:00Z")

/**
 * What every connector must hold, on every fixture of its agent.
 *
 * A fixture is a folder named `<agent version>-<what it shows>` with either `home/` (a home directory as the agent left
 * it) or `make.ts` (exports `make(home)`, for what cannot be committed as a file: databases, compressed files), and
 * `expected.json`, which is read by a person before it is accepted (`DEX_ACCEPT_GOLDEN=1 npm test` writes it).
 */
export function testConnector(connector: Connector, fixtures: string): void {
  for (const name of readdirSync(fixtures).sort()) {
    const fixture = join(fixtures, name)
    describe(`${connector.source}, fixture ${name}`, () => {
      test("reads what its golden file says", async () => {
        const home = await homeOf(fixture)
        const golden = join(fixture, "expected.json")
        const told = portable(await readAll(connector, home), home)
        if (process.env.DEX_ACCEPT_GOLDEN || !existsSync(golden)) {
          if (process.env.CI) throw new Error(`${golden} is missing: run with DEX_ACCEPT_GOLDEN=1, read it, commit it`)
          writeFileSync(golden, `${JSON.stringify(told, null, 1)}\n`)
        }
        expect(told).toEqual(JSON.parse(readFileSync(golden, "utf8")))
      })

      test("leaves the source as it was, byte for byte, and nothing beside it", async () => {
        const home = await homeOf(fixture)
        const before = treeHash(home)
        await readAll(connector, home)
        expect(treeHash(home)).toEqual(before)
      })

      test("gives the same keys in the same order, twice, and each key once in a conversation", async () => {
        const home = await homeOf(fixture)
        const first = await readAll(connector, home)
        expect(await readAll(connector, home)).toEqual(first)
        for (const conversation of first.flatMap((unit) => unit.conversations)) {
          const keys = conversation.messages.map((message) => message.key)
          expect(new Set(keys).size).toBe(keys.length)
        }
      })

      test("finds nothing that would change without its watched folders telling", async () => {
        const home = await homeOf(fixture)
        const watched = connector
          .roots({ home, env: {}, platform: "linux" })
          .flatMap((root) => connector.watched?.(root) ?? [{ folder: root, depth: Infinity }])
        const files = (await unitsOf(connector, home)).map((unit) => unit.path)
        expect(files.filter((file) => !watched.some((area) => tellsOf(area, file)))).toEqual([])
      })

      test("parses the kept records as it parses the source", async () => {
        const home = await homeOf(fixture)
        for (const unit of await unitsOf(connector, home)) {
          const kept = await recordsOf(connector, unit)
          const copied = kept.map((record) => JSON.parse(JSON.stringify(record)) as RawRecord)
          expect(connector.parse(copied, nameOf(unit))).toEqual(connector.parse(kept, nameOf(unit)))
        }
      })

      test("resumes from any cursor without losing or repeating a record", async () => {
        const home = await homeOf(fixture)
        for (const unit of await lineUnits(connector, home)) {
          const whole = readFileSync(unit.path)
          const all = await recordsOf(connector, unit)
          for (const cut of cuts(whole)) {
            const before = await grow(connector, unit, whole.subarray(0, cut))
            const after = await grow(connector, unit, whole, before.cursor)
            expect(after.mode).toBe("append")
            expect([...before.records, ...after.records]).toEqual(all)
          }
        }
      })

      test("keeps the rest when the last line is torn, and reads that line once it is whole", async () => {
        const home = await homeOf(fixture)
        for (const unit of await lineUnits(connector, home)) {
          const all = await recordsOf(connector, unit)
          const whole = readFileSync(unit.path)
          const last = whole.subarray(whole.lastIndexOf(10, whole.length - 2) + 1)
          appendFileSync(unit.path, last.subarray(0, last.length >> 1))
          touch(unit.path, Date.now())
          expect(await recordsOf(connector, unit)).toEqual(all)
        }
      })

      test("keeps the whole record of a spliced line, and says that the line was damaged", async () => {
        const home = await homeOf(fixture)
        for (const unit of await lineUnits(connector, home)) {
          const all = await recordsOf(connector, unit)
          const whole = readFileSync(unit.path, "utf8")
          const line = whole.slice(0, whole.indexOf("\n"))
          writeFileSync(unit.path, `${line.slice(0, line.length >> 1)}${whole}`)
          const reading = await connector.read(unit)
          expect([...reading.records]).toEqual(all)
          expect(reading.end().skipped.length).toBe(1)
        }
      })

      test("counts a record of an unknown type and goes on", async () => {
        const home = await homeOf(fixture)
        for (const unit of await lineUnits(connector, home)) {
          const before = connector.parse(await recordsOf(connector, unit), nameOf(unit))
          for (const type of UNKNOWN_TYPES)
            appendFileSync(unit.path, `${JSON.stringify({ type, id: "x", payload: { deep: [1, null] } })}\n`)
          const after = connector.parse(await recordsOf(connector, unit), nameOf(unit))
          expect(after.conversations).toEqual(before.conversations)
          expect(sum(after.unknown)).toBe(sum(before.unknown) + UNKNOWN_TYPES.length)
          expect(Object.values(after.unknown).filter((count) => !Number.isSafeInteger(count))).toEqual([])
        }
      })
    })
  }
}

/** Some of which every object seems to have. */
const UNKNOWN_TYPES = ["never_seen_before", "constructor", "__proto__", "toString", "hasOwnProperty", "valueOf"]

/** As `src/watch` reads it. */
function tellsOf({ folder, depth, files, skip = [] }: Watched, file: string): boolean {
  const below = relative(folder, file).split(sep)
  const folders = below.slice(0, -1)
  return (
    below[0] !== ".." &&
    folders.length <= depth &&
    !folders.some((name) => skip.includes(name)) &&
    (files === undefined || files.test(below.join("/")))
  )
}

/** The temporary home a fixture is unpacked to. */
export async function homeOf(fixture: string): Promise<string> {
  const home = join(tempDir(), "home")
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

export async function unitsOf(connector: Connector, home: string): Promise<Unit[]> {
  const machine = { home, env: {}, platform: "linux" as const }
  const found = connector
    .roots(machine)
    .flatMap((root) => [...connector.discover(root, () => false, join(tempDir(), "scratch"))])
  const units = found.filter((unit): unit is Unit => !isUnreadable(unit))
  return units.sort((a, b) => (a.key < b.key ? -1 : 1))
}

export async function recordsOf(connector: Connector, unit: Unit): Promise<RawRecord[]> {
  const reading = await connector.read(unit, undefined, join(tempDir(), "scratch"))
  return [...reading.records]
}

export type UnitTold = Parsed & { unit: string }

/** Everything a connector says about a home. */
export async function readAll(connector: Connector, home: string): Promise<UnitTold[]> {
  const told: UnitTold[] = []
  for (const unit of await unitsOf(connector, home)) {
    told.push({ unit: unit.key, ...connector.parse(await recordsOf(connector, unit), nameOf(unit)) })
  }
  return told
}

/** All conversations of a home, by id; for tests that name one trap. */
export async function conversationsOf(connector: Connector, home: string): Promise<Map<string, Conversation>> {
  const told = await readAll(connector, home)
  return new Map(told.flatMap((unit) => unit.conversations).map((conversation) => [conversation.id, conversation]))
}

function nameOf(unit: Unit): { key: string; path: string } {
  return { key: unit.key, path: unit.path }
}

async function lineUnits(connector: Connector, home: string): Promise<Unit[]> {
  return (await unitsOf(connector, home)).filter((unit) => unit.path.endsWith(".jsonl"))
}

/** Writes `content` to the unit's file and reads from the cursor on, as a later sync would. */
async function grow(connector: Connector, unit: Unit, content: Buffer, after?: Cursor) {
  writeFileSync(unit.path, content)
  touch(unit.path, Date.now())
  const reading = await connector.read(unit, after)
  const records = [...reading.records]
  return { mode: reading.mode, records, cursor: reading.end().cursor }
}

/** Offsets to stop at: around line ends, and inside lines and characters. At most about forty. */
function cuts(content: Buffer): number[] {
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

function portable<T>(value: T, home: string): T {
  return JSON.parse(JSON.stringify(value).replaceAll(JSON.stringify(home).slice(1, -1), "~")) as T
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}
