import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { tryLock } from "../../src/store/sqlite/lock.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

test("uninstall --data asks first, and then deletes dex's folder", async () => {
  const home = await synced()
  await dex(home, ["note", "Deploys need the VPN"])
  const asked = await dex(home, ["uninstall", "--data"])
  expect([asked.code, existsSync(join(home, ".dex", "history.db"))]).toEqual([2, true])
  expect(asked.stderr).toContain("exist only there")
  const { code, stderr } = await dex(home, ["uninstall", "--data", "--yes"])
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^Deleted \d.* in ~\/\.dex\.\n$/)])
  expect(existsSync(join(home, ".dex"))).toBe(false)
  expect(existsSync(join(home, ".claude"))).toBe(true)
})

test("with agents that are connected, everything that dex wrote is deleted", async () => {
  const home = await synced()
  await dex(home, ["install", "claude_code", "--yes"])
  expect(readdirSync(join(home, ".dex"))).toEqual(expect.arrayContaining(["bin", "integrations.json"]))
  await dex(home, ["project", "--json"])
  // What `dex watch` and `dex view` leave.
  mkdirSync(join(home, ".dex", "view"))
  for (const name of ["watch.json", "projects.json"]) writeFileSync(join(home, ".dex", name), "{}")
  const { code, stderr } = await dex(home, ["uninstall", "--data", "--yes"])
  expect([code, stderr]).toEqual([0, expect.stringMatching(/Deleted \d.* in ~\/\.dex\.\n$/)])
  expect(existsSync(join(home, ".dex"))).toBe(false)
})

test("what dex did not write stays, and is named", async () => {
  const home = await synced()
  mkdirSync(join(home, ".dex", "recipes"))
  writeFileSync(join(home, ".dex", "thesis.txt"), "mine")
  const { code, stderr } = await dex(home, ["uninstall", "--data", "--yes"])
  expect([code, stderr]).toEqual([0, expect.stringContaining("recipes and thesis.txt")])
  expect(readdirSync(join(home, ".dex")).sort()).toEqual(["recipes", "thesis.txt"])
})

test("uninstall without --data leaves the history, and agents do not go with --data", async () => {
  const home = await synced()
  await dex(home, ["uninstall", "--yes"])
  expect((await dex(home, ["uninstall", "codex", "--data", "--yes"])).code).toBe(2)
  expect(existsSync(join(home, ".dex", "history.db"))).toBe(true)
})

test("deletes nothing in a folder that contains the home", async () => {
  const home = await synced()
  mkdirSync(join(home, "notes"))
  const { code, stderr } = await dex(home, ["uninstall", "--data", "--yes"], { DEX_HOME: home })
  expect([code, stderr]).toEqual([2, expect.stringContaining("contains your home folder")])
  expect(existsSync(join(home, "notes"))).toBe(true)
})

test("deletes nothing while another process reads, or if there is nothing", async () => {
  const home = await synced()
  const lock = tryLock(join(home, ".dex", "sync.lock"))
  const { code, stderr } = await dex(home, ["uninstall", "--data", "--yes"])
  lock?.release()
  expect([code, stderr]).toEqual([2, expect.stringContaining("Another dex process is reading")])
  expect(existsSync(join(home, ".dex", "history.db"))).toBe(true)
  expect((await dex(tempDir(), ["uninstall", "--data", "--yes"])).code).toBe(2)
})
