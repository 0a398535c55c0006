import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { DexError } from "../../src/core/error.ts"
import { HISTORY_MIGRATIONS } from "../../src/store/history/migrations.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { isSafeSqlite, openDatabase } from "../../src/store/sqlite/database.ts"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"
import { describeReading, describeWriting } from "./suite.ts"

const empty = async () => {
  const store = openStore(join(tempDir(), "history.db"))
  onTestFinished(() => store.close())
  return store
}
describeReading("SQLite", empty)
describeWriting("SQLite", empty)

describe("the SQLite file", () => {
  test("is readable by its owner only, sidecars included", () => {
    const dir = join(tempDir(), "home")
    const store = openStore(join(dir, "history.db"))
    onTestFinished(() => store.close())
    expect(statSync(dir).mode & 0o777).toBe(0o700)
    for (const file of readdirSync(dir)) expect([file, statSync(join(dir, file)).mode & 0o777]).toEqual([file, 0o600])
    expect(readdirSync(dir)).toContain("history.db-wal")
  })

  test("contains no byte of a forgotten conversation, in any file", async () => {
    const dir = tempDir()
    const store = openStore(join(dir, "history.db"))
    onTestFinished(() => store.close())
    const secret = "Zanzibarquux"
    const messages = Array.from({ length: 300 }, (_, i) =>
      textMessage(`k${i}`, `${secret} number ${i} ${Math.random()}`, {
        effects: [
          { type: "command", command: `echo ${secret}` },
          { type: "file", path: `/code/api/${secret}.ts`, action: "read" },
        ],
      }),
    )
    await store.writeUnit(
      unit("a", [conversation("a", messages, { title: { text: secret, from: "person" } })], {
        raw: messages.map((message) => JSON.stringify(message)),
      }),
    )
    await store.writeUnit(unit("b", [conversation("b", [textMessage("b1", "something else")])]))
    expect(readFileSync(join(dir, "history.db-wal")).includes(secret)).toBe(true)
    await store.forget([{ source: "claude_code", id: "a" }])
    for (const file of readdirSync(dir))
      expect([file, readFileSync(join(dir, file)).includes(secret)]).toEqual([file, false])
  })

  test("refuses a file that a newer dex wrote, and says what to do", () => {
    for (const version of [HISTORY_MIGRATIONS.length + 1, 999]) {
      const path = join(tempDir(), "history.db")
      const db = openDatabase(path, HISTORY_MIGRATIONS)
      db.exec("create table newer (id integer primary key)")
      db.pragma(`user_version = ${version}`)
      db.close()
      expect(() => openStore(path)).toThrow(/newer dex .* Update dex/)
    }
  })

  test("says that a damaged file is damaged", () => {
    const path = join(tempDir(), "history.db")
    writeFileSync(
      path,
      "this is not a database, it is a sentence that is long enough to be read as a header ".repeat(20),
    )
    expect(() => openStore(path)).toThrow(/damaged .*dex doctor/)
    expect(existsSync(path)).toBe(true)
  })

  test("reports that its folder cannot be created", () => {
    const file = join(tempDir(), "file")
    writeFileSync(file, "")
    expect(() => openStore(join(file, "home", "history.db"))).toThrow(DexError)
  })

  test.each([
    ["3.7.0", false],
    ["3.44.5", false],
    ["3.44.6", true],
    ["3.50.6", false],
    ["3.50.7", true],
    ["3.51.2", false],
    ["3.51.3", true],
    ["3.53.4", true],
    ["4.0.0", true],
  ])("SQLite %s is safe for several processes: %s", (version, safe) => {
    expect(isSafeSqlite(version)).toBe(safe)
  })

  test("only one process can have the sync lock, and it is free again after its release", () => {
    const path = join(tempDir(), "home", "sync.lock")
    const lock = tryLock(path)
    expect(lock).toBeDefined()
    expect(tryLock(path)).toBeUndefined()
    lock!.release()
    const again = tryLock(path)
    expect(again).toBeDefined()
    again!.release()
  })
})
