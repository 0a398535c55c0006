import { execFileSync } from "node:child_process"
import {
  appendFileSync,
  copyFileSync,
  cpSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { zstdCompressSync } from "node:zlib"
import Database from "better-sqlite3"
import { beforeAll, describe, expect, test } from "vitest"
import { packBlock, readBlock } from "../../src/store/history/codec.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { carve } from "../support/carve.ts"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

// Imported files that are made to do harm. Whatever they contain: the existing history does not change, every command works
// afterwards, and the message says what was left out.

const MINE = "d1111111-1111-4111-8111-111111111111"
const THEIRS = ["11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"]

const source = syncedOnce()
const backup = join(source, "backup.db")
beforeAll(async () => {
  expect(await dex(source, ["backup", backup])).toMatchObject({ code: 0 })
})

type Db = Database.Database

/** A copy of the backup, changed as an attacker could. */
function changed(change: (db: Db, file: string) => void): string {
  const file = join(tempDir(), "theirs.db")
  copyFileSync(backup, file)
  const db = new Database(file)
  db.unsafeMode()
  db.exec("update meta set value = value || '-other', sum = null where key = 'history_id'")
  // As if an older dex had written it, so that a row may have no checksum.
  db.exec("delete from meta where key = 'sealed'")
  change(db, file)
  db.close()
  return file
}

/** Removes the checksums, so that they do not reveal the change. */
function sql(...statements: string[]): (db: Db) => void {
  return (db) => {
    for (const statement of statements) db.exec(statement)
    for (const table of ["unit", "conversation", "message", "body", "raw", "project"])
      db.exec(`update ${table} set sum = null`)
  }
}

/** Changes the stored content of every message. */
function bodies(change: (body: Record<string, unknown>) => unknown): (db: Db) => void {
  return (db) => {
    for (const row of db.prepare("select conversation_id, chunk, data from body").all() as {
      conversation_id: number
      chunk: number
      data: Buffer
    }[]) {
      const lines = readBlock(row.data)!.map((line) => {
        const now = change(JSON.parse(line))
        return typeof now === "string" ? now : JSON.stringify(now)
      })
      db.prepare("update body set data = ?, sum = null where conversation_id = ? and chunk = ?").run(
        packBlock(lines).data,
        row.conversation_id,
        row.chunk,
      )
    }
  }
}

/** Adds a REFERENCES clause to a column in the schema. */
function withReference(table: string, column: string, to: string): (db: Db) => void {
  return (db) => {
    db.pragma("writable_schema = 1")
    const { changes } = db
      .prepare("update sqlite_schema set sql = replace(sql, ?, ?) where name = ? and instr(sql, ?) > 0")
      .run(column, `${column} references ${to}`, table, column)
    expect(changes).toBe(1)
  }
}

/** `lines` of one character, which compress well. */
const bomb = (bytes: number, character: string) => zstdCompressSync(Buffer.alloc(bytes, character))

/** A home with one conversation of its own. */
async function own(): Promise<string> {
  const home = tempDir()
  claudeSession(home, {
    id: MINE,
    start: "2026-11-12T09:00:00Z",
    turns: [{ user: "wolverine of mine" }, { assistant: "kept" }],
  })
  await syncHome(home)
  return home
}

async function content(home: string): Promise<Record<string, string[]>> {
  const store = openStore(join(home, ".dex", "history.db"))
  const all: Record<string, string[]> = {}
  for (const { ref } of (await store.list({ limit: 100, offset: 0 })).rows)
    all[`${ref.source}:${ref.id}`] = (await store.messages(ref)).map(({ parts }) =>
      parts.map(({ text }) => text).join(),
    )
  store.close()
  return all
}

async function expectEveryCommandWorks(home: string): Promise<void> {
  expect((await content(home))[`claude_code:${MINE}`]).toEqual(["wolverine of mine", "kept"])
  for (const command of [["list", "--all"], ["stats"], ["search", "wolverine"], ["show", MINE], ["sync"], ["doctor"]]) {
    const { code, stderr } = await dex(home, command)
    expect(code, `dex ${command.join(" ")}: ${stderr}`).toBe(0)
    expect(stderr).not.toContain("should not happen")
  }
}

describe("an import accepts valid data, and says what it left out", () => {
  test.each<[string, (db: Db) => void, RegExp, number?]>([
    [
      "impossible times",
      sql(
        "update conversation set ended_at = 9223372036854775807, started_at = -9e18",
        "update message set at = 9223372036854775807",
      ),
      /Left out.*impossible times/,
      3,
    ],
    [
      "times that are text",
      sql("update conversation set ended_at = 'soon', started_at = x'00ff'", "update message set at = 'x'"),
      /impossible times/,
      3,
    ],
    [
      "a kind that is none",
      sql("update conversation set kind = 'person; drop'"),
      /conversations with an invalid record/,
      0,
    ],
    [
      "a conversation that says it is a note",
      sql("update conversation set kind = 'note'"),
      /conversations with an invalid record/,
      0,
    ],
    ["an unknown role", sql("update message set role = 'root'"), /damaged or invalid messages/, 0],
    ["flags that are text", sql("update message set flags = 'q'"), /damaged or invalid messages/, 0],
    [
      "an authority above everything",
      sql("update conversation set authority = 1e300"),
      /conversations with an invalid record/,
      0,
    ],
    [
      "folders that are not JSON",
      sql("update conversation set cwds = '{{{'"),
      /conversations with an invalid record/,
      0,
    ],
    ["folders that are not text", sql(`update conversation set cwds = '[{"__proto__":1}, 5, null]'`), /Imported/, 3],
    ["a unit's notes that are not JSON", sql("update unit set skipped = 'nope'"), /files with an invalid record/, 0],
    ["a cursor that is not JSON", sql("update unit set cursor = '{'"), /files with an invalid record/, 0],
    [
      "an agent that leads out of a folder",
      sql("update unit set source = '../../etc'", "update conversation set source = '../../etc'"),
      /an agent that this dex does not know \("\.\.\/\.\.\/etc"\)/,
      0,
    ],
    [
      "an agent that nobody has",
      sql("update unit set source = 'skynet'", "update conversation set source = 'skynet'"),
      /this dex does not know \("skynet"\)/,
      0,
    ],
    ["a source that is a number", sql("update unit set source = 5"), /this dex does not know \("5"\)/, 0],
    [
      "conversations that belong to a different agent than their file",
      sql("update conversation set source = 'codex'"),
      /belong to a different agent than their file/,
      0,
    ],
    [
      "notes in a person's name",
      sql("update unit set source = 'dex_note'", "update conversation set source = 'dex_note'"),
      /3 notes were left out, because agents trust your notes\. If you wrote them: dex import .* --with-notes/,
      0,
    ],
    [
      "notes among another agent's files",
      sql("update conversation set source = 'dex_note'"),
      /belong to a different agent than their file/,
      0,
    ],
    [
      "ids that lead out of a folder",
      sql("update conversation set native_id = '../../x' || id"),
      /conversations with an invalid record/,
      0,
    ],
    [
      "ids with a NUL",
      sql("update conversation set native_id = 'a' || char(0) || id"),
      /conversations with an invalid record/,
      0,
    ],
    [
      "ids of a megabyte",
      sql("update conversation set native_id = hex(zeroblob(500000)) || id"),
      /conversations with an invalid record/,
      0,
    ],
    ["a title of 100 MB", sql("update conversation set title = hex(zeroblob(50000000)) where id = 1"), /Imported/, 3],
    [
      "a title with a NUL and colours",
      sql("update conversation set title = 'a' || char(0) || char(27) || '[31mred'"),
      /Imported/,
      3,
    ],
    ["paths that are numbers", sql("update unit set path = 5, born_at = 'x'"), /files with an invalid record/, 0],
    [
      "projects that are no folders",
      sql("update project set path = 'x' || id"),
      /conversations without a known project/,
    ],
    ["projects without a row", sql("delete from project"), /conversations without a known project/],
    ["keys that are empty", sql("update message set key = x''"), /damaged or invalid messages/, 0],
    [
      "keys that are the same",
      sql("update message set key = x'000102030405060708090a0b'"),
      /damaged or invalid messages/,
      3,
    ],
    ["numbers below zero", sql("update message set number = -number"), /damaged or invalid messages/, 0],
    [
      "numbers that no ref can name",
      sql("update message set number = number + 9007199254740000"),
      /damaged or invalid messages/,
      0,
    ],
    [
      "parents in a circle",
      sql(
        `update conversation set kind = 'subagent', parent_id = case native_id when '${THEIRS[0]}' then '${THEIRS[1]}' else '${THEIRS[0]}' end`,
      ),
      /invalid parents/,
    ],
    ["its own parent", sql("update conversation set parent_id = native_id"), /invalid parents/, 3],
    ["parts that are no list", bodies((body) => ({ ...body, parts: "all of it" })), /damaged or invalid messages/, 0],
    [
      "parts of an unknown type",
      bodies((body) => ({ ...body, parts: [{ type: "exec", text: "x", origin: "person" }] })),
      /damaged or invalid messages/,
      0,
    ],
    [
      "a text that is a number",
      bodies((body) => ({ ...body, parts: [{ type: "text", text: 5, origin: "person" }] })),
      /damaged or invalid messages/,
      0,
    ],
    [
      "tokens without end",
      bodies(
        (body) =>
          `${JSON.stringify({ ...body, usage: undefined }).slice(0, -1)},"usage":{"input":1e999,"output":0,"cache_read":0,"cache_write":0}}`,
      ),
      /token counts/,
      3,
    ],
    [
      "tokens below zero",
      bodies((body) => ({ ...body, usage: { input: -5, output: 0, cache_read: 0, cache_write: 0 } })),
      /token counts/,
      3,
    ],
    ["tokens that are text", bodies((body) => ({ ...body, usage: "many" })), /token counts/, 3],
    [
      "effects of an unknown type",
      bodies((body) => ({ ...body, effects: [{ type: "__proto__", path: "/etc/passwd" }] })),
      /lists of files and commands/,
      3,
    ],
    ["bodies that are not JSON", bodies(() => "NaN"), /damaged or invalid messages/, 0],
    [
      "bodies nested 100,000 deep",
      bodies((body) => `${JSON.stringify(body).slice(0, -1)},"x":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
      /damaged or invalid messages/,
      0,
    ],
    ["a body that is text", sql("update body set data = 'text'"), /damaged or invalid messages/, 0],
    [
      "a block that unpacks to 300 MB",
      (db) => void db.prepare("update body set data = ?, sum = null where conversation_id = 1").run(bomb(300e6, " ")),
      /damaged or invalid messages/,
      2,
    ],
    [
      "raw records that are no JSON",
      (db) => void db.prepare("update raw set data = ?, sum = null").run(packBlock(["{", "5"]).data),
      /files whose raw records cannot be read/,
      3,
    ],
    [
      "raw records nested 100,000 deep",
      (db) =>
        void db
          .prepare("update raw set data = ?, sum = null")
          .run(packBlock([`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`]).data),
      /files whose raw records cannot be read/,
      3,
    ],
    [
      "blocks of 40 million empty lines",
      (db) => void db.prepare("update body set data = ?, sum = null").run(bomb(40e6, "\n")),
      /damaged or invalid messages/,
      0,
    ],
  ])("%s", async (_, change, message, taken) => {
    const home = await own()
    const { code, stdout, stderr } = await dex(home, ["import", changed(change)])
    expect(code, stderr).toBe(0)
    expect((stdout + stderr).replaceAll(/\s+/g, " ")).toMatch(message)
    if (taken !== undefined) expect(Object.keys(await content(home))).toHaveLength(taken + 1)
    await expectEveryCommandWorks(home)
  })
})

describe("a file that is not a dex history is refused in one sentence, without waiting", () => {
  const file = (name = "theirs.db") => join(tempDir(), name)
  const written = (bytes: Buffer | string) => {
    const path = file()
    writeFileSync(path, bytes)
    return path
  }
  test.each<[string, () => string, RegExp]>([
    ["nothing", () => file(), /There is no file/],
    ["an empty file", () => written(""), /is empty, so it is not a dex history/],
    [
      "random bytes",
      () => written(Buffer.from(Array.from({ length: 100_000 }, (_, i) => (i * 7919) % 251))),
      /is not a dex history/,
    ],
    ["text", () => written("hello".repeat(10_000)), /is not a dex history/],
    [
      "a file that was cut off",
      () => {
        const path = written(readFileSync(backup))
        truncateSync(path, 20_000)
        return path
      },
      /is damaged|is not a history/,
    ],
    [
      "a folder",
      () => {
        const path = file()
        mkdirSync(path)
        return path
      },
      /is not a regular file/,
    ],
    [
      "a pipe",
      () => {
        const path = file()
        execFileSync("mkfifo", [path])
        return path
      },
      /is not a regular file/,
    ],
    [
      "a link to an endless device",
      () => {
        const path = file()
        symlinkSync("/dev/zero", path)
        return path
      },
      /is not a regular file/,
    ],
    [
      "a link to itself",
      () => {
        const path = file()
        symlinkSync(path, path)
        return path
      },
      /leads to itself/,
    ],
    [
      "another program's database",
      () => {
        const path = file()
        const db = new Database(path)
        db.exec("create table meta (key, value)")
        db.close()
        return path
      },
      /is not a dex history/,
    ],
    [
      "a database in UTF-16",
      () => {
        const path = file()
        const db = new Database(path)
        db.pragma("encoding = 'UTF-16'")
        db.exec("create table meta (key, value); pragma user_version = 5")
        db.close()
        return path
      },
      /is not a dex history/,
    ],
    [
      "a history without a name",
      () => changed((db) => db.exec("delete from meta where key = 'history_id'")),
      /is not a dex history/,
    ],
    [
      "a history whose name is bytes",
      () => changed((db) => db.exec("update meta set value = x'00ff' where key = 'history_id'")),
      /is not a dex history/,
    ],
    [
      "a history in which deleting one row deletes others, through a foreign key",
      () =>
        changed(withReference("message", "conversation_id integer not null", "conversation (id) on delete cascade")),
      /does not have the tables of a history/,
    ],
    [
      "a history with a foreign key to a table that is not there",
      () => changed(withReference("conversation", "unit_id integer", "elsewhere (id)")),
      /does not have the tables of a history/,
    ],
    [
      "blocks that unpack to gigabytes",
      () => changed((db) => void db.prepare("update body set data = ?, sum = null").run(bomb(300e6, " "))),
      /unpacks to more than \d+ MB|one of its blocks cannot be decompressed/,
    ],
  ])("%s", async (_, make, message) => {
    const home = await own()
    const path = make()
    for (const command of [
      ["import", path],
      ["restore", path, "--replace"],
    ]) {
      const { code, stderr } = await dex(home, command)
      expect(code, stderr).toBe(2)
      expect(stderr).toMatch(message)
      expect(stderr).not.toContain("should not happen")
    }
    await expectEveryCommandWorks(home)
  })

  test("a journal next to the file is not played back, because it can name any other file, which SQLite would delete", async () => {
    const path = changed(() => {})
    const victim = file("victim.txt")
    writeFileSync(victim, "")
    writeFileSync(`${path}-journal`, journalNaming(victim))
    const home = await own()
    expect(await dex(home, ["import", path])).toMatchObject({ code: 0 })
    expect(readFileSync(victim, "utf8")).toBe("")
  })
})

/** A rollback journal of several databases, which names the file with their list. */
function journalNaming(list: string): Buffer {
  const head = Buffer.alloc(512)
  Buffer.from([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]).copy(head)
  head.writeUInt32BE(0, 8)
  head.writeUInt32BE(1, 16)
  head.writeUInt32BE(512, 20)
  head.writeUInt32BE(4096, 24)
  const name = Buffer.from(list)
  const tail = Buffer.alloc(8)
  tail.writeUInt32BE(name.length, 0)
  tail.writeUInt32BE(
    name.reduce((sum, byte) => sum + byte, 0),
    4,
  )
  const page = Buffer.alloc(4)
  page.writeUInt32BE(0x40000000 / 4096 + 1)
  return Buffer.concat([head, page, name, tail, Buffer.from([0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7])])
}

test("an import changes nothing in the existing history: no text, no title, no project, and nothing becomes less private", async () => {
  const home = tempDir()
  cpSync(source, home, { recursive: true, filter: (path) => !path.endsWith(".dex") })
  await syncHome(home)
  await dex(home, ["private", "/code/web"])
  rmSync(join(home, ".claude"), { recursive: true }) // what is here is the only copy
  await syncHome(home)
  const rows = async () => {
    const store = openStore(join(home, ".dex", "history.db"))
    const { rows } = await store.list({ limit: 100, offset: 0, inside: "/code/web" })
    store.close()
    return rows.map(({ ref, title, project, message_count }) => ({ ref, title, project, message_count }))
  }
  const before = [await rows(), await content(home)]
  for (const more of [
    "update conversation set authority = authority + 50",
    "update message set flags = flags | 2",
    "update message set number = number + 500",
    "delete from message where number > 1",
  ]) {
    const file = changed((db) => {
      bodies((body) => ({
        ...body,
        parts: (body.parts as object[]).map((part) => ({ ...part, text: `planted ${"longer ".repeat(100)}` })),
      }))(db)
      sql(
        "update project set path = '/planted' || id, private = 0",
        "update conversation set title = 'planted', started_at = 1",
        "update message set at = 1",
        more,
      )(db)
    })
    expect(await dex(home, ["import", file])).toMatchObject({ code: 0 })
    expect([await rows(), await content(home)]).toEqual(before)
  }
})

test("an import adds the answers to a conversation that was only in the prompt log, with each prompt once", async () => {
  const id = "e1111111-1111-4111-8111-111111111111"
  const turns = [
    { user: "why does the pelican fail" },
    { assistant: "It has one key." },
    { user: "continue" },
    { assistant: "It needs two." },
    { user: "continue" },
    { assistant: "Both are set now." },
  ]
  const [home, other] = [tempDir(), tempDir()]
  claudeSession(other, { id, start: "2026-03-01T10:00:00Z", turns })
  await syncHome(other)
  await dex(other, ["backup", join(other, "other.db")])
  // The log has lost the first "continue", and has a prompt that never reached the transcript.
  const prompts = [
    ["why does the pelican fail", "10:00:00.700"],
    ["continue", "10:03:59.500"],
    ["never mind", "10:09:00.000"],
  ] as const
  const logged = ([display, time]: readonly [string, string]) =>
    `${JSON.stringify({
      display,
      pastedContents: {},
      timestamp: Date.parse(`2026-03-01T${time}Z`),
      project: "/code/api",
      sessionId: id,
    })}\n`
  mkdirSync(join(home, ".claude"))
  const log = join(home, ".claude", "history.jsonl")
  writeFileSync(log, prompts.map(logged).join(""))
  await syncHome(home)
  const texts = async () => {
    const store = openStore(join(home, ".dex", "history.db"))
    const messages = await store.messages({ source: "claude_code", id })
    store.close()
    return messages.filter(({ superseded }) => !superseded).map(({ parts }) => parts.map(({ text }) => text).join())
  }
  expect(await texts()).toEqual(["why does the pelican fail", "continue", "never mind"])
  const together = [
    "why does the pelican fail",
    "It has one key.",
    "continue",
    "It needs two.",
    "continue",
    "Both are set now.",
    "never mind",
  ]
  for (const more of [[], [], ["continue"]]) {
    for (const prompt of more) appendFileSync(log, logged([prompt, "10:20:00.000"]))
    await syncHome(home)
    expect(await dex(home, ["import", join(other, "other.db")])).toMatchObject({ code: 0 })
    expect(await texts()).toEqual([...together, ...more])
  }
})

test("notes from the user's other machine are imported on request", async () => {
  const [home, other] = [await own(), await own()]
  expect(await dex(other, ["note", "the pelican needs two keys"])).toMatchObject({ code: 0 })
  await dex(other, ["backup", join(other, "other.db")])
  const withoutNotes = await dex(home, ["import", join(other, "other.db")])
  expect(withoutNotes.stdout + withoutNotes.stderr).toContain("1 note was left out")
  expect((await dex(home, ["search", "pelican"])).code).toBe(1)
  const taken = await dex(home, ["import", join(other, "other.db"), "--with-notes"])
  expect(taken.stdout + taken.stderr).not.toContain("left out")
  expect((await dex(home, ["search", "pelican"])).stdout).toContain("pelican")
})

test("secrets that an older dex did not redact are redacted before anybody can read them", async () => {
  const secret = `ghp_${"a1B2c3D4e5F6".repeat(3)}`
  const file = changed((db) => {
    bodies((body) => ({ ...body, parts: [{ type: "text", text: `use ${secret} for it`, origin: "person" }] }))(db)
    db.prepare("update raw set data = ?, sum = null").run(
      packBlock([JSON.stringify({ type: "user", text: secret })]).data,
    )
    sql(`update conversation set title = 'with ${secret}'`, "update unit set redaction_version = 1")(db)
  })
  const home = await own()
  expect(await dex(home, ["import", file])).toMatchObject({ code: 0 })
  expect(Object.keys(await content(home))).toHaveLength(4)
  expect(JSON.stringify(await content(home))).toContain("[REDACTED")
  expect(carve(join(home, ".dex"), [secret])).toEqual([])
})

test("an impossible time in a history stops no command", async () => {
  const home = await own()
  const db = new Database(join(home, ".dex", "history.db"))
  db.exec(
    "delete from meta where key = 'sealed'; update conversation set ended_at = 9223372036854775807, sum = null; update message set at = 9223372036854775807, sum = null",
  )
  db.close()
  await expectEveryCommandWorks(home)
  for (const command of ["digest", "usage", "timeline"])
    expect((await dex(home, [command])).stderr).not.toContain("should not happen")
})
