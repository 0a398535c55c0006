import { chmodSync, copyFileSync, existsSync } from "node:fs"
import { join, resolve } from "node:path"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../files/look-at.ts"
import { normalRemote, repositoryIdentity } from "../../git/identity.ts"
import { verifyBackup } from "../../store/history/backup.ts"
import { openStore } from "../../store/history/sqlite-history.ts"
import type { HistoryWriter, ProjectIdentity } from "../../store/history/store.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { openScratch } from "../../store/sqlite/scratch.ts"
import type { Dex } from "../context.ts"

export async function run(dex: Dex, input: { file: string }) {
  const started = Date.now()
  const file = resolve(dex.cwd, input.file)
  const store = await dex.storeToWrite()
  if (verifyBackup(file).historyId === (await store.id()))
    throw new DexError("same_history", `${input.file} is a copy of this history: there is nothing to merge.`)
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex is syncing right now. Try again when it is done.")
  const scratch = openScratch(dex.home.dir)
  try {
    const copy = copyOf(file, scratch.folder)
    const other = openStore(copy)
    const theirs = await other.projectIdentities().finally(() => other.close())
    const projects = await samePlaces(theirs, await ownProjects(dex, store))
    for (const { from, to } of projects) await store.addProjectPath(from, to)
    const report = await store.importFrom(copy, (done, total) =>
      dex.onProgress?.({ phase: "reading", done, total, bytes: done, bytesTotal: total }),
    )
    const { conversations, messages, forgotten } = report
    const made_private = await keepPrivate(store, theirs, projects)
    const { index } = await dex.syncDeps()
    await index.follow(store)
    return { file, conversations, messages, forgotten, projects, made_private, duration_ms: Date.now() - started }
  } finally {
    scratch.close()
    lock.release()
  }
}

/** The other history is never touched: an older one is brought up to date in a copy. */
function copyOf(file: string, folder: string): string {
  const copy = join(folder, "history.db")
  for (const suffix of ["", "-wal"]) {
    if (!existsSync(file + suffix)) continue
    copyFileSync(file + suffix, copy + suffix)
    chmodSync(copy + suffix, 0o600)
  }
  return copy
}

/** The projects of this machine, the current one included, as they are known anywhere. */
async function ownProjects(dex: Dex, store: HistoryWriter): Promise<ProjectIdentity[]> {
  const known = await store.projectIdentities()
  const here = known.some(({ path }) => path === dex.project) ? [] : [{ path: dex.project, private: false }]
  const projects: ProjectIdentity[] = []
  for (const project of [...known, ...here]) {
    if (!isFolder(project.path)) continue
    const { remote, rootCommit } = await repositoryIdentity(project.path)
    projects.push({ path: project.path, private: project.private, git_remote: remote, root_commit: rootCommit })
  }
  return projects
}

/** A project there that is one project here, in another folder. What is the same folder on both needs no word. */
async function samePlaces(theirs: ProjectIdentity[], ours: ProjectIdentity[]): Promise<{ from: string; to: string }[]> {
  return theirs.flatMap(({ path, git_remote, root_commit }) => {
    if (isFolder(path)) return []
    const remote = git_remote === undefined ? undefined : normalRemote(git_remote)
    const byRemote = ours.filter((own) => remote !== undefined && own.git_remote === remote)
    const byCommit = ours.filter((own) => root_commit !== undefined && own.root_commit === root_commit)
    const both = byRemote.filter((own) => byCommit.includes(own))
    const found = [both, byRemote, byCommit].find((candidates) => candidates.length === 1)?.[0]
    return found && found.path !== path ? [{ from: path, to: found.path }] : []
  })
}

/** What is private on either machine is private: an import must not open it. */
async function keepPrivate(
  store: HistoryWriter,
  theirs: ProjectIdentity[],
  places: { from: string; to: string }[],
): Promise<string[]> {
  const known = new Map((await store.projectIdentities()).map((project) => [project.path, project]))
  const made: string[] = []
  for (const { path } of theirs.filter((project) => project.private)) {
    const here = places.find(({ from }) => from === path)?.to ?? path
    if (known.get(here)?.private !== false) continue
    await store.setPrivate(here, true)
    made.push(here)
  }
  return made
}
