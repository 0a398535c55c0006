import { pathKey } from "../../core/path-key.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { refreshCounts } from "./feed.ts"
import { metaValue } from "./read/meta.ts"
import { tryParseJson } from "./rot/checked-rows.ts"
import { spellingsOf } from "./spellings.ts"

// Decides to which project a conversation belongs: the one in which it began. If it continued in a private project (after a cd,
// in a second folder, or when it was resumed), the entire conversation and its subagents belong to the private project, so that
// every filter by project hides them. The first project is remembered, in case the private one stops being private.

/** Checks on disk whether a folder belongs to a project, because a worktree can be anywhere. */
export type IsInProject = (folder: string, project: string) => boolean

type Placement = {
  startProject: number | null
  cwds: readonly string[]
  projects?: readonly string[]
  parentProject?: number
}

/**
 * Returns the project that a conversation belongs to: the one in which it began, unless one of its folders is in a private
 * project, or the conversation that started it is in one (`parentProject`). `projects` are the projects of its folders, if the
 * caller knows them.
 */
export function projectOfConversation(db: Db, placement: Placement, platform: NodeJS.Platform): number | null {
  return hasPrivateProject(db) ? chooseProject(createFolderFinder(db, platform), placement) : placement.startProject
}

function chooseProject(
  finder: FolderFinder,
  { startProject, cwds, projects = [], parentProject }: Placement,
): number | null {
  if (finder.isPrivate(startProject)) return startProject
  for (const folder of [...projects, ...cwds]) {
    const project = finder.projectOf(folder)
    if (project?.private) return project.id
  }
  return parentProject ?? startProject
}

/** Returns the project of the conversation that started this one, if that project is private. */
export function privateParentProject(db: Db, source: string, parent: string | undefined): number | undefined {
  if (parent === undefined) return undefined
  return valueQuery(
    db,
    `select p.id from conversation a join project p on p.id = a.project_id and p.private = 1
       where a.source = ? and a.native_id = ?`,
    "integer",
  ).get(source, parent)
}

/**
 * Returns the project in which a conversation began, even if it belongs to another project now. `project` is its current
 * project.
 */
export function startProjectOf(db: Db, id: number, project: number | null): number | null {
  const value = metaValue(db, startKey(id))
  return value === undefined ? project : Number(value) || null
}

/** Stores the project in which a conversation began, unless it is the one to which the conversation belongs. */
export function rememberStartProject(db: Db, id: number, startProject: number | null, project: number | null): void {
  if (startProject !== project)
    db.prepare("insert or replace into meta (key, value) values (?, ?)").run(startKey(id), String(startProject ?? ""))
  else if (metaValue(db, startKey(id)) !== undefined) forgetStartProject(db, id)
}

export function forgetStartProject(db: Db, id: number): void {
  db.prepare("delete from meta where key = ?").run(startKey(id))
}

/**
 * Marks projects as private or not private, and moves every conversation to the project it then belongs to. Returns false if none
 * of the projects is stored.
 */
export function markPrivate(
  db: Db,
  projects: readonly string[],
  isPrivate: boolean,
  { isIn = () => false, platform }: { isIn?: IsInProject | undefined; platform: NodeJS.Platform },
): boolean {
  const updateProjects = db.prepare("update project set private = ? where path in (select value from json_each(?))")
  let changed = 0
  for (const project of projects) {
    const spellings = spellingsOf(db, project, platform)
    // Insert the project even if it has no conversation yet, so that its first one is private from the start.
    if (isPrivate) db.prepare("insert or ignore into project (path) values (?)").run(spellings[0])
    changed += updateProjects.run(isPrivate ? 1 : 0, JSON.stringify(spellings)).changes
  }
  reassignAll(db, isIn, platform)
  return changed > 0
}

function reassignAll(db: Db, isIn: IsInProject, platform: NodeJS.Platform): void {
  const finder = createFolderFinder(db, platform)
  const privateProjects = valueQuery(db, "select path from project where private = 1", "text").all()
  const rows = rowQuery(db, "select id, project_id, cwds from conversation where source <> 'docs'", {
    id: "integer",
    project_id: "integer?",
    cwds: "text",
  }).all()
  for (const { id, project_id, cwds } of rows) {
    const startProject = startProjectOf(db, id, project_id)
    const folders = foldersIn(cwds)
    const projects = privateProjects.filter((project) => folders.some((cwd) => isIn(cwd, project)))
    const project = chooseProject(finder, { startProject, cwds: folders, projects })
    if (project !== project_id) moveToProject(db, id, startProject, project)
  }
  if (privateProjects.length > 0) for (const { id } of rows) moveSubagents(db, id)
}

/** Moves conversations that an earlier dex stored to the projects to which they belong, once for each history. */
export function reassignStored(db: Db, write: (work: () => void) => void, platform: NodeJS.Platform): void {
  if (!hasPrivateProject(db) || metaValue(db, FILED_KEY) !== undefined) return
  write(() => {
    reassignAll(db, () => false, platform)
    db.prepare("insert or replace into meta (key, value) values (?, '1')").run(FILED_KEY)
  })
}

const FILED_KEY = "filed_by_folders"

export function foldersIn(cwds: string): string[] {
  const list = tryParseJson(cwds)
  return Array.isArray(list) ? list.filter((folder) => typeof folder === "string") : []
}

/**
 * Moves the subagents of a conversation in a private project to that project, because their words are part of the conversation.
 */
export function moveSubagents(db: Db, id: number): void {
  const selectMovable = rowQuery(
    db,
    `select c.id, c.project_id, a.project_id as above from conversation a
       join project p on p.id = a.project_id and p.private = 1
       join conversation c on c.source = a.source and c.parent_id = a.native_id
       left join project o on o.id = c.project_id
     where a.id = ? and ifnull(o.private, 0) = 0`,
    { id: "integer", project_id: "integer?", above: "integer" },
  )
  const ids = [id]
  for (const parentId of ids)
    for (const { id, project_id, above } of selectMovable.all(parentId)) {
      moveToProject(db, id, startProjectOf(db, id, project_id), above)
      ids.push(id)
    }
}

function moveToProject(db: Db, id: number, startProject: number | null, project: number | null): void {
  rememberStartProject(db, id, startProject, project)
  db.prepare("update conversation set project_id = ? where id = ?").run(project, id)
  refreshCounts(db, id)
}

function startKey(id: number): string {
  return `began_in:${id}`
}

function hasPrivateProject(db: Db): boolean {
  return db.prepare("select 1 from project where private = 1 limit 1").get() !== undefined
}

type KnownProject = RowOf<typeof KNOWN_PROJECT_ROW>
const KNOWN_PROJECT_ROW = { id: "integer", private: "integer", path: "text" } as const
type FolderFinder = {
  isPrivate(project: number | null): boolean
  /** Returns the nearest known project whose folder is this one or contains it. */
  projectOf(folder: string): KnownProject | undefined
}

/** Returns a function that finds the nearest folder of any project at or above a folder. */
export function createKnownFolderFinder(db: Db, platform: NodeJS.Platform): (folder: string) => string | undefined {
  const { projectOf } = createFolderFinder(db, platform)
  return (folder) => projectOf(folder)?.path
}

function createFolderFinder(db: Db, platform: NodeJS.Platform): FolderFinder {
  const knownProjects = rowQuery(
    db,
    `select id, private, path from project union all
       select p.id, p.private, e.path from project_path e join project p on p.id = e.project_id`,
    KNOWN_PROJECT_ROW,
  ).all()
  const byPath = new Map<string, KnownProject>()
  for (const project of knownProjects) {
    const key = pathKey(project.path, platform)
    if (!byPath.get(key)?.private) byPath.set(key, project)
  }
  const privateProjects = new Set(knownProjects.filter((project) => project.private).map(({ id }) => id))
  return {
    isPrivate: (project) => project !== null && privateProjects.has(project),
    projectOf: (folder) => {
      const start = pathKey(folder, platform)
      for (let path = start; ; path = parentOf(path)) {
        const project = byPath.get(path)
        const isRoot = path === parentOf(path)
        // If the root of a disk is marked as private, that does not include everything below it.
        if (project && !(isRoot && path !== start)) return project
        if (isRoot) return undefined
      }
    },
  }
}

/** Accepts paths of any operating system. */
function parentOf(path: string): string {
  const separatorIndex = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"))
  return separatorIndex <= 0 ? path.slice(0, 1) : path.slice(0, separatorIndex)
}
