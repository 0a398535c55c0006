import { randomBytes } from "node:crypto"
import { readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { INDEX_FILE, KNOWLEDGE_FILE, SPENDING_FILE } from "../../src/core/formats.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import { flipBit, loseSector, rotBodies, rotRecords } from "../support/rot.ts"
import { synced } from "../support/synced.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"
const READING = [
  ["search", "mutex"],
  ["show", AUTH],
  ["timeline", AUTH],
  ["scan", AUTH],
  ["handover", AUTH],
  ["reindex"],
]

const shown = async (home: string, ref = AUTH) => (await dex(home, ["show", ref])).stdout

test("the mark of a forgotten conversation survives a damaged checksum: no sync or repair brings it back", async () => {
  const home = await synced()
  expect(await dex(home, ["forget", AUTH, "--yes"])).toMatchObject({ code: 0 })
  const db = openSqlite(join(home, ".dex", "history.db"))
  db.prepare("update tombstone set sum = 1").run()
  db.close()
  expect((await dex(home, ["doctor"])).stdout).toMatch(/mark of a forgotten conversation/)
  await dex(home, ["sync"])
  // Its file is read as one that is new.
  for (const file of readdirSync(join(home, ".claude"), { recursive: true, encoding: "utf8" }))
    if (file.endsWith(".jsonl")) utimesSync(join(home, ".claude", file), new Date(), new Date())
  await dex(home, ["sync"])
  expect(await dex(home, ["show", AUTH])).toMatchObject({ code: 2, stdout: "" })
  expect((await dex(home, ["doctor", "--json"])).stdout).not.toMatch(/mark of a forgotten conversation/)
})

describe("a damaged block of messages", () => {
  test("omits unreadable messages, says so, and stops no command", async () => {
    const home = await synced()
    rotBodies(home, AUTH, loseSector)
    for (const args of READING) {
      const run = await dex(home, args)
      expect([args, run.stderr]).toEqual([args, expect.stringContaining(AUTH)])
      expect(run.stderr).toMatch(/history\.db is damaged in places.*`dex sync` restores what it can/)
      expect(run.stdout).not.toMatch(/mutex/)
    }
    expect((await dex(home, ["list"])).stdout).toMatch(/Refresh token race/)
    expect((await dex(home, ["show", SIDEBAR])).stderr).not.toMatch(/damaged/)
    expect((await dex(home, ["search", "flickers"])).stdout).toMatch(/sidebar/i)
  })

  test.each([
    ["there", false],
    ["deleted", true],
  ])(
    "with a single flipped bit is never shown, and is read again by the next sync; the agent's file is %s",
    async (_, isDeleted) => {
      const home = await synced()
      if (isDeleted) {
        rmSync(join(home, ".claude"), { recursive: true })
        await syncHome(home)
      }
      const before = await dex(home, ["show", AUTH])
      rotBodies(home, AUTH, flipBit)
      expect((await dex(home, ["show", AUTH])).stderr).toContain(AUTH)
      expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
      expect(await dex(home, ["show", AUTH])).toEqual(before)
    },
  )

  test("is restored by the next sync from the agent's file", async () => {
    const home = await synced()
    const before = await shown(home)
    rotBodies(home, AUTH, loseSector)
    rotRecords(home, AUTH, loseSector)
    expect(await shown(home)).not.toEqual(before)
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await dex(home, ["show", AUTH])).toMatchObject({
      stdout: before,
      stderr: expect.not.stringMatching(/damaged/),
    })
    expect((await dex(home, ["doctor", "--json"])).stdout).not.toMatch(/damaged/)
  })

  test("is restored from its raw records when the agent has deleted its file", async () => {
    const home = await synced()
    rmSync(join(home, ".claude"), { recursive: true })
    await syncHome(home)
    const before = await shown(home)
    rotBodies(home, AUTH, loseSector)
    await shown(home)
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await shown(home)).toEqual(before)
  })

  test("stays as it is if neither exists any more, and everything else works", async () => {
    const home = await synced()
    rmSync(join(home, ".claude"), { recursive: true })
    await syncHome(home)
    rotBodies(home, AUTH, loseSector)
    rotRecords(home, AUTH, loseSector)
    await shown(home)
    const run = await dex(home, ["sync"])
    expect(run).toMatchObject({ code: 0, stderr: expect.stringMatching(`Damaged in history.db: ${AUTH}`) })
    expect((await dex(home, ["list"])).stdout).toMatch(/Refresh token race/)
    expect((await dex(home, ["search", "flickers"])).stdout).toMatch(/sidebar/i)
  })
})

describe("damaged raw records", () => {
  test("are recreated from the agent's file, and the messages stay", async () => {
    const home = await synced()
    const before = await shown(home)
    rotRecords(home, AUTH, loseSector)
    expect(await shown(home)).toEqual(before)
    await dex(home, ["doctor"])
    expect((await dex(home, ["sync"])).stderr).toMatch(`Restored what was damaged in history.db: ${AUTH}`)
    expect(await shown(home)).toEqual(before)
  })
})

describe("a damaged index", () => {
  test("is not used: the history is read, the answer says so, and the next sync rebuilds the index", async () => {
    const home = await synced()
    const path = join(home, ".dex", INDEX_FILE)
    for (const end of ["-wal", "-shm"]) rmSync(path + end, { force: true })
    writeFileSync(path, randomBytes(8192))
    for (let i = 0; i < 2; i++) {
      const { stdout } = await dex(home, ["search", "mutex", "--json"])
      expect(JSON.parse(stdout)).toMatchObject({ mode: "scan", results: [{ id: AUTH }] })
      expect(stdout).toMatch(
        /The search index is damaged, so \d of \d conversations, subagents and notes were read one by one/,
      )
    }
    expect((await dex(home, ["doctor"])).stdout).toMatch(/problem +index: The search index is damaged[\s\S]*→ dex sync/)
    expect((await dex(home, ["sync"])).code).toBe(0)
    expect(JSON.parse((await dex(home, ["search", "mutex", "--json"])).stdout)).toMatchObject({ mode: "lexical" })
    expect((await dex(home, ["doctor"])).stdout).toMatch(/ok +index: healthy and up to date/)
  })

  test("of another version is not touched until a forget or a gc", async () => {
    const home = await synced()
    for (const name of ["index.db", "index-9.db", "knowledge.db"]) writeFileSync(join(home, ".dex", name), "another's")
    await dex(home, ["sync"])
    expect((await dex(home, ["search", "mutex"])).code).toBe(0)
    expect(readdirSync(join(home, ".dex"))).toEqual(expect.arrayContaining(["index.db", "index-9.db", "knowledge.db"]))
    const longAgo = Date.now() / 1000 - 8 * 86_400
    utimesSync(join(home, ".dex", "index-9.db"), longAgo, longAgo)
    await dex(home, ["sync"])
    expect(readdirSync(join(home, ".dex"))).toEqual(expect.arrayContaining(["index.db", "knowledge.db"]))
    expect(readdirSync(join(home, ".dex"))).not.toContain("index-9.db")
    await dex(home, ["gc"])
    expect(readdirSync(join(home, ".dex")).filter((name) => /^(index|knowledge)\.db/.test(name))).toEqual([])
  })
})

describe("damaged knowledge", () => {
  test.each([
    [KNOWLEDGE_FILE, ["fix", "token already used"]],
    [SPENDING_FILE, ["usage", "conversation"]],
  ])("is reported, and recreated by the next command: %s", async (name, command) => {
    const home = await synced()
    const before = await dex(home, command)
    const path = join(home, ".dex", name)
    const db = openSqlite(path)
    db.pragma("journal_mode = delete")
    const root = db.prepare("select rootpage from sqlite_master where name = 'meta'").pluck().get() as number
    db.close()
    const bytes = readFileSync(path)
    bytes.fill(0x5a, (root - 1) * 4096, (root - 1) * 4096 + 64)
    writeFileSync(path, bytes)
    const run = await dex(home, command)
    expect(run.stderr).toMatch(
      /(knowledge|spending)-\d\.db is damaged\. It contains only derived data .* Run the command again/,
    )
    expect(await dex(home, command)).toEqual(before)
  })
})

describe("dex doctor --repair", () => {
  const all = ["search mutex", "list --all", `show ${AUTH}`, `show ${SIDEBAR}`, "stats", "sources"]
  const answers = async (home: string) =>
    Promise.all(all.map(async (line) => (await dex(home, line.split(" "))).stdout.replace(/\n.*(?:disk|size).*/g, "")))

  test("makes a new file from what SQLite can read and from the agents' files, and keeps the damaged one", async () => {
    const home = await synced()
    await dex(home, ["forget", `claude_code:33333333-3333-4333-8333-333333333333`, "--yes"])
    const before = await answers(home)
    for (const page of brokenPages(home)) {
      const { stdout, code } = await dex(home, ["doctor"])
      expect([page, code, stdout]).toEqual([
        page,
        1,
        expect.stringMatching(/history.db is damaged[\s\S]*dex doctor --repair/),
      ])
      const run = await dex(home, ["doctor", "--repair"])
      expect([page, run.code, run.stderr]).toEqual([
        page,
        0,
        expect.stringMatching(/The damaged file was kept as\s+.*history\.damaged-/),
      ])
      expect([page, await answers(home)]).toEqual([page, before])
    }
    expect(
      readdirSync(join(home, ".dex")).filter((file) => file.startsWith("history.damaged-")).length,
    ).toBeGreaterThan(0)
    await dex(home, ["forget", AUTH, "--yes"])
    expect(readdirSync(join(home, ".dex")).filter((file) => file.startsWith("history.damaged-"))).toEqual([])
  })

  test("restores from raw records, and from messages, what was on the damaged page when the agents' files are gone", async () => {
    const home = await synced()
    rmSync(join(home, ".claude"), { recursive: true })
    await syncHome(home)
    const before = await answers(home)
    for (const page of brokenPages(home)) {
      // The raw records are lost then, and doctor says so; the messages are not.
      expect([page, (await dex(home, ["doctor", "--repair"])).code]).toEqual([page, page.startsWith("raw") ? 1 : 0])
      expect([page, await answers(home)]).toEqual([page, before])
    }
  })

  test("leaves a file that SQLite cannot open as it is, and a backup restores it", async () => {
    const home = await synced()
    const before = await answers(home)
    const backup = join(home, "backup.db")
    expect((await dex(home, ["backup", backup])).code).toBe(0)
    const path = join(home, ".dex", "history.db")
    const db = openSqlite(path)
    db.pragma("wal_checkpoint(truncate)")
    db.close()
    const bytes = readFileSync(path).fill(0x5a, 0, 16)
    writeFileSync(path, bytes)
    const run = await dex(home, ["doctor", "--repair"])
    expect(run).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/could not be repaired.*dex backup --restore FILE --replace/),
    })
    expect(readFileSync(path).equals(bytes)).toBe(true)
    expect(await dex(home, ["restore", backup, "--replace"])).toMatchObject({ code: 0 })
    await dex(home, ["sync"])
    expect(await answers(home)).toEqual(before)
  })

  test("says so if nothing was damaged", async () => {
    const home = await synced()
    expect(await dex(home, ["doctor", "--repair"])).toMatchObject({ code: 0, stderr: "\nNothing was damaged.\n" })
  })
})

/** Damages one page of the file after the other, each the root of a tree. Each must be repaired before the next. */
function* brokenPages(home: string): Generator<string> {
  for (const [table, what, at, bits] of [
    ["message", "the kind of the page", 0, 8],
    ["conversation", "the kind of the page", 0, 8],
    ["unit", "where its first row is", 9, 0xff],
    ["body", "where its first row is", 9, 1],
    ["raw", "how many rows it has", 4, 2],
  ] as const) {
    const path = join(home, ".dex", "history.db")
    const db = openSqlite(path)
    db.pragma("wal_checkpoint(truncate)")
    const root = db.prepare("select rootpage from sqlite_master where name = ?").pluck().get(table) ?? 1
    db.close()
    const bytes = readFileSync(path)
    bytes[((root as number) - 1) * 4096 + at]! ^= bits
    writeFileSync(path, bytes)
    yield `${table} ${what}`
  }
}

test("in a complete history, a row that lost its checksum is damaged, and is not given a new one", async () => {
  const home = await synced()
  const db = openSqlite(join(home, ".dex", "history.db"))
  expect(db.prepare("update message set sum = null where number = 2").run().changes).toBeGreaterThan(0)
  db.close()
  await dex(home, ["sync"])
  const { code, stdout } = await dex(home, ["doctor"])
  expect([code, stdout]).toEqual([1, expect.stringMatching(/problem +history: .* is damaged/)])
})
