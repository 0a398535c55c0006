import type { Db } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { damagedIds, intactRow, type OnDamage, tryParseJson } from "../rot/checked-rows.ts"
import type { Collection, ProjectCommit, ProjectIdentity, ProjectRow, Stats } from "../store.ts"
import { type RowIn, TABLES } from "../tables.ts"
import { ENDED_AT, NOT_DAMAGED, STARTED_AT } from "./rows.ts"

// Queries for totals: projects, collections, counts.

export function readProjects(db: Db, onDamage: OnDamage): ProjectRow[] {
  return toProjects(db, rowQuery(db, "select * from project order by path", TABLES.project).all(), onDamage)
}

export function busiestProjects(
  db: Db,
  limit: number,
  onDamage: OnDamage,
  except: readonly string[] = [],
): ProjectRow[] {
  const rows = rowQuery(
    db,
    `select p.* from project p join conversation c on c.project_id = p.id and c.kind not in ('subagent', 'document', 'note')
     where p.path not in (select value from json_each(@except)) and ${NOT_DAMAGED} group by p.id order by count(*) desc, p.path limit @limit`,
    TABLES.project,
  ).all({ limit, except: JSON.stringify(except), damaged: damagedIds(db, onDamage) })
  return toProjects(db, rows, onDamage)
}

/** Leaves out projects with a damaged row, because any of them may be private. */
function toProjects(db: Db, rows: RowIn<"project">[], onDamage: OnDamage): ProjectRow[] {
  const folders = Map.groupBy(projectFolders(db), (folder) => folder.project_id)
  return intactProjects(db, rows, onDamage).map((row) => {
    const names = [...(folders.get(row.id) ?? []).map(({ path }) => path), ...tryParseNames(row.remotes)]
    return { path: row.path, private: row.private === 1, ...(names.length > 0 && { names }) }
  })
}

function intactProjects(db: Db, rows: RowIn<"project">[], onDamage: OnDamage): RowIn<"project">[] {
  return rows
    .map((stored) => intactRow(db, "project", stored, () => onDamage("the list of projects")))
    .filter((row) => row !== undefined)
}

export function projectIdentities(db: Db, onDamage: OnDamage): ProjectIdentity[] {
  const rows = rowQuery(db, "select * from project order by path", TABLES.project).all()
  const counts = new Map(
    tupleQuery(db, "select project_id, count(*) from conversation where project_id is not null group by project_id", [
      "integer",
      "integer",
    ]).all(),
  )
  const folders = Map.groupBy(projectFolders(db), (folder) => folder.project_id)
  return intactProjects(db, rows, onDamage).map((row) => ({
    path: row.path,
    git_remote: row.git_remote ?? undefined,
    root_commit: row.root_commit ?? undefined,
    remotes: tryParseNames(row.remotes),
    stamp: row.stamp ?? undefined,
    apart: row.apart === 1,
    folders: (folders.get(row.id) ?? []).map(({ path, why }) => ({ path, why: why ?? undefined })),
    private: row.private === 1,
    conversations: counts.get(row.id) ?? 0,
  }))
}

function projectFolders(db: Db): RowIn<"project_path">[] {
  return rowQuery(db, "select * from project_path order by path", TABLES.project_path).all()
}

export function projectCommits(db: Db): ProjectCommit[] {
  return rowQuery(
    db,
    `select p.path as project, t.name as hash, t.subject, m.at from made t join conversation c on c.id = t.conversation_id
       join message m on m.conversation_id = t.conversation_id and m.number = t.number
       join project p on p.id = c.project_id where t.kind = 'commit' and t.subject is not null order by c.ended_at desc`,
    { project: "text", hash: "text", subject: "text", at: "integer?" },
  )
    .all()
    .map(({ at, ...commit }) => ({ ...commit, at: at ?? undefined }))
}

const MAX_FILES = 2_000

export function projectFiles(db: Db, path: string): string[] {
  return valueQuery(
    db,
    `select f.path from project p join file f on f.project_id = p.id
     where p.path = ? and exists (select 1 from touch t where t.file_id = f.id and t.added > 0) limit ${MAX_FILES}`,
    "text",
  ).all(path)
}

export function projectPullRequests(db: Db, path: string): string[] {
  return valueQuery(
    db,
    `select distinct t.name from project p join conversation c on c.project_id = p.id join made t on t.conversation_id = c.id
     where p.path = ? and t.kind = 'pull_request'`,
    "text",
  ).all(path)
}

function tryParseNames(json: string | null): string[] {
  const list = json === null ? [] : tryParseJson(json)
  return Array.isArray(list) ? list.filter((name) => typeof name === "string") : []
}

export function readCollections(db: Db, onDamage: OnDamage): Collection[] {
  const rows = rowQuery(db, "select * from collection order by name", TABLES.collection).all()
  return rows.flatMap((stored) => {
    const row = intactRow(db, "collection", stored, () => onDamage(`a collection of documents (${stored.name})`))
    if (!row) return []
    const { sum: _, only, project, version, synced_at, problems, ...rest } = row
    return [
      {
        ...rest,
        only: only ?? undefined,
        project: project ?? undefined,
        version: version ?? undefined,
        synced_at: synced_at ?? undefined,
        problems: (tryParseJson(problems) ?? []) as string[],
      },
    ]
  })
}

export function documentsIn(db: Db, name: string, onDamage: OnDamage) {
  return rowQuery(
    db,
    `select count(*) as documents, ifnull(sum(message_count), 0) as sections, ifnull(sum(estimated_tokens), 0) as estimated_tokens
       from conversation c where source = 'docs' and native_id >= @name || '/' and native_id < @name || '0' and ${NOT_DAMAGED}`,
    { documents: "integer", sections: "integer", estimated_tokens: "integer" },
  ).get({ name, damaged: damagedIds(db, onDamage) })!
}

/** Excludes documents and the conversations of the projects in `@except`. If `@except` is empty, projects are not looked up. */
const COUNTED_CONDITION = `kind <> 'document' and (@except = '[]' or c.project_id is null
  or c.project_id not in (select id from project where path in (select value from json_each(@except)))) and ${NOT_DAMAGED}`

export function historyStats(db: Db, onDamage: OnDamage, except: readonly string[] = []): Stats {
  const values = { damaged: damagedIds(db, onDamage), except: JSON.stringify(except) }
  const total = rowQuery(
    db,
    `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, ifnull(sum(estimated_tokens), 0) as estimated_tokens,
         ifnull(sum(text_bytes), 0) as text_bytes, min(${STARTED_AT}) as earliest, max(${ENDED_AT}) as latest
       from conversation c where ${COUNTED_CONDITION}`,
    {
      conversations: "integer",
      messages: "integer",
      estimated_tokens: "integer",
      text_bytes: "integer",
      earliest: "integer?",
      latest: "integer?",
    },
  ).get(values)!
  const counts = (column: "source" | "kind") =>
    Object.fromEntries(
      tupleQuery(
        db,
        `select ${column}, count(*) from conversation c where ${COUNTED_CONDITION} group by ${column} order by count(*) desc, ${column}`,
        ["text", "integer"],
      ).all(values),
    )
  return {
    ...total,
    earliest: total.earliest ?? undefined,
    latest: total.latest ?? undefined,
    sources: counts("source"),
    kinds: counts("kind"),
  }
}
