import { copyFileSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { carve } from "../support/carve.ts"
import { SESSION } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"
import { ends, longSession, OTHER } from "./long-session.ts"

test("no trace of a forgotten conversation stays in a history that a restore saved, nor in the leftovers of a stopped command", async () => {
  const home = tempDir()
  const folder = join(home, ".dex")
  longSession(home, SESSION, "lost")
  longSession(home, OTHER, "kept")
  await syncHome(home)
  const backup = join(home, "backup.db")
  for (const args of [["backup", backup], ["restore", backup, "--replace"], ["restore", backup, "--replace"], ["sync"]])
    expect(await dex(home, args)).toMatchObject({ code: 0 })
  // Files as killed processes leave them.
  for (const name of ["history.db.restored", "history.db.repairing", "suggest.db.restored"])
    copyFileSync(backup, join(folder, name))
  const work = join(folder, "tmp", "work-killed")
  mkdirSync(work, { recursive: true })
  copyFileSync(backup, join(work, "history.db"))
  writeFileSync(join(work, "lock"), "")
  const kept = readdirSync(folder).filter((name) => name.includes("-until-"))
  expect(kept).toHaveLength(2)
  const before = carve(folder, ends("lost"))
  for (const name of [...kept, "history.db.restored", "tmp/work-killed/history.db"])
    expect(before).toContain(`${name}: frame`)
  const { code, stdout, stderr } = await dex(home, ["forget", SESSION, "--yes"])
  expect(code, stderr).toBe(0)
  expect(stdout + stderr).not.toContain("may still contain the deleted text")
  expect(carve(folder, ends("lost"))).toEqual([])
  for (const name of kept) {
    expect(carve(folder, ends("kept"))).toContain(`${name}: frame`)
    const store = openStore(join(folder, name))
    expect((await store.list({ limit: 10, offset: 0 })).rows.map(({ ref }) => ref.id)).toEqual([OTHER])
    store.close()
  }
})

test("names a database in dex's folder that cannot be changed, and says how to remove it", async () => {
  const home = tempDir()
  longSession(home, SESSION, "lost")
  await syncHome(home)
  writeFileSync(join(home, ".dex", "history-until-2026-11-03.db"), "damaged ".repeat(1000))
  writeFileSync(join(home, ".dex", "mine.db"), "a copy")
  const { code, stdout, stderr } = await dex(home, ["forget", SESSION, "--yes"])
  expect(code).toBe(0)
  const printed = (stdout + stderr).replaceAll(/\s+/g, " ")
  for (const name of ["history-until-2026-11-03.db", "mine.db"]) {
    expect(printed).toMatch(new RegExp(`~/.dex/${name} may still contain the deleted text.*: rm ~/.dex/${name}`))
    expect(existsSync(join(home, ".dex", name))).toBe(true)
  }
})
