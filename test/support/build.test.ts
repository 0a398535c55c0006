import { mkdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { builtFrom, FOLDERS, isInKey, KEY_FILE, keyOfSources } from "../../scripts/build-key.mjs"
import { tempDir } from "./temp.ts"

function sources(): { root: string; write: (path: string, text: string) => void } {
  const root = tempDir()
  for (const folder of [...FOLDERS, "src/core", "docs", "dist"]) mkdirSync(join(root, folder), { recursive: true })
  const write = (path: string, text: string) => writeFileSync(join(root, path), text)
  for (const file of ["package.json", "package-lock.json", "tsconfig.json", "src/core/a.ts", "docs/a.md"])
    write(file, "1")
  return { root, write }
}

test("the key of a build changes with every file that it reads, and with no other", () => {
  const { root, write } = sources()
  const keys = [keyOfSources(root)]
  write("docs/a.md", "2")
  write("dist/a.js", "2")
  expect(keyOfSources(root)).toBe(keys[0])
  const inFolders = FOLDERS.map((folder) => `${folder}/new.ts`)
  for (const file of ["src/core/a.ts", "src/core/b.ts", ...inFolders, "package.json", "package-lock.json"]) {
    write(file, "2")
    keys.push(keyOfSources(root))
  }
  renameSync(join(root, "src/core/b.ts"), join(root, "src/core/c.ts"))
  keys.push(keyOfSources(root))
  expect(new Set(keys).size).toBe(keys.length)
})

test("a program is built again unless it was built completely from the same sources", () => {
  const { root, write } = sources()
  expect(builtFrom(root)).toBeUndefined()
  write(KEY_FILE, keyOfSources(root))
  expect(builtFrom(root)).toBe(keyOfSources(root))
})

test("every bundled file belongs to the sources or to a package in the lockfile", () => {
  const read = ["src/cli/dex.ts", "../modules/node_modules/hono/dist/hono.js", "dex:shared", "docs/x.md", "../x.ts"]
  expect(read.filter((file) => !isInKey(file))).toEqual(["docs/x.md", "../x.ts"])
})
