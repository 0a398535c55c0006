import {
  type Effect,
  type Kind,
  type Message,
  type Role,
  SOURCES,
  type SourceId,
  type Title,
} from "../core/conversation.ts"
import { DexError } from "../core/error.ts"
import type { Ref, RefQuery } from "../core/ref.ts"
import type { Usage } from "../core/usage.ts"
import { lineOfMessage, numberOfLine, readBlock } from "./codec.ts"
import type { Db } from "./database.ts"
import { FLAG } from "./flags.ts"
import type {
  Changes,
  Collection,
  CommandRow,
  CommitRow,
  ConversationRow,
  KnownUnit,
  ListFilter,
  MadeRow,
  MessageVersion,
  ProjectRow,
  SourceReport,
  Stats,
  StoredMessage,
  UnitMark,
  Work,
} from "./store.ts"

const ROW = `select c.*, p.path as project, ifnull(p.private, 0) as private, u.path as unit_path, u.state as unit_state
  from conversation c join unit u on u.id = c.unit_id left join project p on p.id = c.project_id`

const LISTED = `where (@source is null or c.source = @source)
  and (@project is null or instr(lower(p.path), @project) > 0) and (@in_project is null or p.path = @in_project)
  and (@of_source is null or (c.source = @of_source and (c.native_id = @of_id or c.parent_id = @of_id)))
  and (@from is null or c.ended_at >= @from) and (@to is null or c.started_at <= @to)
  and (c.kind = 'document') = (@collection is not null)
  and (@collection is null or substr(c.native_id, 1, length(@collection) + 1) = @collection || '/')
  and (ifnull(p.private, 0) = 0 or p.path = @inside)`

type Raw = Record<string, string | number | null>

/** Told of every conversation of which something could not be read. */
export type OnDamage = (ref: Ref) => void

export function knownUnits(db: Db, source: SourceId): Map<string, UnitMark> {
  const rows = db
    .prepare("select key, path, stamp, connector_version, redaction_version, state from unit where source = ?")
    .raw()
    .all(source)
  const marks = new Map<string, UnitMark>()
  for (const [key, path, stamp, connector_version, redaction_version, state] of rows as [
    string,
    string,
    string,
    number,
    number,
    UnitMark["state"],
  ][]) {
    marks.set(key, { path, stamp, connector_version, redaction_version, state })
  }
  return marks
}

export function knownUnit(db: Db, source: SourceId, key: string): KnownUnit | undefined {
  const row = db
    .prepare(
      `select key, path, stamp, cursor, connector_version, redaction_version, born_at, modified_at, state, raw_withheld
       from unit where source = ? and key = ?`,
    )
    .get(source, key) as (Omit<KnownUnit, "raw_withheld"> & { raw_withheld: number }) | undefined
  return row && { ...row, raw_withheld: row.raw_withheld === 1 }
}

export function knownContainers(db: Db, source: SourceId): Map<string, string> {
  const rows = db.prepare("select path, stamp from container where source = ?").all(source) as {
    path: string
    stamp: string
  }[]
  return new Map(rows.map((row) => [row.path, row.stamp]))
}

export function rawLines(
  db: Db,
  source: SourceId,
  unitKey: string,
  kind: "live" | "left",
  onlyWhole: boolean,
): string[] {
  const blocks = db
    .prepare(
      "select r.data from raw r join unit u on u.id = r.unit_id where u.source = ? and u.key = ? and r.kind = ? order by r.seq",
    )
    .pluck()
    .all(source, unitKey, kind === "live" ? 0 : 1) as Buffer[]
  return blocks.flatMap((data) => {
    const lines = readBlock(data)
    if (!lines && !onlyWhole) throw new DexError("damaged", `What dex kept of ${unitKey} is damaged.`)
    return lines ?? []
  })
}

export function hasWholeRecords(db: Db, source: SourceId, unitKey: string): boolean {
  const blocks = db
    .prepare("select r.data from raw r join unit u on u.id = r.unit_id where u.source = ? and u.key = ?")
    .pluck()
    .all(source, unitKey) as Buffer[]
  return blocks.every((data) => readBlock(data) !== undefined)
}

export function revision(db: Db, historyId: string): string {
  return `${historyId}@${latestChange(db)}`
}

function latestChange(db: Db): number {
  return Number(db.prepare("select value from meta where key = 'change_seq'").pluck().get() ?? 0)
}

/** What changed after a token. Deletions are changes too; a token from another history, or the future, means rebuild. */
export function changes(db: Db, historyId: string, after: string | undefined, limit: number): Changes {
  const [id, seqText] = after?.split("@") ?? [historyId, "0"]
  const seq = Number(seqText)
  if (id !== historyId || !Number.isInteger(seq) || seq > latestChange(db))
    return { changes: [], token: `${historyId}@0`, more: true, rebuild: true }
  const rows = db
    .prepare(
      `select change_seq, id, source, native_id, 0 as deleted from conversation where change_seq > @seq
       union all select change_seq, conversation_id, null, null, 1 from deletion where change_seq > @seq
       order by change_seq limit @limit`,
    )
    .all({ seq, limit }) as {
    change_seq: number
    id: number
    source: SourceId | null
    native_id: string | null
    deleted: number
  }[]
  return {
    changes: rows.map((row) => ({
      conversation: String(row.id),
      deleted: row.deleted === 1,
      ...(row.source !== null && { ref: { source: row.source, id: row.native_id! } }),
    })),
    token: `${historyId}@${rows.at(-1)?.change_seq ?? seq}`,
    more: rows.length === limit,
    rebuild: false,
  }
}

/** Conversations whose id is, or begins with, what was typed. An exact id is never ambiguous. */
export function resolve(db: Db, query: RefQuery): ConversationRow[] {
  const sources = query.source === undefined ? SOURCES : [query.source]
  const exact = db.prepare(`${ROW} where c.source = ? and c.native_id = ?`)
  const found = sources.flatMap((source) => exact.all(source, query.prefix) as Raw[])
  if (found.length > 0) return found.map(toRow)
  const prefixed = db.prepare(`${ROW} where c.source = ? and c.native_id >= ? and c.native_id < ? limit 10`)
  return sources
    .flatMap((source) => prefixed.all(source, query.prefix, `${query.prefix}\u{10ffff}`) as Raw[])
    .map(toRow)
}

export function conversation(db: Db, ref: Ref): ConversationRow | undefined {
  const row = db.prepare(`${ROW} where c.source = ? and c.native_id = ?`).get(ref.source, ref.id) as Raw | undefined
  return row && toRow(row)
}

/** Newest first; of two that ended together the smaller id first. */
export function list(
  db: Db,
  filter: ListFilter,
): { rows: ConversationRow[]; total: number; left_out: Partial<Record<Kind, number>> } {
  const values = {
    source: filter.source ?? null,
    project: filter.project?.toLowerCase() ?? null,
    from: filter.from ?? null,
    to: filter.to ?? null,
    inside: filter.inside ?? null,
    in_project: filter.in_project ?? null,
    of_source: filter.conversation?.source ?? null,
    of_id: filter.conversation?.id ?? null,
    collection: filter.collection ?? null,
  }
  const counts = db
    .prepare(
      `select c.kind, count(*) as n from conversation c left join project p on p.id = c.project_id ${LISTED} group by c.kind`,
    )
    .all(values) as { kind: Kind; n: number }[]
  const shown = (kind: Kind) => filter.kinds === undefined || filter.kinds.includes(kind)
  const rows = db
    .prepare(
      `${ROW} ${LISTED} and (@kinds is null or instr(@kinds, ',' || c.kind || ',') > 0)
       order by c.ended_at desc nulls last, c.native_id limit @limit offset @offset`,
    )
    .all({
      ...values,
      kinds: filter.kinds ? `,${filter.kinds.join(",")},` : null,
      limit: filter.limit,
      offset: filter.offset,
    }) as Raw[]
  return {
    rows: rows.map(toRow),
    total: counts.filter(({ kind }) => shown(kind)).reduce((sum, { n }) => sum + n, 0),
    left_out: Object.fromEntries(counts.filter(({ kind }) => !shown(kind)).map(({ kind, n }) => [kind, n])),
  }
}

type MessageRow = {
  number: number
  position: number | null
  chunk: number
  role: Role
  flags: number
  at: number | null
}
type Body = { n: number; model?: string; usage?: Usage; parts: Message["parts"]; effects?: Effect[] }

/** What cannot be read is left out, and said by `onDamage`. */
export function messages(db: Db, ref: Ref, numbers: number[] | undefined, onDamage: OnDamage): StoredMessage[] {
  const id = db
    .prepare("select id from conversation where source = ? and native_id = ?")
    .pluck()
    .get(ref.source, ref.id) as number | undefined
  if (id === undefined) return []
  const rows = numbers ? chosenRows(db, id, numbers) : (db.prepare(MESSAGE_ROWS).all(id) as MessageRow[])
  const byChunk = Map.groupBy(rows, (row) => row.chunk)
  const found: { position: number; message: StoredMessage }[] = []
  for (const [chunk, members] of byChunk) {
    const data = db.prepare("select data from body where conversation_id = ? and chunk = ?").pluck().get(id, chunk) as
      | Buffer
      | undefined
    const read = data === undefined ? [] : bodiesOf(data, members)
    if (read.length < members.length) onDamage(ref)
    for (const [row, body] of read) found.push({ position: row.position ?? row.number, message: toMessage(row, body) })
  }
  return found.sort((a, b) => a.position - b.position).map(({ message }) => message)
}

const MESSAGE_ROWS = "select number, position, chunk, role, flags, at from message where conversation_id = ?"
const MESSAGE_ROW = `${MESSAGE_ROWS} and number = ?`

function chosenRows(db: Db, id: number, numbers: number[]): MessageRow[] {
  const row = db.prepare(MESSAGE_ROW)
  return [...new Set(numbers)].flatMap((number) => (row.get(id, number) as MessageRow | undefined) ?? [])
}

/** Each row with its body, as far as it can be read. A few are looked up one by one; many are decoded at once. */
function bodiesOf(data: Buffer, rows: MessageRow[]): [MessageRow, Body][] {
  const byNumber = new Map(rows.map((row) => [row.number, row]))
  const [first] = rows
  const lines = first && rows.length === 1 ? [lineOfMessage(data, first.number) ?? ""] : (readBlock(data) ?? [])
  return lines.flatMap((line) => {
    const row = byNumber.get(numberOfLine(line))
    const body = row && parsedBody(line)
    return body ? [[row, body] as [MessageRow, Body]] : []
  })
}

/** Blocks of before they had checksums can be wrong without a word. */
function parsedBody(line: string): Body | undefined {
  try {
    return JSON.parse(line) as Body
  } catch {
    return undefined
  }
}

function toMessage(row: MessageRow, body: Body): StoredMessage {
  return {
    number: row.number,
    role: row.role,
    ...(row.at !== null && { at: row.at }),
    ...(body.model !== undefined && { model: body.model }),
    parts: body.parts,
    effects: body.effects ?? [],
    ...(body.usage !== undefined && { usage: body.usage }),
    abandoned: (row.flags & FLAG.abandoned) !== 0,
    superseded: (row.flags & FLAG.superseded) !== 0,
    copied: (row.flags & FLAG.copied) !== 0,
  }
}

export function versions(db: Db, ref: Ref): MessageVersion[] {
  const rows = db
    .prepare(
      "select m.number, m.version, m.flags from message m join conversation c on c.id = m.conversation_id where c.source = ? and c.native_id = ? order by m.number",
    )
    .all(ref.source, ref.id) as { number: number; version: number; flags: number }[]
  return rows.map(({ number, version, flags }) => ({ number, version, copied: (flags & FLAG.copied) !== 0 }))
}

export function touching(db: Db, file: string): Ref[] {
  return db
    .prepare(
      `select distinct c.source, c.native_id as id from file f join touch t on t.file_id = f.id join conversation c on c.id = t.conversation_id
       left join project p on p.id = f.project_id
       where instr(f.path, @file) > 0 or (p.path is not null and instr(p.path || '/' || f.path, @file) > 0)`,
    )
    .all({ file: file.replaceAll("\\", "/") }) as Ref[]
}

export function usingModel(db: Db, model: string): Ref[] {
  const sql = "select source, native_id as id from conversation where instr(lower(models), ?) > 0"
  return db.prepare(sql).all(model.toLowerCase()) as Ref[]
}

export function filesOf(db: Db, ref: Ref): string[] {
  return db
    .prepare(
      `select f.path from touch t join file f on f.id = t.file_id join conversation c on c.id = t.conversation_id
       where c.source = ? and c.native_id = ? group by f.id order by max(t.action = 'edited') desc, min(t.number)`,
    )
    .pluck()
    .all(ref.source, ref.id) as string[]
}

export function editedFiles(db: Db, ref: Ref, limit: number): string[] {
  return db
    .prepare(
      `select f.path from touch t join file f on f.id = t.file_id join conversation c on c.id = t.conversation_id
       where c.source = ? and c.native_id = ? and t.action = 'edited' group by f.id order by count(*) desc, f.path limit ?`,
    )
    .pluck()
    .all(ref.source, ref.id, limit) as string[]
}

export function commandsOf(db: Db, ref: Ref, onDamage: OnDamage): CommandRow[] {
  const numbers = db
    .prepare(
      `select distinct m.number from command m join conversation c on c.id = m.conversation_id
       where c.source = ? and c.native_id = ? order by m.number`,
    )
    .pluck()
    .all(ref.source, ref.id) as number[]
  return messages(db, ref, numbers, onDamage).flatMap(({ number, effects }) =>
    effects.flatMap((effect) => {
      if (effect.type !== "command") return []
      const { command, exit_status, failed, error } = effect
      return [
        {
          number,
          command,
          ...(exit_status !== undefined && { exit_status }),
          ...(failed !== undefined && { failed }),
          ...(error !== undefined && { error }),
        },
      ]
    }),
  )
}

export function madeIn(db: Db, ref: Ref): MadeRow[] {
  const rows = db
    .prepare(
      `select m.number, m.kind, m.name, m.subject, m.branch from made m join conversation c on c.id = m.conversation_id
       where c.source = ? and c.native_id = ? order by m.number`,
    )
    .all(ref.source, ref.id) as Raw[]
  return rows.map((row) => present(row) as MadeRow)
}

export function commits(db: Db, { limit, inside }: { limit: number; inside?: string }): CommitRow[] {
  const rows = db
    .prepare(
      `select c.source, c.native_id as id, t.number, t.name as hash, t.subject, m.at
       from made t join message m on m.conversation_id = t.conversation_id and m.number = t.number and not m.flags & @uncounted
       join conversation c on c.id = t.conversation_id left join project p on p.id = c.project_id
       where t.kind = 'commit' and t.subject is not null and (ifnull(p.private, 0) = 0 or p.path = @inside)
       order by m.at desc nulls last, c.native_id, t.number, t.name limit @limit`,
    )
    .all({ limit, inside: inside ?? null, uncounted: FLAG.superseded | FLAG.copied }) as (Ref & {
    number: number
    hash: string
    subject: string
    at: number | null
  })[]
  return rows.map(({ source, id, number, hash, subject, at }) => ({
    ref: { source, id, number },
    hash,
    subject,
    ...(at !== null && { at }),
  }))
}

const COUNTED = `join message m on m.conversation_id = t.conversation_id and m.number = t.number and not m.flags & @uncounted
  where t.conversation_id = @id`

export function work(db: Db, refs: Ref[]): Work[] {
  const idOf = db.prepare("select id from conversation where source = ? and native_id = ?").pluck()
  const edits = db.prepare(
    `select ifnull(sum(t.added), 0) as lines_added, ifnull(sum(t.removed), 0) as lines_removed, count(distinct t.file_id) as files
     from touch t ${COUNTED} and t.action = 'edited'`,
  )
  const commits = db.prepare(`select count(distinct t.name) from made t ${COUNTED} and t.kind = 'commit'`).pluck()
  const uncounted = FLAG.superseded | FLAG.copied
  return refs.map((ref) => {
    const values = { id: idOf.get(ref.source, ref.id) ?? null, uncounted }
    return { ...(edits.get(values) as Omit<Work, "commits">), commits: commits.get(values) as number }
  })
}

export function collections(db: Db): Collection[] {
  const rows = db.prepare("select * from collection order by name").all() as Raw[]
  return rows.map((row) => ({ ...present(row), problems: JSON.parse(row.problems as string) }) as Collection)
}

export function documentsIn(db: Db, name: string) {
  return db
    .prepare(
      `select count(*) as documents, ifnull(sum(message_count), 0) as sections, ifnull(sum(estimated_tokens), 0) as estimated_tokens
       from conversation where source = 'docs' and native_id >= ? || '/' and native_id < ? || '0'`,
    )
    .get(name, name) as { documents: number; sections: number; estimated_tokens: number }
}

export function projects(db: Db): ProjectRow[] {
  return (db.prepare("select path, private from project order by path").all() as Raw[]).map(toProject)
}

export function busiestProjects(db: Db, limit: number): ProjectRow[] {
  const rows = db
    .prepare(
      `select p.path, p.private from project p join conversation c on c.project_id = p.id and c.kind not in ('subagent', 'document')
       group by p.id order by count(*) desc, p.path limit ?`,
    )
    .all(limit) as Raw[]
  return rows.map(toProject)
}

function toProject(row: Raw): ProjectRow {
  return { path: row.path as string, private: row.private === 1 }
}

export function stats(db: Db): Stats {
  const total = db
    .prepare(
      `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, ifnull(sum(estimated_tokens), 0) as estimated_tokens,
         ifnull(sum(text_bytes), 0) as text_bytes, min(started_at) as earliest, max(ended_at) as latest from conversation where kind <> 'document'`,
    )
    .get() as Raw
  const counts = (sql: string) =>
    Object.fromEntries((db.prepare(sql).raw().all() as [string, number][]).map(([name, n]) => [name, n]))
  return {
    ...(present(total) as Omit<Stats, "sources" | "kinds">),
    sources: counts(
      "select source, count(*) from conversation where kind <> 'document' group by source order by count(*) desc",
    ),
    kinds: counts(
      "select kind, count(*) from conversation where kind <> 'document' group by kind order by count(*) desc",
    ),
  }
}

export function sourceReport(db: Db): SourceReport[] {
  return SOURCES.filter((source) => source !== "docs").flatMap((source) => {
    const units = db.prepare("select state, skipped, unknown, redactions from unit where source = ?").all(source) as {
      state: string
      skipped: string
      unknown: string
      redactions: string
    }[]
    const unreadable = JSON.parse(
      (db.prepare("select value from meta where key = 'unreadable:' || ?").pluck().get(source) as string | undefined) ??
        "[]",
    )
    if (units.length === 0 && unreadable.length === 0) return []
    const held = db
      .prepare(
        "select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, max(ended_at) as last_at from conversation where source = ?",
      )
      .get(source) as Raw
    const skipped: Record<string, number> = {}
    const unknown: Record<string, number> = {}
    const redactions: Record<string, number> = {}
    for (const unit of units) {
      for (const { reason } of JSON.parse(unit.skipped) as { reason: string }[]) add(skipped, reason, 1)
      for (const [type, n] of Object.entries(JSON.parse(unit.unknown) as Record<string, number>)) add(unknown, type, n)
      for (const [rule, n] of Object.entries(JSON.parse(unit.redactions) as Record<string, number>))
        add(redactions, rule, n)
    }
    const archived = units.filter((unit) => unit.state === "archived").length
    return [
      {
        source,
        units: units.length,
        archived,
        ...(present(held) as { conversations: number; messages: number }),
        skipped,
        unknown,
        redactions,
        unreadable,
      },
    ]
  })
}

function add(counts: Record<string, number>, name: string, n: number): void {
  counts[name] = (counts[name] ?? 0) + n
}

function toRow(row: Raw): ConversationRow {
  const parent = row.parent_id === null ? undefined : present({ id: row.parent_id, call_id: row.parent_call_id })
  return present({
    ref: { source: row.source as SourceId, id: row.native_id as string },
    kind: row.kind,
    title: row.title === null ? null : ({ text: row.title, from: row.title_from } as Title),
    project: row.project,
    private: row.private === 1,
    cwds: JSON.parse(row.cwds as string),
    git_branch: row.git_branch,
    agent_version: row.agent_version,
    parent: parent ?? null,
    fork_of: row.fork_of,
    started_at: row.started_at,
    ended_at: row.ended_at,
    models: JSON.parse(row.models as string),
    usage: row.usage === null ? null : JSON.parse(row.usage as string),
    message_count: row.message_count,
    copied_count: row.copied_count,
    estimated_tokens: row.estimated_tokens,
    text_bytes: row.text_bytes,
    path: row.unit_path,
    archived: row.unit_state === "archived",
  }) as ConversationRow
}

/** The object without its nulls: in our own data a thing that is not known is not there. */
function present(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}
