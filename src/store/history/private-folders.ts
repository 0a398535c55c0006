import { pathKey } from "../../core/path-key.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { refreshCounts } from "./feed.ts"
import { metaValue } from "./read/meta.ts"
import { tryParseJson } from "./rot/checked-rows.ts"
import { spellingsOf } from "./spellings.ts"

// Decides to which project a conversation belongs: the one in which it began. If it continued in a private one (cd, a second
// folder, a resume), all of it belongs to the private one, with its subagents, so that every filter by project hides it. The
// first project is remembered, in case the other one is no longer private.

/** Checks on the disk whether a folder is in a project, because a worktree can be anywhere. */
export type IsInProject = (folder: string, project: string) => boolean

type Placement = {
  startProject: number | null
  cwds: readonly string[]
  projects?: readonly string[]
  parentProject?: number
}

/**
 * The project that a conversation belongs to: the one in which it began, unless one of its folders is in a private project, or
 * the conversation that started it is (`parentProject`). `projects` are the projects of its folders, if the caller knows them.
 */
export function projectOfConversation(db: Db, placement: Placement, platform: NodeJS.Platform): number | null {
  return hasPrivate(db) ? chooseProject(createFolderFinder(db, platform), placement) : placement.startProject
}

function chooseProject(
  find: FolderFinder,
  { startProject, cwds, projects = [], parentProject }: Placement,
): number | null {
  if (find.isPrivate(startProject)) return startProject
  for (const folder of [...projects, ...cwds]) {
    const project = find.projectOf(folder)
    if (project?.private) return project.id
  }
  return parentProject ?? startProject
}

/** The private project of the conversation that started this one. */
export function privateParentProject(db: Db, source: string, parent: string | undefined): number | undefined {
  if (parent === undefined) return undefined
  return valueQuery(
    db,
    `select p.id from conversation a join project p on p.id = a.project_id and p.private = 1
       where a.source = ? and a.native_id = ?`,
    "integer",
  ).get(source, parent)
}

/** The project in which a conversation began, even if it belongs to another one now. */
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
 * Marks projects as private or not private, and moves every conversation to the project it then belongs to. Returns false if no
 * project is known.
 */
export function markPrivate(
  db: Db,
  projects: readonly string[],
  isPrivate: boolean,
  { isIn = () => false, platform }: { isIn?: IsInProject | undefined; platform: NodeJS.Platform },
): boolean {
  const mark = db.prepare("update project set private = ? where path in (select value from json_each(?))")
  let changed = 0
  for (const project of projects) {
    const spellings = spellingsOf(db, project, platform)
    // Insert the project even if it has no conversation yet, so that its first one is private from the start.
    if (isPrivate) db.prepare("insert or ignore into project (path) values (?)").run(spellings[0])
    changed += mark.run(isPrivate ? 1 : 0, JSON.stringify(spellings)).changes
  }
  refileAll(db, isIn, platform)
  return changed > 0
}

function refileAll(db: Db, isIn: IsInProject, platform: NodeJS.Platform): void {
  const find = createFolderFinder(db, platform)
  const privates = valueQuery(db, "select path from project where private = 1", "text").all()
  const rows = rowQuery(db, "select id, project_id, cwds from conversation where source <> 'docs'", {
    id: "integer",
    project_id: "integer?",
    cwds: "text",
  }).all()
  for (const { id, project_id, cwds } of rows) {
    const startProject = startProjectOf(db, id, project_id)
    const folders = foldersIn(cwds)
    const projects = privates.filter((project) => folders.some((cwd) => isIn(cwd, project)))
    const project = chooseProject(find, { startProject, cwds: folders, projects })
    if (project !== project_id) move(db, id, startProject, project)
  }
  if (privates.length > 0) for (const { id } of rows) moveSubagents(db, id)
}

/** Moves conversations that an earlier dex stored to the projects to which they belong. Runs once. */
export function refileStored(db: Db, write: (work: () => void) => void, platform: NodeJS.Platform): void {
  if (!hasPrivate(db) || metaValue(db, FILED_KEY) !== undefined) return
  write(() => {
    refileAll(db, () => false, platform)
    db.prepare("insert or replace into meta (key, value) values (?, '1')").run(FILED_KEY)
  })
}

const FILED_KEY = "filed_by_folders"

export function foldersIn(cwds: string): string[] {
  const list = tryParseJson(cwds)
  return Array.isArray(list) ? list.filter((folder) => typeof folder === "string") : []
}

/** Moves subagents to the same private project, because their words are part of the conversation that started them. */
export function moveSubagents(db: Db, id: number): void {
  const movable = rowQuery(
    db,
    `select c.id, c.project_id, a.project_id as above from conversation a
       join project p on p.id = a.project_id and p.private = 1
       join conversation c on c.source = a.source and c.parent_id = a.native_id
       left join project o on o.id = c.project_id
     where a.id = ? and ifnull(o.private, 0) = 0`,
    { id: "integer", project_id: "integer?", above: "integer" },
  )
  const ids = [id]
  for (const next of ids)
    for (const { id, project_id, above } of movable.all(next)) {
      move(db, id, startProjectOf(db, id, project_id), above)
      ids.push(id)
    }
}

function move(db: Db, id: number, startProject: number | null, project: number | null): void {
  rememberStartProject(db, id, startProject, project)
  db.prepare("update conversation set project_id = ? where id = ?").run(project, id)
  refreshCounts(db, id)
}

function startKey(id: number): string {
  return `began_in:${id}`
}

function hasPrivate(db: Db): boolean {
  return db.prepare("select 1 from project where private = 1 limit 1").get() !== undefined
}

type KnownProject = RowOf<typeof KNOWN_PROJECT>
const KNOWN_PROJECT = { id: "integer", private: "integer", path: "text" } as const
type FolderFinder = {
  isPrivate(project: number | null): boolean
  /** Finds the nearest known project above a folder. */
  projectOf(folder: string): KnownProject | undefined
}

function createFolderFinder(db: Db, platform: NodeJS.Platform): FolderFinder {
  const known = rowQuery(
    db,
    `select id, private, path from project union all
       select p.id, p.private, e.path from project_path e join project p on p.id = e.project_id`,
    KNOWN_PROJECT,
  ).all()
  const byPath = new Map<string, KnownProject>()
  for (const project of known) {
    const key = pathKey(project.path, platform)
    if (!byPath.get(key)?.private) byPath.set(key, project)
  }
  const privates = new Set(known.filter((project) => project.private).map(({ id }) => id))
  return {
    isPrivate: (project) => project !== null && privates.has(project),
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
  const at = Math.max(path.lastIndexOf("/"), path.lastIndexOf("\\"))
  return at <= 0 ? path.slice(0, 1) : path.slice(0, at)
}
