import { posix } from "node:path"
import type { BoundUse, Definition, Import } from "../../core/code.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../sqlite/typed-query.ts"
import { knownProject, projectId } from "./rows.ts"

// Stores the definitions, imports and uses of symbols in a project's code.

/** `target` is the project's file that an import names, or a folder with a trailing slash. */
export const CODE_SCHEMA = `
  create table code_file (
    id integer primary key,
    project_id integer not null,
    path text not null,
    folder text not null,
    language text not null,
    version integer not null,
    size integer not null,
    modified_at integer not null,
    hash blob,
    lines integer not null,
    skipped text,
    unique (project_id, path)
  );
  create index code_file_folder on code_file (project_id, folder);

  -- exported: 1 by its name, 2 as the file's default
  create table code_definition (
    file_id integer not null,
    seq integer not null,
    name text not null,
    kind text not null,
    container text,
    line integer not null,
    end_line integer not null,
    exported integer not null,
    deprecated text,
    doc text,
    primary key (file_id, seq)
  ) without rowid;
  create index code_definition_name on code_definition (name);
  create index code_definition_deprecated on code_definition (file_id) where deprecated is not null;

  create table code_import (
    file_id integer not null,
    seq integer not null,
    module text not null,
    name text not null,
    local text not null,
    line integer not null,
    reexport integer not null,
    target text,
    primary key (file_id, seq)
  ) without rowid;
  create index code_import_target on code_import (target) where target is not null;

  -- via: the import that it came through, -1 for what the file defines itself, null where only the name is known
  create table code_use (
    file_id integer not null,
    seq integer not null,
    name text not null,
    is_plain integer not null,
    container text,
    line integer not null,
    is_call integer not null,
    via integer,
    primary key (file_id, seq)
  ) without rowid;
  create index code_use_name on code_use (name);

  -- By which Go modules a project's imports were last linked. No row: files came or went since.
  create table code_linked (project_id integer primary key, modules text not null);
`

const LOCAL_USE = -1

/** The state of a file when it was read. `modified_at` is in milliseconds; `hash` is missing if the content was not read. */
export type CodeStamp = { size: number; modified_at: number; version: number; hash?: Buffer }
export type LinkedImport = Import & { target?: string }
export type CodeFile = CodeStamp & {
  /** Relative to the project, with forward slashes. */
  path: string
  language: string
  lines: number
  /** The reason why the file was not read. */
  skipped?: string
  definitions: Definition[]
  imports: LinkedImport[]
  uses: BoundUse[]
}

const SELECT_STAMPS = "select path, size, modified_at, version, hash from code_file"
const STAMP_ROW = { path: "text", size: "integer", modified_at: "integer", version: "integer", hash: "blob?" } as const

/** Returns the stamps of all files of a project, or only that of the file at `path`. */
export function codeStamps(db: Db, project: string, path?: string): Map<string, CodeStamp> {
  const id = knownProject(db, project) ?? -1
  const rows =
    path === undefined
      ? rowQuery(db, `${SELECT_STAMPS} where project_id = ?`, STAMP_ROW).all(id)
      : rowQuery(db, `${SELECT_STAMPS} where project_id = ? and path = ?`, STAMP_ROW).all(id, path)
  return new Map(rows.map(({ path, hash, ...stamp }) => [path, { ...stamp, hash: hash ?? undefined }]))
}

/** Replaces everything stored about these files, in one transaction. */
export function saveCode(db: Db, project: string, files: readonly CodeFile[]): void {
  if (files.length > 0)
    inTransaction(db, () => {
      const id = projectId(db, project)
      for (const file of files) saveFile(db, id, file)
    })
}

/** Updates the stored size and time of a file whose content did not change. */
export function restampCode(db: Db, project: string, path: string, stamp: CodeStamp): void {
  db.prepare("update code_file set size = ?, modified_at = ? where project_id = ? and path = ?").run(
    stamp.size,
    stamp.modified_at,
    knownProject(db, project) ?? -1,
    path,
  )
}

export function removeCode(db: Db, project: string, paths: readonly string[]): void {
  const id = knownProject(db, project)
  if (id === undefined || paths.length === 0) return
  inTransaction(db, () => {
    for (const path of paths) {
      const file = fileId(db, id, path)
      if (file === undefined) continue
      clearFile(db, file)
      db.prepare("delete from code_file where id = ?").run(file)
      forgetLinks(db, id)
    }
  })
}

export function forgetProjectCode(db: Db, project: string): void {
  removeCode(db, project, [...codeStamps(db, project).keys()])
  const id = knownProject(db, project)
  if (id !== undefined) forgetLinks(db, id)
}

function forgetLinks(db: Db, project: number): void {
  db.prepare("delete from code_linked where project_id = ?").run(project)
}

/** Returns the Go modules with which imports were last linked, or undefined if imports must be linked again. */
export function linkedBy(db: Db, project: string): string | undefined {
  const id = knownProject(db, project) ?? -1
  return valueQuery(db, "select modules from code_linked where project_id = ?", "text").get(id)
}

export function saveLinkedBy(db: Db, project: string, modules: string): void {
  db.prepare("insert or replace into code_linked (project_id, modules) values (?, ?)").run(
    projectId(db, project),
    modules,
  )
}

function saveFile(db: Db, project: number, file: CodeFile): void {
  const existingFile = fileId(db, project, file.path)
  if (existingFile !== undefined) clearFile(db, existingFile)
  else forgetLinks(db, project)
  const id =
    existingFile ??
    valueQuery(
      db,
      "insert into code_file (project_id, path, folder, language, version, size, modified_at, lines) values (?, ?, ?, '', 0, 0, 0, 0) returning id",
      "integer",
    ).get(project, file.path, posix.dirname(file.path))!
  db.prepare(
    "update code_file set language = ?, version = ?, size = ?, modified_at = ?, hash = ?, lines = ?, skipped = ? where id = ?",
  ).run(
    file.language,
    file.version,
    file.size,
    file.modified_at,
    file.hash ?? null,
    file.lines,
    file.skipped ?? null,
    id,
  )
  const insertDefinition = db.prepare("insert into code_definition values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)")
  for (const [seq, definition] of file.definitions.entries()) {
    const exported = definition.exported === "default" ? 2 : definition.exported ? 1 : 0
    const { name, kind, container = null, line, end_line, deprecated = null, doc = null } = definition
    insertDefinition.run(id, seq, name, kind, container, line, end_line, exported, deprecated, doc)
  }
  const insertImport = db.prepare("insert into code_import values (?, ?, ?, ?, ?, ?, ?, ?)")
  for (const [seq, { module, name, as, line, reexport, target = null }] of file.imports.entries())
    insertImport.run(id, seq, module, name, as, line, reexport ? 1 : 0, target)
  const insertUse = db.prepare("insert into code_use values (?, ?, ?, ?, ?, ?, ?, ?)")
  for (const [seq, { name, receiver, container = null, line, kind, via }] of file.uses.entries()) {
    const viaImport = via.type === "import" ? via.index : via.type === "local" ? LOCAL_USE : null
    insertUse.run(id, seq, name, receiver === undefined ? 1 : 0, container, line, kind === "call" ? 1 : 0, viaImport)
  }
}

function clearFile(db: Db, file: number): void {
  db.prepare("delete from code_definition where file_id = ?").run(file)
  db.prepare("delete from code_import where file_id = ?").run(file)
  db.prepare("delete from code_use where file_id = ?").run(file)
}

function fileId(db: Db, project: number, path: string): number | undefined {
  return valueQuery(db, "select id from code_file where project_id = ? and path = ?", "integer").get(project, path)
}

export function hasCodeFile(db: Db, project: string, path: string): boolean {
  return fileId(db, knownProject(db, project) ?? -1, path) !== undefined
}

export function hasCodeFolder(db: Db, project: string, folder: string): boolean {
  const id = knownProject(db, project) ?? -1
  return db.prepare("select 1 from code_file where project_id = ? and folder = ?").get(id, folder) !== undefined
}

/** Links imports to files again, after files were added or removed. Returns the number of changed links. */
export function relinkImports(
  db: Db,
  project: string,
  modules: string,
  targetOf: (importer: string, language: string, wanted: { module: string; name: string }) => string | undefined,
): number {
  const id = knownProject(db, project)
  if (id === undefined) return 0
  return inTransaction(db, () => {
    const rows = rowQuery(
      db,
      `select f.path, f.language, i.file_id, i.seq, i.module, i.name, i.target
         from code_file f join code_import i on i.file_id = f.id where f.project_id = ?`,
      IMPORT_ROW,
    ).all(id)
    const link = db.prepare("update code_import set target = ? where file_id = ? and seq = ?")
    const changed = rows.flatMap((row) => {
      const target = targetOf(row.path, row.language, row) ?? null
      return target === row.target ? [] : [() => link.run(target, row.file_id, row.seq)]
    })
    for (const change of changed) change()
    saveLinkedBy(db, project, modules)
    return changed.length
  })
}
const IMPORT_ROW = {
  path: "text",
  language: "text",
  file_id: "integer",
  seq: "integer",
  module: "text",
  name: "text",
  target: "text?",
} as const

export type CodeCounts = {
  files: number
  lines: number
  definitions: number
  imports: number
  uses: number
  /** Files that were not read, by reason. */
  skipped: Record<string, number>
}

export function codeCounts(db: Db, project: string): CodeCounts {
  const id = knownProject(db, project) ?? -1
  const counts = rowQuery(
    db,
    `select count(*) as files, ifnull(sum(lines), 0) as lines,
         (select count(*) from code_definition where file_id in (select id from code_file where project_id = :id)) as definitions,
         (select count(*) from code_import where file_id in (select id from code_file where project_id = :id)) as imports,
         (select count(*) from code_use where file_id in (select id from code_file where project_id = :id)) as uses
       from code_file where project_id = :id and skipped is null`,
    { files: "integer", lines: "integer", definitions: "integer", imports: "integer", uses: "integer" },
  ).get({ id })!
  const skipped = tupleQuery(
    db,
    "select skipped, count(*) from code_file where project_id = ? and skipped is not null group by skipped order by skipped",
    ["text", "integer"],
  ).all(id)
  return { ...counts, skipped: Object.fromEntries(skipped) }
}
