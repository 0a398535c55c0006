import { copyFileSync, existsSync, readdirSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import Database from "better-sqlite3"
import { beforeAll, describe, expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { claudeSession } from "../support/home.ts"
import { runKilledAt } from "../support/killed-at.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const shared = syncedOnce()
const backup = join(shared, "backup.db")

beforeAll(async () => {
  expect(await dex(shared, ["backup", backup])).toMatchObject({ code: 0 })
})

/** A modified copy of the backup. */
function changed(...statements: string[]): string {
  const file = join(tempDir(), "changed.db")
  copyFileSync(backup, file)
  const db = new Database(file)
  db.unsafeMode()
  for (const sql of statements) db.exec(sql)
  db.close()
  return file
}

async function prompts(home: string): Promise<string[]> {
  const store = openStore(join(home, ".dex", "history.db"))
  const { rows } = await store.list({ limit: 100, offset: 0 })
  store.close()
  return rows.map(({ ref }) => ref.id).sort()
}

const ENDLESS = "with recursive t(n) as (select 1 union all select n + 1 from t)"

describe("a backup with a foreign schema is refused before any of its code runs", () => {
  test.each<[string, string[]]>([
    [
      "a trigger",
      ["create trigger evil after insert on unit begin delete from conversation; delete from message; end"],
    ],
    [
      "a trigger that stops every write",
      ["create trigger evil before insert on message begin select raise(abort, 'no'); end"],
    ],
    ["a view", ["create view extra as select * from message"]],
    [
      "an endless view in a table's place",
      ["alter table tombstone rename to old", `create view tombstone as ${ENDLESS} select n as hash from t`],
    ],
    [
      "an endless view in the place of the units",
      ["alter table unit rename to old", `create view unit as ${ENDLESS} select n as id from t`],
    ],
    ["a generated column", ["alter table conversation add column extra text as (hex(zeroblob(300000000)))"]],
    ["an index with an expression", ["create index evil on message (abs(number))"]],
    ["a virtual table", ["create virtual table evil using fts5 (words)"]],
    ["another table", ["create table evil (a)"]],
    [
      "a check that costs memory",
      [
        "pragma writable_schema = 1; update sqlite_schema set sql = replace(sql, 'stamp text', 'stamp text check(length(hex(zeroblob(500000000))) > 0)') where name = 'unit'",
      ],
    ],
    [
      "a schema that cannot be read",
      [
        "pragma writable_schema = 1; update sqlite_schema set sql = 'create table message(conversation_id' where name = 'message'",
      ],
    ],
    ["no version", ["pragma user_version = 0"]],
    ["a negative version", ["pragma user_version = -1"]],
    ["a later version", ["pragma user_version = 99"]],
    ["an older version than its tables", ["pragma user_version = 2"]],
  ])("%s", async (_, statements) => {
    const file = changed(...statements)
    const home = tempDir()
    for (const command of ["restore", "import"]) {
      const { code, stderr } = await dex(home, [command, file])
      expect(code, stderr).toBe(2)
      expect(stderr).toMatch(/is not a dex history|was written by a newer dex|does not have the tables of a history/)
      expect(stderr).not.toContain("should not happen")
    }
    expect(readdirSync(join(home, ".dex")).filter((name) => name.includes("restored"))).toEqual([])
    claudeSession(home, {
      id: "44444444-4444-4444-8444-444444444444",
      start: "2026-11-12T09:00:00Z",
      turns: [{ user: "mine" }],
    })
    await syncHome(home)
    expect(await prompts(home)).toHaveLength(1)
    expect(await dex(home, ["doctor"])).toMatchObject({ code: 0 })
  })

  test("other files in a backup are restored only if dex wrote them", async () => {
    const file = changed(
      "insert or replace into kept_file values ('suggest.db', x'4141414141'), ('../../../pwned', x'41')",
    )
    const home = tempDir()
    const { code, stdout, stderr } = await dex(home, ["restore", file])
    expect(code, stderr).toBe(0)
    expect(stdout + stderr).toContain(
      "suggest.db in the backup is damaged or was changed by someone else, so it was left out.",
    )
    expect(readdirSync(join(home, ".dex")).filter((name) => !/^(history\.db|sync\.lock)/.test(name))).toEqual([])
    expect(await prompts(home)).toHaveLength(3)
  })
})

test("a restore that is killed at any step leaves a complete history, and the next sync removes its leftovers", async () => {
  const home = tempDir()
  claudeSession(home, {
    id: "55555555-5555-4555-8555-555555555555",
    start: "2026-11-12T09:00:00Z",
    turns: [{ user: "mine" }],
  })
  await syncHome(home)
  const [old, restored] = [await prompts(home), 3]
  const own = join(home, "own.db")
  expect(await dex(home, ["backup", own])).toMatchObject({ code: 0 })
  let kept = 0
  for (let n = 1; ; n++) {
    const ended = await runKilledAt(home, ["restore", backup, "--replace"], n, "files")
    expect(existsSync(join(home, ".dex", "history.db")), `killed at ${n}`).toBe(true)
    const now = await prompts(home)
    expect(now.length === restored || JSON.stringify(now) === JSON.stringify(old), `killed at ${n}: ${now}`).toBe(true)
    await syncHome(home)
    const files = readdirSync(join(home, ".dex"))
    expect(
      files.filter((name) => /restored|partial/.test(name)),
      `killed at ${n}`,
    ).toEqual([])
    const inodes = files
      .filter((name) => /^history.*\.db$/.test(name))
      .map((name) => statSync(join(home, ".dex", name)).ino)
    expect(new Set(inodes).size, `killed at ${n}: ${files}`).toBe(inodes.length)
    kept = files.filter((name) => name.includes("-until-")).length
    if (ended) break
    expect(await dex(home, ["restore", own, "--replace"])).toMatchObject({ code: 0 })
  }
  expect(kept).toBeGreaterThan(0)
  expect(await dex(home, ["doctor"])).toMatchObject({ code: 0 })
})

test("a damaged history can be replaced by a backup", async () => {
  const home = await synced()
  writeFileSync(join(home, ".dex", "history.db"), "not a database at all".repeat(1000))
  const { code, stderr } = await dex(home, ["restore", backup, "--replace"])
  expect(code, stderr).toBe(0)
  expect(await prompts(home)).toHaveLength(3)
})

test("the log next to another machine's history.db is restored with it", async () => {
  const other = await synced()
  const store = openStore(join(other, ".dex", "history.db")) // keeps its log
  try {
    await store.saveProgress({ done: 1, total: 2, at: 3 })
    expect(statSync(join(other, ".dex", "history.db-wal")).size).toBeGreaterThan(0)
    const home = tempDir()
    expect(await dex(home, ["restore", join(other, ".dex", "history.db")])).toMatchObject({ code: 0 })
    const restored = openStore(join(home, ".dex", "history.db"))
    expect(await restored.progress()).toEqual({ done: 1, total: 2, at: 3 })
    restored.close()
  } finally {
    store.close()
  }
})
