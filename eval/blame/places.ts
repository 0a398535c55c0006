import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { createPlaceFinder } from "../../src/git/project.ts"
import { identifyFolder, identifyProjects } from "../../src/ingest/identify-projects.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { CACHE_DIR, type EvalHome } from "../home.ts"
import { BENCH_DIR, requirePath } from "../set.ts"
import { bundle } from "./worlds.ts"

/** Makes a place of the repository that no conversation names. Returns the folder in which dex is started. */
const PLACES: Record<string, (folder: string, from: string) => string> = {
  clone: (folder, from) => cloned(from, folder),
  renamed: (folder, from) => {
    const before = cloned(from, `${folder}-before`)
    renameSync(before, folder)
    return folder
  },
  worktree: (folder, from) => {
    const main = cloned(from, `${folder}-main`)
    git("-C", main, "worktree", "add", "--quiet", "--detach", folder)
    return folder
  },
  // A bundle cannot be cloned in part, so this one is made from the repository that the other figures use. Its remote is the one
  // that a clone from the network has.
  shallow: (folder) => {
    cloned(`file://${bundle()}`, folder, "--depth", "1")
    git("-C", folder, "remote", "set-url", "origin", "https://github.com/entireio/cli.git")
    return folder
  },
  two: (folder, from) => {
    const older = cloned(from, `${folder}-older`)
    git("-C", older, "reset", "--quiet", "--hard", "main~100")
    return cloned(from, folder)
  },
}

function git(...args: string[]): void {
  execFileSync("git", args, { stdio: "ignore" })
}

function cloned(from: string, folder: string, ...options: string[]): string {
  git("clone", "--quiet", "--branch", "main", ...options, from, folder)
  return folder
}

/** Starts dex in such a place, syncs, and returns the project that dex then knows. */
export async function identifiedPlace(home: EvalHome, place: string): Promise<string> {
  const make = PLACES[place]
  if (!make) throw new Error(`--place takes ${Object.keys(PLACES).join(", ")}`)
  const folder = join(CACHE_DIR, "places", place)
  if (!existsSync(folder)) {
    for (const one of ["", "-before", "-main", "-older"]) rmSync(folder + one, { recursive: true, force: true })
    mkdirSync(join(CACHE_DIR, "places"), { recursive: true })
    make(folder, requirePath(join(BENCH_DIR, "commits/entireio-cli.bundle")))
  }
  const dir = join(home.dir, ".dex")
  const store = openStore(join(dir, "history.db"))
  const deps = { store, home: { dir, history: join(dir, "history.db"), lock: join(dir, "lock") } }
  try {
    const older = `${folder}-older`
    for (const one of existsSync(older) ? [older, folder] : [folder])
      await identifyFolder(deps, createPlaceFinder()(one).project)
    await identifyProjects(deps)
    const identities = await store.projectIdentities()
    const { project } = createPlaceFinder()(folder)
    const found = identities.find(({ path, folders = [] }) =>
      [path, ...folders.map((one) => one.path)].includes(project),
    )
    const left = identities.filter((one) => one !== found)
    console.error(
      `${place}: ${found?.conversations ?? 0} conversations in ${found?.folders?.length ?? 0} other folders; ${left.reduce((sum, one) => sum + (one.conversations ?? 0), 0)} in ${left.length} folders are not found to be the same repository`,
    )
    return found?.path ?? project
  } finally {
    store.close()
  }
}
