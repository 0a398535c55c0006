import { join, resolve } from "node:path"
import { setFlagsFromString } from "node:v8"
import { agents } from "../../agents/registry.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { readStart } from "../../core/read-file.ts"
import { identifyProjects } from "../../ingest/identify-projects.ts"
import { type ExportKind, exportKindOf, importExport } from "../../ingest/import-export.ts"
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
  const file = resolve(dex.cwd, input.file)
  const kind = exportKindAt(file)
  return kind === undefined ? mergeHistoryFile(dex, file, input) : readExport(dex, file, kind)
}

const START_BYTES = 4 << 10

function exportKindAt(file: string): ExportKind | undefined {
  try {
    return exportKindOf(readStart(file, START_BYTES))
  } catch {
    return undefined // Reading it as a history names the problem.
  }
}

async function readExport(dex: Dex, file: string, kind: ExportKind) {
  const started = Date.now()
  const connectors = await Promise.all(
    agents.filter(({ isExported }) => isExported).flatMap(({ connector }) => connector?.() ?? []),
  )
  // Without this, garbage grows to hundreds of megabytes before it is collected.
  setFlagsFromString("--semi-space-growth-factor=1")
  const lock = takeLock(dex)
  try {
    const { store, index, home } = await dex.syncDeps()
    const { services, conversations, messages, forgotten, left_out } = await importExport(
      {
        ...{ store, index, home, connectors },
        onProgress: (read, total) => {
          const [done, megabytes] = [read, total].map((bytes) => Math.round(bytes / 1e6)) as [number, number]
          dex.onProgress?.({ phase: "importing", done, total: megabytes, bytes: read, bytesTotal: total })
        },
      },
      file,
      kind,
    )
    return {
      ...{ file, services, conversations, messages, forgotten },
      notes_left_out: 0,
      left_out: [...left_out].map(([what, count]) => ({ what, count })),
      projects: [],
      made_private: [],
      duration_ms: Date.now() - started,
    }
  } finally {
    lock.release()
  }
}

function takeLock(dex: Dex) {
  const lock = tryLock(dex.home.lock)
  if (!lock) throw new DexError("busy", "Another dex process is syncing right now. Try again when it is done.")
  return lock
}

async function mergeHistoryFile(dex: Dex, file: string, input: ImportInput) {
  const started = Date.now()
  const lock = takeLock(dex)
  const scratch = openScratch(dex.home.dir)
  try {
    // SQLite opens only a copy of the other history. dex checks and migrates the copy.
    const copy = join(scratch.folder, "history.db")
    copyForeign(file, copy)
    const { historyId, projects: importedProjects } = inspectHistory(copy, file)
    const store = await dex.storeToWrite()
    if (historyId === (await store.id()))
      throw new DexError("same_history", `${input.file} is a copy of this history: there is nothing to merge.`)
    const made_private = await projectsToMakePrivate(dex, store, importedProjects)
    const ownPaths = new Set((await store.projects()).map(({ path }) => path))
    const { notes, ...report } = await store.importFrom(copy, {
      sources: new Set([...agents, ...(await dex.outsideAgents()).agents].map(({ source }) => source)),
      notes: NOTES_SOURCE,
      withNotes: input.with_notes === true,
      privateProjects: made_private,
      redact: (record) => redactRecord(record).record,
      redactionVersion: REDACTION_VERSION,
      onProgress: (done, total) => dex.onProgress?.({ phase: "reading", done, total, bytes: done, bytesTotal: total }),
    })
    const projects = await joinImported(
      dex,
      store,
      importedProjects.filter(({ path }) => !ownPaths.has(path) && !isFolder(path)),
    )
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
  const otherHistory = openForeignHistory(copy, name)
  try {
    unpackAll(otherHistory, copy, name, () => {}) // The contents of a broken block are left out and counted.
    return { historyId: historyIdIn(otherHistory, name), projects: projectsIn(otherHistory) }
  } finally {
    otherHistory.close()
  }
}

/**
 * Joins imported projects with those that are the same repository here. They must be neither folders nor projects of this machine:
 * a file from elsewhere does not decide what those are.
 */
async function joinImported(
  { home }: Dex,
  store: HistoryWriter,
  imported: ProjectIdentity[],
): Promise<{ from: string; to: string }[]> {
  for (const { path, git_remote, root_commit } of imported)
    await store.saveProjectIdentity(path, { git_remote, root_commit })
  const joined = await identifyProjects({ store, home })
  const paths = new Set(imported.map(({ path }) => path))
  return joined.filter(({ folder }) => paths.has(folder)).map(({ folder, project }) => ({ from: folder, to: project }))
}

/** The projects to make private here: a project that is private on either machine stays private after an import. */
async function projectsToMakePrivate(dex: Dex, store: HistoryWriter, imported: ProjectIdentity[]): Promise<string[]> {
  const own = await store.projects()
  const isPrivateHere = (path: string) => own.some((project) => project.path === path && project.private)
  const wanted = imported.filter((project) => project.private).map(({ path }) => dex.projectOf(path))
  return [...new Set(wanted)].filter((path) => !isPrivateHere(path))
}
