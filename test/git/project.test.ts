import { spawnSync } from "node:child_process"
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { checkoutAt, createProjectFinder } from "../../src/git/project.ts"
import { oddFolders, PLAIN_USER } from "../support/odd-folders.ts"
import { tempDir } from "../support/temp.ts"

const MODULE = new URL("../../src/git/project.ts", import.meta.url).href

/** The module's results for these folders, in a process of a user who may not read everything. */
function ask(folders: string[]): { project: string; checkout: string | null; code: string }[] {
  const script = `
    import { statSync } from "node:fs"
    import { checkoutAt, createProjectFinder } from ${JSON.stringify(MODULE)}
    const codeOf = (path) => { try { statSync(path); return "" } catch (error) { return error.code } }
    const told = JSON.parse(process.argv[1]).map((folder) => ({
      project: createProjectFinder()(folder), checkout: checkoutAt(folder)?.root ?? null, code: codeOf(folder + "/.git"),
    }))
    console.log(JSON.stringify(told))`
  const run = spawnSync(process.execPath, ["--input-type=module", "-e", script, JSON.stringify(folders)], {
    encoding: "utf8",
    ...PLAIN_USER,
  })
  expect(run.stderr).toBe("")
  return JSON.parse(run.stdout)
}

describe.skipIf(process.platform === "win32")("a folder that cannot be read", () => {
  test("is the project as written, whatever the reason", () => {
    const folders = oddFolders()
    expect(Object.keys(folders).length).toBeGreaterThanOrEqual(4)
    const expected = Object.entries(folders).map(([code, folder]) => ({ project: folder, checkout: null, code }))
    expect(ask(Object.values(folders))).toEqual(expected)
  })

  test("belongs to its project by its name if it is a worktree, and not to the folder above it", () => {
    const { EACCES, ELOOP } = oddFolders()
    const worktree = join(EACCES!, ".claude", "worktrees", "fix-1", "src")
    const above = join(EACCES!, "..", "..")
    mkdirSync(join(above, ".git"))
    expect(ask([worktree, ELOOP!, above])).toMatchObject([
      { project: EACCES },
      { project: ELOOP },
      { project: above, checkout: above },
    ])
  })
})

test("a folder that was replaced by a file is gone, and belongs to the project above it", () => {
  const dir = tempDir()
  mkdirSync(join(dir, ".git"))
  writeFileSync(join(dir, "was-a-folder"), "")
  expect(createProjectFinder()(join(dir, "was-a-folder", "below"))).toBe(dir)
})

test("worktrees and submodules: the project is the repository, the checkout is the folder", () => {
  const dir = tempDir()
  mkdirSync(join(dir, "main", ".git", "worktrees", "w"), { recursive: true })
  writeFileSync(join(dir, "main", ".git", "worktrees", "w", "HEAD"), "ref: refs/heads/topic\n")
  mkdirSync(join(dir, "w", "src"), { recursive: true })
  writeFileSync(join(dir, "w", ".git"), `gitdir: ${join(dir, "main", ".git", "worktrees", "w")}\n`)
  expect(createProjectFinder()(join(dir, "w", "src"))).toBe(join(dir, "main"))
  expect(checkoutAt(join(dir, "w", "src"))).toEqual({ root: join(dir, "w"), branch: "topic" })
  mkdirSync(join(dir, "main", "sub"))
  writeFileSync(join(dir, "main", "sub", ".git"), "gitdir: ../.git/modules/sub\n")
  expect(createProjectFinder()(join(dir, "main", "sub"))).toBe(join(dir, "main", "sub"))
  chmodSync(dir, 0o755)
  symlinkSync(join(dir, "main"), join(dir, "link"))
  expect(checkoutAt(join(dir, "link"))?.root).toBe(join(dir, "link"))
})
