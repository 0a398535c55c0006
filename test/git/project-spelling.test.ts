import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { createProjectFinder, diskSpelling } from "../../src/git/project.ts"
import { tempDir } from "../support/temp.ts"

const onDisk = (real: string) => Object.assign(() => real, {}) as never
const gone = Object.assign(() => {
  throw new Error("ENOENT")
}, {}) as never

test.each([
  ["darwin", "/users/me/app", "/Users/me/App", "/Users/me/App"],
  ["darwin", "/Users/me/Cafe\u0301", "/Users/me/Caf\u00e9", "/Users/me/Caf\u00e9"],
  ["darwin", "/Users/me/link", "/Volumes/disk/app", "/Users/me/link"],
  ["win32", "c:/code/APP", "C:\\code\\app", "C:\\code\\app"],
  ["win32", "C:\\PROGRA~1\\x", "C:\\Program Files\\x", "C:\\Program Files\\x"],
  ["linux", "/home/me/app", "/home/me/App", "/home/me/app"],
] as const)("on %s, %s that the disk calls %s is the project %s", (platform, typed, real, expected) => {
  expect(diskSpelling(typed, platform, onDisk(real))).toBe(expected)
})

test("a folder that is gone is identified as it was written", () => {
  expect(diskSpelling("/users/me/gone", "darwin", gone)).toBe("/users/me/gone")
})

test("a project is found the same way on every system", () => {
  const root = tempDir()
  mkdirSync(join(root, ".git"))
  mkdirSync(join(root, "src"))
  for (const platform of ["linux", "darwin", "win32"] as const)
    expect(createProjectFinder(platform)(join(root, "src"))).toBe(root)
})
