import { join, resolve } from "node:path"
import { agents } from "../../agents/registry.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { normaliseRemote, repositoryIdentity } from "../../git/identity.ts"
import { redactRecord } from "../../redact/redact.ts"
import { REDACTION_VERSION } from "../../redact/version.ts"
import { copyForeign, historyIdIn, openForeignHistory, unpackAll } from "../../store/history/foreign-file.ts"
import { projectsIn } from "../../store/history/import-history.ts"
import type { HistoryWriter, ProjectIdentity } from "../../store/history/store.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { openScratch } from "../../store/sqlite/scratch.ts"
import type { Dex } from "../context.ts"
import type { ImportInput } from "./backup.ts"

const NOTES_SOURCE = "dex_note"

export async function run(dex: Dex, input: ImportInput) {
  const started = Date.now()
  const file = resolve(dex.cwd, input.file)
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex process is syncing right now. Try again when it is done.")
  const scratch = openScratch(dex.home.dir)
  try {
    // SQLite opens only a copy of the other history. dex checks and migrates the copy.
    const copy = join(scratch.folder, "history.db")
    copyForeign(file, copy)
    const { historyId, projects: theirs } = inspectHistory(copy, file)
    const store = await dex.storeToWrite()
    if (historyId === (await store.id()))
      throw new DexError("same_history", `${input.file} is a copy of this history: there is nothing to merge.`)
    const projects = await movedProjects(theirs, await ownProjects(dex, store))
    for (const { from, to } of projects) await store.addProjectPath(from, to)
    const made_private = await projectsToMakePrivate(store, theirs, projects)
    const { notes, ...report } = await store.importFrom(copy, {
      sources: new Set([...agents, ...(await dex.outside()).agents].map(({ source }) => source)),
      notes: NOTES_SOURCE,
      withNotes: input.with_notes === true,
      privateProjects: made_private,
      redact: (record) => redactRecord(record).record,
      redactionVersion: REDACTION_VERSION,
      onProgress: (done, total) => dex.onProgress?.({ phase: "reading", done, total, bytes: done, bytesTotal: total }),
    })
    const { index } = await dex.syncDeps()
    await index.follow(store)
    return { file, ...report, notes_left_out: notes, projects, made_private, duration_ms: Date.now() - started }
  } finally {
    scratch.close()
    lock.release()
  }
}

/**
 * Returns the id and the projects of the other history. Throws a DexError unless dex wrote it and this machine can decompress it.
 */
function inspectHistory(copy: string, name: string): { historyId: string; projects: ProjectIdentity[] } {
  const other = openForeignHistory(copy, name)
  try {
    unpackAll(other, copy, name, () => {}) // the contents of a broken block are left out and counted
    return { historyId: historyIdIn(other, name), projects: projectsIn(other) }
  } finally {
    other.close()
  }
}

/** The projects whose folder exists on this machine, including the current one, with their git identity. */
async function ownProjects(dex: Dex, store: HistoryWriter): Promise<ProjectIdentity[]> {
  const knownProjects = await store.projectIdentities()
  const current = knownProjects.some(({ path }) => path === dex.project) ? [] : [{ path: dex.project, private: false }]
  const projects: ProjectIdentity[] = []
  for (const project of [...knownProjects, ...current]) {
    if (!isFolder(project.path)) continue
    const { remote, rootCommit } = await repositoryIdentity(project.path)
    projects.push({ path: project.path, private: project.private, git_remote: remote, root_commit: rootCommit })
  }
  return projects
}

/** The other history's projects that exist here in another folder. A folder that exists on both machines needs no mapping. */
async function movedProjects(
  theirs: ProjectIdentity[],
  ours: ProjectIdentity[],
): Promise<{ from: string; to: string }[]> {
  return theirs.flatMap(({ path, git_remote, root_commit }) => {
    if (isFolder(path)) return []
    const remote = git_remote === undefined ? undefined : normaliseRemote(git_remote)
    const byRemote = ours.filter((project) => remote !== undefined && project.git_remote === remote)
    const byCommit = ours.filter((project) => root_commit !== undefined && project.root_commit === root_commit)
    const byBoth = byRemote.filter((project) => byCommit.includes(project))
    const match = [byBoth, byRemote, byCommit].find((candidates) => candidates.length === 1)?.[0]
    return match && match.path !== path ? [{ from: path, to: match.path }] : []
  })
}

/** The projects to make private here: a project that is private on either machine stays private after an import. */
async function projectsToMakePrivate(
  store: HistoryWriter,
  theirs: ProjectIdentity[],
  moved: { from: string; to: string }[],
): Promise<string[]> {
  const known = new Map((await store.projectIdentities()).map((project) => [project.path, project]))
  const privatePaths: string[] = []
  for (const { path } of theirs.filter((project) => project.private)) {
    const localPath = moved.find(({ from }) => from === path)?.to ?? path
    if (known.get(localPath)?.private === true || privatePaths.includes(localPath)) continue
    privatePaths.push(localPath)
  }
  return privatePaths
}
