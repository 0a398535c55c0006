import { foldPath, foldsPaths } from "../../../core/path-key.ts"
import { isValidTime } from "../../../core/record.ts"
import { type Ref, sourceWithOwner } from "../../../core/ref.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { MESSAGE_FLAGS } from "../flags.ts"
import { damagedIds, intactRow, type OnDamage } from "../rot/checked-rows.ts"
import { intactSql } from "../rot/table-sql.ts"
import { readRowCounts } from "../row-counts.ts"
import type { CommandRow, CommitRow, MadeRow, Work } from "../store.ts"
import { TABLES } from "../tables.ts"
import { loadMessages } from "./messages.ts"
import { findStoredConversation, NOT_DAMAGED, rowsOf, type StoredConversation, spellingsAsJson } from "./rows.ts"

// Queries about the work in conversations: files, commands, commits.

const IS_MADE_INTACT = intactSql("t", "made")
const IS_TOUCH_INTACT = intactSql("t", "touch")
const IS_MESSAGE_INTACT = intactSql("m", "message")

const SELECT_TOUCHING = `select distinct c.source, c.native_id as id from file f join touch t on t.file_id = f.id join conversation c on c.id = t.conversation_id
  left join project p on p.id = f.project_id`

export function conversationsTouching(db: Db, file: string, platform = process.platform): Ref[] {
  if (foldsPaths(platform)) return conversationsTouchingAnySpelling(db, file, platform)
  return rowQuery(
    db,
    `${SELECT_TOUCHING} where instr(f.path, @file) > 0 or (p.path is not null and instr(p.path || '/' || f.path, @file) > 0)`,
    { source: "text", id: "text" },
  ).all({ file: file.replaceAll("\\", "/") })
}

function conversationsTouchingAnySpelling(db: Db, file: string, platform: NodeJS.Platform): Ref[] {
  const wantedPath = foldPath(platform === "win32" ? file : file.replaceAll("\\", "/"), platform)
  const selectFiles = rowQuery(
    db,
    "select f.id, f.path, p.path || '/' || f.path as full_path from file f left join project p on p.id = f.project_id",
    { id: "integer", path: "text", full_path: "text?" },
  )
  const fileIds: number[] = []
  for (const { id, path, full_path } of selectFiles.iterate())
    if (foldPath(full_path ?? path, platform).includes(wantedPath)) fileIds.push(id)
  return rowQuery(db, `${SELECT_TOUCHING} where f.id in (select value from json_each(?))`, {
    source: "text",
    id: "text",
  }).all(JSON.stringify(fileIds))
}

/** Returns the files that were edited, then those only read or mentioned, each in order of first mention. */
export function filesOf(db: Db, ref: Ref, onDamage: OnDamage): string[] {
  const conversation = findStoredConversation(db, ref)
  if (!conversation) return []
  const reportDamage = () => onDamage(ref)
  const selectFile = rowQuery(db, "select * from file where id = ?", TABLES.file)
  const paths = new Map<number, string | undefined>()
  const pathOf = (id: number) => {
    if (!paths.has(id)) {
      const stored = selectFile.get(id)
      paths.set(id, stored && intactRow(db, "file", stored, reportDamage)?.path)
    }
    return paths.get(id)
  }
  const files = new Map<string, boolean>()
  const touches = rowsOf(db, "touch", conversation, reportDamage).sort((a, b) => a.number - b.number)
  for (const { file_id, action } of touches) {
    const path = pathOf(file_id)
    if (path !== undefined) files.set(path, action === "edited" || files.get(path) === true)
  }
  const entries = [...files]
  return [...entries.filter(([, edited]) => edited), ...entries.filter(([, edited]) => !edited)].map(([path]) => path)
}

export function editedFiles(db: Db, ref: Ref, limit: number): string[] {
  return valueQuery(
    db,
    `select f.path from touch t join file f on f.id = t.file_id join conversation c on c.id = t.conversation_id
       where c.source = ? and c.native_id = ? and t.action = 'edited' group by f.id order by count(*) desc, f.path limit ?`,
    "text",
  ).all(sourceWithOwner(ref), ref.id, limit)
}

export function commandsOf(db: Db, ref: Ref, onDamage: OnDamage): CommandRow[] {
  const numbers = valueQuery(
    db,
    `select distinct m.number from command m join conversation c on c.id = m.conversation_id
       where c.source = ? and c.native_id = ? order by m.number`,
    "integer",
  ).all(sourceWithOwner(ref), ref.id)
  return loadMessages(db, ref, numbers, onDamage).flatMap(({ number, effects }) =>
    effects.flatMap((effect) => {
      if (effect.type !== "command") return []
      const { command, exit_status, failed, error } = effect
      return [
        {
          number,
          command,
          exit_status,
          failed,
          error,
        },
      ]
    }),
  )
}

export function madeRows(db: Db, ref: Ref, onDamage: OnDamage): MadeRow[] {
  const conversation = findStoredConversation(db, ref)
  const rows = conversation ? rowsOf(db, "made", conversation, () => onDamage(ref)) : []
  return rows
    .sort((a, b) => a.number - b.number)
    .map(({ number, kind, name, subject, branch }) => ({
      ...{ number, kind, name },
      subject: subject ?? undefined,
      branch: branch ?? undefined,
    }))
}

export function commitRows(
  db: Db,
  { limit, inside }: { limit: number; inside?: string },
  onDamage: OnDamage,
  platform = process.platform,
): CommitRow[] {
  const rows = rowQuery(
    db,
    `select c.source, c.native_id as id, t.number, t.name as hash, t.subject, m.at
       from made t join message m on m.conversation_id = t.conversation_id and m.number = t.number and not m.flags & @uncounted
       join conversation c on c.id = t.conversation_id left join project p on p.id = c.project_id
       where t.kind = 'commit' and t.subject is not null and (ifnull(p.private, 0) = 0 or p.path in (select value from json_each(@inside)))
         and ${IS_MADE_INTACT} and ${NOT_DAMAGED}
       order by m.at desc nulls last, c.native_id, t.number, t.name limit @limit`,
    { source: "text", id: "text", number: "integer", hash: "text", subject: "text", at: "integer?" },
  ).all({
    limit,
    inside: spellingsAsJson(db, inside, platform),
    uncounted: MESSAGE_FLAGS.superseded | MESSAGE_FLAGS.copied,
    damaged: damagedIds(db, onDamage),
  })
  return rows.map(({ source, id, number, hash, subject, at }) => ({
    ref: { source, id, number },
    hash,
    subject,
    at: isValidTime(at) ? at : undefined,
  }))
}

const MESSAGE_JOIN = `left join message m on m.conversation_id = t.conversation_id and m.number = t.number
  where t.conversation_id = @id`

export function readWork(db: Db, refs: Ref[], onDamage: OnDamage): Work[] {
  // Selects every action except `read` and `mentioned`, so that an edit whose action is damaged is checked too: one flipped bit
  // cannot turn `edited` into either of them.
  const sumEdits = rowQuery(
    db,
    `with row as materialized (select t.added, t.removed, t.file_id, m.flags, ${IS_TOUCH_INTACT} and m.number is not null and ${IS_MESSAGE_INTACT} as intact
       from touch t ${MESSAGE_JOIN} and t.action not in ('read', 'mentioned'))
     select ifnull(sum(added), 0) as lines_added, ifnull(sum(removed), 0) as lines_removed, count(distinct file_id) as files,
       (select count(*) from row where not intact) as damaged, (select count(*) from touch where conversation_id = @id) as touches
     from row where not flags & @uncounted`,
    EDIT_SUMS,
  )
  const countCommits = rowQuery(
    db,
    `with row as materialized (select t.name, t.kind, m.flags, ${IS_MADE_INTACT} and m.number is not null and ${IS_MESSAGE_INTACT} as intact from made t ${MESSAGE_JOIN})
     select count(distinct name) as commits, (select count(*) from row where not intact) as damaged, (select count(*) from row) as rows
     from row where kind = 'commit' and not flags & @uncounted`,
    { commits: "integer", damaged: "integer", rows: "integer" },
  )
  return refs.map((ref) => {
    const conversation = findStoredConversation(db, ref)
    if (!conversation) return { lines_added: 0, lines_removed: 0, files: 0, commits: 0 }
    const values = { id: conversation.id, uncounted: UNCOUNTED }
    const { damaged, touches, ...edited } = sumEdits.get(values)!
    const madeCommits = countCommits.get(values)!
    const expectedCounts =
      conversation.held === null ? { touch: touches, made: madeCommits.rows } : readRowCounts(conversation.held)
    const isComplete =
      damaged + madeCommits.damaged === 0 &&
      expectedCounts.touch === touches &&
      expectedCounts.made === madeCommits.rows
    return isComplete ? { ...edited, commits: madeCommits.commits } : workOf(db, conversation, () => onDamage(ref))
  })
}
const EDIT_SUMS = {
  lines_added: "integer",
  lines_removed: "integer",
  files: "integer",
  damaged: "integer",
  touches: "integer",
} as const

const UNCOUNTED = MESSAGE_FLAGS.superseded | MESSAGE_FLAGS.copied

/** Computes the work like `readWork`, but checks the rows one by one and leaves out damaged ones. */
function workOf(db: Db, conversation: StoredConversation, onDamage: () => void): Work {
  onDamage()
  const counted = new Set(
    rowsOf(db, "message", conversation, onDamage)
      .filter(({ flags }) => (flags & UNCOUNTED) === 0)
      .map(({ number }) => number),
  )
  const isCounted = ({ number }: { number: number }) => counted.has(number)
  const edited = rowsOf(db, "touch", conversation, onDamage).filter((row) => row.action === "edited" && isCounted(row))
  const made = rowsOf(db, "made", conversation, onDamage).filter((row) => row.kind === "commit" && isCounted(row))
  const sum = (name: "added" | "removed") => edited.reduce((total, row) => total + (row[name] ?? 0), 0)
  return {
    lines_added: sum("added"),
    lines_removed: sum("removed"),
    files: new Set(edited.map(({ file_id }) => file_id)).size,
    commits: new Set(made.map(({ name }) => name)).size,
  }
}
