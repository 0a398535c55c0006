import { appendFileSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { type AreaSpec, watchArea } from "../../src/watch/area.ts"
import { tempDir } from "../support/temp.ts"

/** Starts a watch, and returns a function that waits for a path to be reported. */
function watching(spec: Partial<AreaSpec> & { folder: string }) {
  const reported: (string | undefined)[] = []
  let heard = () => {}
  const area = watchArea(
    { depth: Infinity, skips: () => false, ...spec },
    {
      changed: (path) => {
        reported.push(path)
        heard()
      },
      problem: (problem) => {
        throw new Error(problem.message)
      },
    },
  )
  onTestFinished(() => area.close())
  const until = (isThere: () => boolean) =>
    new Promise<void>((resolve) => {
      heard = () => {
        if (isThere()) resolve()
      }
      heard()
    })
  return { area, reported, until, reportOf: (path: string | undefined) => until(() => reported.includes(path)) }
}

test("reports a file that is created, appended to, replaced and removed", async () => {
  const folder = tempDir()
  const { reported, reportOf } = watching({ folder })
  writeFileSync(join(folder, "a"), "1")
  await reportOf("a")
  for (const change of [
    () => appendFileSync(join(folder, "a"), "2"),
    () => {
      writeFileSync(join(folder, "b"), "3")
      renameSync(join(folder, "b"), join(folder, "a"))
    },
    () => rmSync(join(folder, "a")),
  ]) {
    reported.length = 0
    change()
    await reportOf("a")
  }
})

test("reports files in folders that appear later, at any depth, even if they existed before the watch", async () => {
  const folder = tempDir()
  const { reportOf, until, area } = watching({ folder })
  for (let i = 0; i < 50; i++) {
    mkdirSync(join(folder, `n${i}`, "deeper", "deepest"), { recursive: true })
    writeFileSync(join(folder, `n${i}`, "deeper", "deepest", "file"), "1")
  }
  for (let i = 0; i < 50; i++) await reportOf(`n${i}/deeper/deepest/file`)
  mkdirSync(join(folder, "moved-in-from"))
  renameSync(join(folder, "n7"), join(folder, "moved-in-from", "n7"))
  await reportOf("moved-in-from/n7/deeper/deepest/file")
  appendFileSync(join(folder, "n8", "deeper", "deepest", "file"), "2")
  if (process.platform === "linux") await until(() => area.state().folders === 152)
})

test("enters no folder below the depth, and none that is skipped", async () => {
  const folder = tempDir()
  for (const path of ["a/b/c", "skipped/x"]) mkdirSync(join(folder, path), { recursive: true })
  const { reported, reportOf, area } = watching({ folder, depth: 1, skips: (path) => basename(path) === "skipped" })
  if (process.platform === "linux") expect(area.state().folders).toBe(2)
  writeFileSync(join(folder, "a/b/c/too-deep"), "")
  writeFileSync(join(folder, "skipped/no"), "")
  mkdirSync(join(folder, "later/skipped"), { recursive: true })
  writeFileSync(join(folder, "later/skipped/no"), "")
  writeFileSync(join(folder, "a/yes"), "")
  await reportOf("a/yes")
  expect(reported.filter((path) => /too-deep|no$/.test(path ?? ""))).toEqual([])
})

test("reports only matching files", async () => {
  const folder = tempDir()
  const { reported, reportOf } = watching({ folder, depth: 0, files: /^db(-wal)?$/ })
  for (const name of ["db-shm", "log", "other"]) writeFileSync(join(folder, name), "")
  writeFileSync(join(folder, "db-wal"), "")
  await reportOf("db-wal")
  expect(new Set(reported)).toEqual(new Set(["db-wal"]))
})

test("a folder that appears later is seen, however many of its parents are missing", async () => {
  const home = tempDir()
  const { reportOf, area, reported } = watching({ folder: join(home, "one", "two", "three") })
  expect(area.state().how).toBe("waiting")
  mkdirSync(join(home, "one"))
  mkdirSync(join(home, "one", "two", "three"), { recursive: true })
  await reportOf(undefined)
  expect(area.state().how).toBe("watching")
  writeFileSync(join(home, "one", "two", "three", "file"), "")
  await reportOf("file")
  reported.length = 0
})

test("a folder that is removed and recreated is watched again", async () => {
  const home = tempDir()
  const folder = join(home, "watched")
  mkdirSync(join(folder, "below"), { recursive: true })
  const { reportOf, reported, until, area } = watching({ folder })
  rmSync(folder, { recursive: true })
  await until(() => area.state().how === "waiting")
  mkdirSync(join(folder, "below"), { recursive: true })
  await until(() => area.state().how === "watching")
  reported.length = 0
  writeFileSync(join(folder, "below", "file"), "")
  await reportOf("below/file")
  // And one below it, recreated immediately.
  rmSync(join(folder, "below"), { recursive: true })
  mkdirSync(join(folder, "below"))
  writeFileSync(join(folder, "below", "again"), "")
  await reportOf("below/again")
  reported.length = 0
  appendFileSync(join(folder, "below", "again"), "1")
  await reportOf("below/again")
})

test("a folder that becomes a file, and a link that points to itself, stop nothing", async () => {
  const folder = tempDir()
  mkdirSync(join(folder, "thing", "below"), { recursive: true })
  const { reportOf, reported } = watching({ folder })
  writeFileSync(join(folder, "thing", "below", "file"), "")
  rmSync(join(folder, "thing"), { recursive: true })
  writeFileSync(join(folder, "thing"), "a file now")
  symlinkSync("loop", join(folder, "loop"))
  await reportOf("loop")
  reported.length = 0
  appendFileSync(join(folder, "thing"), "!")
  await reportOf("thing")
})

test("a link is followed if it is the folder itself, but not below it", async () => {
  const home = tempDir()
  mkdirSync(join(home, "real"))
  mkdirSync(join(home, "elsewhere"))
  symlinkSync(join(home, "real"), join(home, "link"))
  symlinkSync(join(home, "elsewhere"), join(home, "real", "out"))
  const { reported, reportOf } = watching({ folder: join(home, "link") })
  writeFileSync(join(home, "elsewhere", "no"), "")
  writeFileSync(join(home, "real", "yes"), "")
  await reportOf("yes")
  expect(reported).not.toContain("out/no")
})
