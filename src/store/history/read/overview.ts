import type { Db } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery } from "../../sqlite/typed-query.ts"
import { damagedIds, intactRow, type OnDamage, tryParseJson } from "../rot/checked-rows.ts"
import type { Collection, ProjectIdentity, ProjectRow, Stats } from "../store.ts"
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

/** Leaves out damaged projects, and with them their conversations. */
function toProjects(db: Db, rows: RowIn<"project">[], onDamage: OnDamage): ProjectRow[] {
  return intactProjects(db, rows, onDamage).map((row) => ({ path: row.path, private: row.private === 1 }))
}

function intactProjects(db: Db, rows: RowIn<"project">[], onDamage: OnDamage): RowIn<"project">[] {
  return rows
    .map((stored) => intactRow(db, "project", stored, () => onDamage("the list of projects")))
    .filter((row) => row !== undefined)
}

export function projectIdentities(db: Db, onDamage: OnDamage): ProjectIdentity[] {
  const rows = rowQuery(db, "select * from project order by path", TABLES.project).all()
  return intactProjects(db, rows, onDamage).map(({ path, private: hidden, git_remote, root_commit }) => ({
    path,
    git_remote: git_remote ?? undefined,
    root_commit: root_commit ?? undefined,
    private: hidden === 1,
  }))
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

/** Excludes the conversations of some projects. Without any, no conversation's project is looked at. */
const COUNTED = `kind <> 'document' and (@except = '[]' or c.project_id is null
  or c.project_id not in (select id from project where path in (select value from json_each(@except)))) and ${NOT_DAMAGED}`

export function historyStats(db: Db, onDamage: OnDamage, except: readonly string[] = []): Stats {
  const values = { damaged: damagedIds(db, onDamage), except: JSON.stringify(except) }
  const total = rowQuery(
    db,
    `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, ifnull(sum(estimated_tokens), 0) as estimated_tokens,
         ifnull(sum(text_bytes), 0) as text_bytes, min(${STARTED_AT}) as earliest, max(${ENDED_AT}) as latest
       from conversation c where ${COUNTED}`,
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
        `select ${column}, count(*) from conversation c where ${COUNTED} group by ${column} order by count(*) desc, ${column}`,
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
