import type { SourceId } from "../../core/conversation.ts"
import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"
import { knownProject, OWN_WORDS_SQL, projectId, storedSpellings } from "./rows.ts"

// Stores fixes for errors: the failed command, the lines that describe the error, the edits, and the run that passed.

export const FIXES_SCHEMA = `
  create table fix (
    id integer primary key,
    conversation_id integer not null,
    project_id integer,
    failed_number integer not null,
    fixed_number integer,
    at integer,
    command text not null,
    lines text not null,
    files text not null,
    edits integer not null,
    edit text not null,
    edit_lines_left_out integer not null
  );
  create index fix_conversation on fix (conversation_id);
  create index fix_project on fix (project_id);
  create virtual table fix_words using fts5(words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
`

export type FixedFile = { path: string; added: number; removed: number }

export type StoredFix = {
  command: string
  /** The lines of the output that describe the error, most informative first. */
  lines: string[]
  failed_number: number
  /** Missing if no run passed. */
  fixed_number?: number
  at?: number
  files: FixedFile[]
  edits: number
  /** The first lines of the change as a unified diff. */
  edit: string
  edit_lines_left_out: number
}

export type KnownFix = StoredFix & {
  source: SourceId
  id: string
  root: string
  project?: string
  is_own_words: boolean
}

/** Saves fixes. A search finds each of them by its `words`. */
export function saveFixes(
  db: Db,
  conversation: number,
  project: string | undefined,
  fixes: (StoredFix & { words: string })[],
): void {
  const insertFix = db.prepare(
    `insert into fix (conversation_id, project_id, failed_number, fixed_number, at, command, lines, files, edits, edit, edit_lines_left_out)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
  )
  const insertWords = db.prepare("insert into fix_words (rowid, words) values (?, ?)")
  for (const fix of fixes) {
    const id = insertFix
      .pluck()
      .get(
        conversation,
        project === undefined ? null : projectId(db, project),
        fix.failed_number,
        fix.fixed_number ?? null,
        fix.at ?? null,
        fix.command,
        JSON.stringify(fix.lines),
        JSON.stringify(fix.files),
        fix.edits,
        fix.edit,
        fix.edit_lines_left_out,
      )
    insertWords.run(id, fix.words)
  }
}

export type FixFilter = {
  /** Selects this project. Unless `exactly` is set, a part of its path is enough. */
  project?: string
  exactly?: boolean
  /** Projects to exclude. */
  except?: string[]
  limit: number
}

/** Returns fixes with any of the words, best first. */
export function fixesWithWords(db: Db, words: string[], filter: FixFilter): KnownFix[] {
  const { project, exactly, except = [], limit } = filter
  if (words.length === 0) return []
  const match = words.map((word) => `"${word.replaceAll('"', "")}"`).join(" OR ")
  const rows = rowQuery(
    db,
    `select fact.*, bm25(fix_words) as score, c.source, c.native_id, c.root, p.path as project, ${OWN_WORDS_SQL} as own
       from fix_words join fix fact on fact.id = fix_words.rowid join conversation c on c.id = fact.conversation_id
         left join project p on p.id = fact.project_id
       where fix_words match @match
         and (@project is null or (case when @exactly then p.path = @project else instr(lower(p.path), lower(@project)) end))
         and (p.path is null or p.path not in (select value from json_each(@except)))
       order by score limit @limit`,
    FIX_ROW,
  ).all({
    match,
    project: project === undefined ? null : exactly ? storedSpellings(db, [project])[0] : project,
    exactly: exactly ? 1 : 0,
    except: JSON.stringify(storedSpellings(db, except)),
    limit,
  })
  return rows.map(knownFix)
}

const FIX_WITH_SOURCE = `fact.*, c.source, c.native_id, c.root, p.path as project, ${OWN_WORDS_SQL} as own
  from fix fact join conversation c on c.id = fact.conversation_id left join project p on p.id = fact.project_id`

/** Returns the fixes of one failed run, which may have failed in several ways. Excludes the given projects. */
export function fixesOfRun(db: Db, run: Ref & { number: number }, except: string[]): KnownFix[] {
  const rows = rowQuery(
    db,
    `select ${FIX_WITH_SOURCE} where c.source = ? and c.native_id = ? and fact.failed_number = ?
         and (p.path is null or p.path not in (select value from json_each(?))) order by fact.id`,
    FIX_ROW,
  ).all(sourceWithOwner(run), run.id, run.number, JSON.stringify(storedSpellings(db, except)))
  return rows.map(knownFix)
}

/** Returns successful fixes that edited this file of the project, newest first; `total` counts all of them. */
export function fixesEditing(
  db: Db,
  project: string,
  path: string,
  limit: number,
): { fixes: KnownFix[]; total: number } {
  const rows = rowQuery(
    db,
    `select ${FIX_WITH_SOURCE} where fact.project_id = ? and fact.fixed_number is not null
         and exists (select 1 from json_each(fact.files) f where f.value ->> 'path' = ?)
       order by ifnull(fact.at, 0) desc, fact.id desc`,
    FIX_ROW,
  ).all(knownProject(db, project) ?? null, path)
  return { fixes: rows.slice(0, limit).map(knownFix), total: rows.length }
}

type FixRow = RowOf<typeof FIX_ROW>
const FIX_ROW = {
  source: "text",
  native_id: "text",
  root: "text",
  project: "text?",
  failed_number: "integer",
  fixed_number: "integer?",
  at: "integer?",
  command: "text",
  lines: "text",
  files: "text",
  edits: "integer",
  edit: "text",
  edit_lines_left_out: "integer",
  own: "integer",
} as const

function knownFix(row: FixRow): KnownFix {
  const { source, native_id, root, failed_number, command, edit, edit_lines_left_out } = row
  return {
    source,
    id: native_id,
    root,
    project: row.project ?? undefined,
    failed_number,
    fixed_number: row.fixed_number ?? undefined,
    at: row.at ?? undefined,
    command,
    lines: JSON.parse(row.lines),
    files: JSON.parse(row.files),
    edits: row.edits,
    edit,
    edit_lines_left_out,
    is_own_words: row.own === 1,
  }
}
