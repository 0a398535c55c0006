import { readdirSync, rmSync } from "node:fs"
import { basename, join, resolve, sep } from "node:path"
import { chatFolderOf } from "../../agents/dex-chat/connector.ts"
import { noteFileOf } from "../../agents/dex-note/connector.ts"
import { notesFolder } from "../../agents/registry.ts"
import type { Home } from "../../config/home.ts"
import { hubState } from "../../config/hub.ts"
import { DexError, isDexError, messageOf } from "../../core/error.ts"
import { joinNames } from "../../core/format.ts"
import { isFolder } from "../../core/look-at.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { createProjectFinder } from "../../git/project.ts"
import { followSpending } from "../../ingest/follow-spending.ts"
import { publishPlaces } from "../../ingest/identify-projects.ts"
import { nativeKey } from "../../ingest/unit-names.ts"
import { cleanUpRestore, isSameFile, replacedHistories } from "../../store/history/kept-histories.ts"
import { removeDamagedDatabases, repairFiles } from "../../store/history/rot/damaged-files.ts"
import { openStore } from "../../store/history/sqlite-history.ts"
import type { ConversationRow, HistoryReader, HistoryWriter, OwnerOf } from "../../store/history/store.ts"
import { removeDatabase } from "../../store/sqlite/database.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { removeOtherFormats } from "../../store/sqlite/older-files.ts"
import { forgetTraces } from "../../trace/forget.ts"
import type { Dex } from "../context.ts"
import { conversationOf } from "../fields.ts"
import { learnEvenIfBusy, updateDerivedData } from "../learned.ts"
import { isCurrentProject, resolveRef } from "../resolve.ts"
import { finishForgetting, markForgetting } from "./finish-forgetting.ts"
import type { ForgetInput, PrivateInput } from "./forget.ts"

/** How long to wait for other programs that read the databases. Unless such a program hangs, it needs only milliseconds. */
const READER_TIMEOUT_MS = 10_000

export async function run(dex: Dex, input: ForgetInput) {
  if (input.ids.length === 0)
    throw new DexError("no_ref", "What should be deleted? Give a ref, a row number or a project's folder: dex forget 3")
  const store = await dex.storeToWrite()
  const requested: Ref[] = []
  for (const id of input.ids) requested.push(...(await refsOf(dex, id)))
  const family = await store.family(requested)
  const refs = input.copies ? family : await store.withSubagents(requested)
  const forgotten = refs.map(formatRef)
  const relatives = await listedConversations(
    dex,
    family.filter((ref) => !forgotten.includes(formatRef(ref))),
  )
  const copies = relatives.filter(({ kind }) => kind !== "subagent")
  const counts = {
    forgotten,
    count: refs.length,
    kept_copies: copies.length > 0 ? copies.map(({ id }) => id) : undefined,
  }
  const conversations = input.yes ? copies : [...(await listedConversations(dex, refs)), ...copies]
  if (!input.yes) return { ...counts, conversations, asked: true }
  const projects = await projectsOf(store, refs)
  markForgetting(dex.home)
  // Copies such as stored answers are deleted before the history, so that a command that was stopped halfway can be repeated with
  // the same refs. They are deleted again below, because a hook may have stored new ones meanwhile.
  await dex.clearCopies(refs, projects)
  const { connectors } = await dex.syncDeps()
  const connectorOf = new Map(connectors.map((connector) => [connector.source, connector]))
  const ownerOf: OwnerOf = (source, key) => connectorOf.get(source)?.conversationOf?.(nativeKey(key))
  await store.forget(refs, ownerOf)
  removeOwnFiles(dex, refs)
  // Damaged histories that were kept by a repair also contain the text, and so do derived files of other dex versions.
  removeDamagedDatabases(dex.home.history)
  for (const file of [dex.home.index, dex.home.knowledge, dex.home.spending]) removeOtherFormats(file)
  const undeleted = await forgetInOldHistories(dex.home, refs, { copies: input.copies === true, ownerOf })
  await dex.clearCopies(refs, projects)
  const index = await dex.indexToWrite()
  if (index) {
    await index.follow(store)
    await index.purge(store)
  }
  if (dex.hasKnowledge()) await learnEvenIfBusy(dex)
  await followSpending(store, await dex.spending())
  forgetTraces(dex.home.traces, refs) // This comes last, because a search that was running may have recorded a trace.
  markForgetting(dex.home) // This is done again, because a sync may have removed the marker meanwhile.
  const pinned = await finishForgetting(dex.home, READER_TIMEOUT_MS, (names) =>
    dex.onWait?.(
      `Waiting at most ${READER_TIMEOUT_MS / 1000} s for another program that reads the old pages of ${joinNames(names)}. You can stop waiting; the conversations stay deleted.`,
    ),
  )
  return {
    ...counts,
    conversations: conversations.length > 0 ? conversations : undefined,
    pinned: pinned.length > 0 ? pinned : undefined,
    still_there: undeleted.length > 0 ? undeleted : undefined,
  }
}

async function projectsOf(store: HistoryReader, refs: Ref[]): Promise<string[]> {
  const projects = new Set<string>()
  for (const ref of refs) {
    const project = (await store.conversation(ref))?.project
    if (project !== undefined) projects.add(project)
  }
  return [...projects]
}

/**
 * Describes the conversations as `dex list` does. Conversations with a damaged row are left out. The titles of a private
 * project's conversations are shown only inside the project.
 */
async function listedConversations(dex: Dex, refs: Ref[]) {
  const store = await dex.store()
  const rows = await Promise.all(refs.map((ref) => store.conversation(ref)))
  const readableRows = rows.filter((row) => row !== undefined)
  return readableRows.map((row) => ({
    ...conversationOf(row),
    ...(row.private && !isCurrentProject(dex, row.project) && { title: "(private)" }),
  }))
}

/** Removes the files of dex's own chats and notes. dex never removes other programs' files. */
function removeOwnFiles(dex: Dex, refs: Ref[]): void {
  for (const { source, id } of refs) {
    if (source === "dex_chat") removeBelow(join(dex.home.dir, "chat-sessions"), chatFolderOf(id))
    if (source === "dex_note") removeBelow(notesFolder(dex.home.dir), noteFileOf(id))
  }
}

function removeBelow(root: string, name: string): void {
  if (basename(name) === name && !/^\.*$/.test(name)) rmSync(join(root, name), { recursive: true, force: true })
}

/**
 * One conversation, or all conversations of a project if the text is the project's folder. Of another folder of a project, only the
 * conversations that began there.
 */
async function refsOf(dex: Dex, text: string): Promise<Ref[]> {
  const store = await dex.store()
  const refs: Ref[] = []
  let isProject = false
  for (const { path: project } of await store.projects()) {
    const folder = dex.foldersOf(project).find((path) => namesProject(dex, path, text))
    if (folder === undefined) continue
    isProject = true
    const { rows } = await store.list({ limit: 1_000_000, offset: 0, in_project: project, inside: project })
    refs.push(
      ...rows.filter((row) => folder === project || beganIn(dex, row, project) === folder).map((row) => row.ref),
    )
  }
  return isProject ? refs : [(await resolveRef(dex, text)).row.ref]
}

/** The folder of the project in which a conversation began: the nearest one above its first working directory. */
function beganIn(dex: Dex, { cwds }: ConversationRow, project: string): string | undefined {
  const [start = ""] = cwds
  return dex
    .foldersOf(project)
    .filter((folder) => start === folder || start.startsWith(folder.endsWith(sep) ? folder : folder + sep))
    .sort((a, b) => b.length - a.length)[0]
}

/** True if the typed text names the project's folder, absolute or relative to the current folder, in any spelling. */
function namesProject(dex: Dex, project: string, typed: string): boolean {
  const { platform } = dex.machine
  return isSamePath(project, typed, platform) || isSamePath(project, resolve(dex.cwd, typed), platform)
}

export async function setPrivate(dex: Dex, input: PrivateInput) {
  const store = await dex.storeToWrite()
  const privateProjects = async () =>
    (await store.projects()).filter((project) => project.private).map((project) => project.path)
  if (input.project === undefined && !input.off) return { projects: await privateProjects() }
  const knownProjects = (await store.projects()).map((project) => project.path)
  const typed = input.project ?? dex.project
  const known = knownProjects.find((project) => dex.foldersOf(project).some((path) => namesProject(dex, path, typed)))
  const path = input.only_here ? await folderAlone(dex, store, typed) : (known ?? projectAt(dex, typed))
  if (path === undefined) throw new DexError("no_project", noProjectError(resolve(dex.cwd, typed), knownProjects))
  const { platform } = dex.machine
  await store.setPrivate(path, input.off !== true, (folder, project) =>
    isSamePath(dex.projectOf(folder), project, platform),
  )
  await updateDerivedData(dex, store)
  const nested = knownProjects.filter((project) => project.startsWith(path.endsWith(sep) ? path : path + sep))
  return {
    project: path,
    private: input.off !== true,
    projects: await privateProjects(),
    below: nested.length > 0 ? nested : undefined,
  }
}

/** Makes a folder a project of its own, which is never joined with the others of its repository. */
async function folderAlone(dex: Dex, store: HistoryWriter, typed: string): Promise<string> {
  const folder = createProjectFinder(dex.machine.platform)(resolve(dex.cwd, typed))
  await store.keepApart(folder)
  await publishPlaces({ store, home: dex.home })
  return folder
}

/** The project of an existing folder, even if no agent has worked there yet. */
function projectAt(dex: Dex, typed: string): string | undefined {
  const folder = resolve(dex.cwd, typed)
  return isFolder(folder) ? dex.projectOf(folder) : undefined
}

const MAX_NAMED = 5

function noProjectError(path: string, knownProjects: string[]): string {
  const firstProjects = knownProjects.slice(0, MAX_NAMED).join(", ")
  const rest = knownProjects.length > MAX_NAMED ? `, and ${knownProjects.length - MAX_NAMED} more` : ""
  const hint =
    knownProjects.length === 0
      ? "No projects are known yet. Run `dex sync` first."
      : `Known projects: ${firstProjects}${rest}.`
  return `There is no folder or known project called ${path}. ${hint}`
}

/** A file in dex's folder that may still contain the deleted text, and the reason. */
type UndeletedFile = { file: string; why: string }

/**
 * Deletes conversations from the histories that `dex backup --restore --replace` renamed, and removes the leftovers of an
 * interrupted restore, import or repair. Returns the files that it could not change.
 */
async function forgetInOldHistories(
  home: Home,
  refs: Ref[],
  { copies, ownerOf }: { copies: boolean; ownerOf: OwnerOf },
): Promise<UndeletedFile[]> {
  removeLeftovers(home)
  const undeleted: UndeletedFile[] = []
  for (const file of replacedHistories(home.history)) {
    // While a restore runs, this can be another name of the current history, from which the text has just been deleted.
    if (isSameFile(home.history, file)) continue
    try {
      const store = openStore(file)
      await forgetIn(store, refs, copies, ownerOf).finally(() => store.close())
    } catch (error) {
      undeleted.push({ file, why: failureReason(error) })
    }
  }
  return [...undeleted, ...unknownDatabases(home)]
}

async function forgetIn(store: HistoryWriter, refs: Ref[], copies: boolean, ownerOf: OwnerOf): Promise<void> {
  const family = await (copies ? store.family(refs) : store.withSubagents(refs))
  await store.forget(family, ownerOf)
}

/**
 * Removes files that an interrupted process left. A process that is still using such a file holds the lock and removes the file
 * itself.
 */
function removeLeftovers(home: Home): void {
  const lock = tryLock(home.lock)
  if (!lock) return
  try {
    cleanUpRestore(home.history)
    for (const file of repairFiles(home.history)) removeDatabase(file)
    for (const file of [home.suggest, hubState(home)]) removeDatabase(`${file}.restored`)
  } finally {
    lock.release()
  }
}

function failureReason(error: unknown): string {
  if (!isDexError(error)) return messageOf(error)
  const reasons: Record<string, string> = { corrupt: "it is damaged", newer_schema: "a newer dex wrote it" }
  return reasons[error.code] ?? error.message
}

/** Databases in dex's folder whose names dex does not know. They are most likely backups. */
function unknownDatabases(home: Home): UndeletedFile[] {
  const ownFiles = [
    home.history,
    home.index,
    home.knowledge,
    home.spending,
    home.suggest,
    hubState(home),
    ...replacedHistories(home.history),
  ]
  const knownNames = new Set(ownFiles.map((path) => basename(path)))
  return readdirSync(home.dir)
    .filter((name) => name.endsWith(".db") && !knownNames.has(name))
    .map((name) => ({ file: join(home.dir, name), why: "dex does not know this file" }))
}
