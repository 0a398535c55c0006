import { createCounts } from "../../core/by-name.ts"
import type { Effect, Kind, Message, Role, SourceId, Title } from "../../core/conversation.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { foldPath, isFolding } from "../../core/path-key.ts"
import type { Ref, RefQuery } from "../../core/ref.ts"
import type { Usage } from "../../core/usage.ts"
import type { Db } from "../sqlite/database.ts"
import { lineOfMessage, numberOfLine, readBlock } from "./codec.ts"
import { FLAG } from "./flags.ts"
import { type Held, readHeld } from "./held.ts"
import { correctedRow } from "./rot/correct.ts"
import { asWritten, damagedIds, nameOf, type OnDamage, parsed, type Stored } from "./rot/sound.ts"
import { rowsAnywhere } from "./rot/stray-rows.ts"
import { isSound, type Row, type Value } from "./rot/sums.ts"
import { sound, tableSql } from "./rot/table-sql.ts"
import { spellingsOf } from "./spellings.ts"
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
  ProjectIdentity,
  ProjectRow,
  SourceReport,
  Stats,
  StoredMessage,
  UnitMark,
  UnreadableFile,
  Work,
} from "./store.ts"

const SOUND_MADE = sound("t", "made")
const SOUND_TOUCH = sound("t", "touch")
const SOUND_MESSAGE = sound("m", "message")

const ROW = `select c.*, p.*, u.* from conversation c left join unit u on u.id = c.unit_id
  left join project p on p.id = c.project_id`

const NOT_DAMAGED = "(@damaged = '[]' or c.id not in (select value from json_each(@damaged)))"

const LISTED = `where (@source is null or c.source = @source)
  and (@project is null or instr(lower(p.path), @project) > 0) and (@in_project is null or p.path in (select value from json_each(@in_project)))
  and (@of_source is null or (c.source = @of_source and (c.native_id = @of_id or c.parent_id = @of_id)))
  and (@from is null or c.ended_at >= @from) and (@to is null or c.started_at <= @to)
  and (c.kind = 'document') = (@collection is not null)
  and (@collection is null or substr(c.native_id, 1, length(@collection) + 1) = @collection || '/')
  and (ifnull(p.private, 0) = 0 or p.path in (select value from json_each(@inside))) and ${NOT_DAMAGED}`

type Raw = Record<string, string | number | null>

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
  const stored = db.prepare("select * from unit where source = ? and key = ?").get(source, key) as Stored | undefined
  if (!stored) return undefined
  const { path, stamp, cursor, connector_version, redaction_version, born_at, modified_at, state, raw_withheld } =
    // Where the row itself is damaged, nothing it says of how far it was read can be relied on.
    asWritten(db, "unit", stored, () => {}) ?? { ...stored, cursor: "null", connector_version: 0 }
  const mark = { path, stamp, cursor, connector_version, redaction_version, born_at, modified_at, state }
  return { key, ...(mark as Omit<KnownUnit, "key" | "raw_withheld">), raw_withheld: raw_withheld === 1 }
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
  const unit = db.prepare("select id, blocks from unit where source = ? and key = ?").get(source, unitKey) as
    | { id: number; blocks: number | null }
    | undefined
  if (!unit) return []
  const blocks = rawBlocks(db, unit, kind === "live" ? 0 : 1)
  return blocks.flatMap((block) => {
    const lines = block && readBlock(block.data as Buffer)
    if (!lines && !onlyWhole) throw new DexError("damaged", `What dex kept of ${unitKey} is damaged.`)
    return lines ?? []
  })
}

/** The blocks in order; undefined in place of what is damaged beyond a single bit, or missing. */
function rawBlocks(db: Db, { id, blocks }: { id: number; blocks: number | null }, kind: number): (Row | undefined)[] {
  const stored = db.prepare("select * from raw where unit_id = ? and kind = ? order by seq").all(id, kind) as Stored[]
  const isComplete = blocks === null || blocks === db.prepare(tableSql("raw").countOf).pluck().get(id)
  if (isComplete && stored.every((row) => row.unit_id === id && row.kind === kind && isSound("raw", row))) return stored
  const all = rowsAnywhere(db, "raw", id)
  const own = all.filter((row) => row.kind === kind).sort((a, b) => (a.seq as number) - (b.seq as number))
  return all.length < (blocks ?? stored.length) ? [...own, undefined] : own
}

export function hasWholeRecords(db: Db, source: SourceId, unitKey: string): boolean {
  try {
    for (const kind of ["live", "left"] as const) rawLines(db, source, unitKey, kind, false)
    return true
  } catch (error) {
    if (isDexError(error) && error.code === "damaged") return false
    throw error
  }
}

export function revision(db: Db, historyId: string): string {
  return `${historyId}@${latestChange(db)}`
}

function latestChange(db: Db): number {
  return Number(metaValue(db, "change_seq") ?? 0)
}

/** Undefined where it was never written, or is damaged in its table and in the index that repeats it. */
export function metaValue(db: Db, key: string): string | undefined {
  const row = db.prepare("select key, value, sum from meta where key = ?").get(key) as Stored | undefined
  if (row && isSound("meta", row)) return row.value as string
  const copy = db.prepare("select value from meta indexed by meta_copy where key = ?").pluck().get(key)
  return (copy as string | undefined) ?? (row && (asWritten(db, "meta", row, () => {})?.value as string | undefined))
}

/** As `metaValue`, of what was written as JSON. */
export function metaJson<T>(db: Db, key: string): T | undefined {
  const value = metaValue(db, key)
  return value === undefined ? undefined : (parsed(value) as T | undefined)
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

/** From one name to the next in the table's index: as many steps as there are agents, however many conversations. */
const SOURCES_IN = `with recursive next(source) as (
    select min(source) from conversation
    union all select (select min(source) from conversation where source > next.source) from next where next.source is not null
  ) select source from next where source is not null`

function sourcesIn(db: Db): SourceId[] {
  return db.prepare(SOURCES_IN).pluck().all() as SourceId[]
}

/** Conversations whose id is, or begins with, what was typed. An exact id is never ambiguous. */
export function resolve(db: Db, query: RefQuery, onDamage: OnDamage): ConversationRow[] {
  const sources = query.source === undefined ? sourcesIn(db) : [query.source]
  const exact = db.prepare(`${ROW} where c.source = ? and c.native_id = ?`).expand()
  const found = sources.flatMap((source) => exact.all(source, query.prefix) as Joined[])
  if (found.length > 0) return toRows(db, found, onDamage)
  const prefixed = db.prepare(`${ROW} where c.source = ? and c.native_id >= ? and c.native_id < ? limit 10`).expand()
  const begun = sources.flatMap((source) => prefixed.all(source, query.prefix, `${query.prefix}\u{10ffff}`) as Joined[])
  return toRows(db, begun, onDamage)
}

export function conversation(db: Db, ref: Ref, onDamage: OnDamage): ConversationRow | undefined {
  const sql = `${ROW} where c.source = ? and c.native_id = ?`
  return toRows(db, db.prepare(sql).expand().all(ref.source, ref.id) as Joined[], onDamage)[0]
}

function spellingsAsJson(db: Db, project: string | undefined, platform: NodeJS.Platform): string | null {
  return project === undefined ? null : JSON.stringify(spellingsOf(db, project, platform))
}

/** Newest first; of two that ended together the smaller id first. Without those whose row is damaged. */
export function list(
  db: Db,
  filter: ListFilter,
  onDamage: OnDamage,
  platform = process.platform,
): { rows: ConversationRow[]; total: number; left_out: Partial<Record<Kind, number>> } {
  const values = {
    source: filter.source ?? null,
    project: filter.project?.toLowerCase() ?? null,
    from: filter.from ?? null,
    to: filter.to ?? null,
    inside: spellingsAsJson(db, filter.inside, platform),
    in_project: spellingsAsJson(db, filter.in_project, platform),
    of_source: filter.conversation?.source ?? null,
    of_id: filter.conversation?.id ?? null,
    collection: filter.collection ?? null,
    damaged: "[]", // each row that is shown is looked at; looking at all of them would take longer than listing some
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
    .expand()
    .all({
      ...values,
      kinds: filter.kinds ? `,${filter.kinds.join(",")},` : null,
      limit: filter.limit,
      offset: filter.offset,
    }) as Joined[]
  return {
    rows: toRows(db, rows, onDamage),
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
  const owner = ownerOf(db, ref)
  if (owner === undefined) return []
  const { id } = owner
  const meet = () => onDamage(ref)
  const rows = (numbers ? chosenRows(db, owner, numbers, meet) : rowsOf(db, "message", owner, meet)) as MessageRow[]
  const byChunk = Map.groupBy(rows, (row) => row.chunk)
  const found: { position: number; message: StoredMessage }[] = []
  for (const [chunk, members] of byChunk) {
    const block = db.prepare(BODY_ROW).get(id, chunk) as Stored | undefined
    const isWhole = block !== undefined && isSound("body", block)
    let read = isWhole ? bodiesOf(block.data as Buffer, members) : []
    if (read.length < members.length) {
      meet()
      const right = bodyAnywhere(db, id, chunk, block)
      if (right) read = bodiesOf(right.data as Buffer, members)
    }
    for (const [row, body] of read) found.push({ position: row.position ?? row.number, message: toMessage(row, body) })
  }
  return found.sort((a, b) => a.position - b.position).map(({ message }) => message)
}

const BODY_ROW = "select * from body where conversation_id = ? and chunk = ?"

function bodyAnywhere(db: Db, id: number, chunk: number, block: Stored | undefined): Row | undefined {
  const right = block && correctedRow(db, "body", block)
  if (right?.conversation_id === id && right.chunk === chunk) return right
  return rowsAnywhere(db, "body", id).find((row) => row.chunk === chunk)
}

type Owner = { id: number; held: string | null }

function ownerOf(db: Db, ref: Ref): Owner | undefined {
  const sql = "select id, held from conversation where source = ? and native_id = ?"
  return db.prepare(sql).get(ref.source, ref.id) as Owner | undefined
}

/** The rows of a conversation as they were written, without those that are damaged beyond that. */
function rowsOf(db: Db, table: Exclude<keyof Held, "body">, { id, held }: Owner, onDamage: () => void): Row[] {
  const stored = db.prepare(tableSql(table).allOf).all(id) as Stored[]
  const isComplete = held === null || readHeld(held)[table] === stored.length
  if (isComplete && stored.every((row) => row.conversation_id === id && isSound(table, row))) return stored
  onDamage()
  const right = stored.map((row) => asWritten(db, table, row, onDamage)).filter((row) => row?.conversation_id === id)
  return isComplete && right.length === stored.length ? (right as Row[]) : rowsAnywhere(db, table, id)
}

const MESSAGE_ROW = "select * from message where conversation_id = ? and number = ?"

function chosenRows(db: Db, owner: Owner, numbers: number[], onDamage: () => void): Row[] {
  const get = db.prepare(MESSAGE_ROW)
  const wanted = new Set(numbers)
  const found = [...wanted].flatMap((number) => (get.get(owner.id, number) as Stored | undefined) ?? [])
  if (found.length === wanted.size && found.every((row) => isSound("message", row))) return found
  return rowsOf(db, "message", owner, onDamage).filter((row) => wanted.has(row.number as number))
}

/** Each row with its body, as far as it can be read. A few are looked up one by one; many are decoded at once. */
function bodiesOf(data: Buffer, rows: MessageRow[]): [MessageRow, Body][] {
  const byNumber = new Map(rows.map((row) => [row.number, row]))
  const [first] = rows
  const lines = first && rows.length === 1 ? [lineOfMessage(data, first.number) ?? ""] : (readBlock(data) ?? [])
  return lines.flatMap((line) => {
    const row = byNumber.get(numberOfLine(line))
    const body = row && (parsed(line) as Body | undefined)
    return body ? [[row, body] as [MessageRow, Body]] : []
  })
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

export function versions(db: Db, ref: Ref, onDamage: OnDamage): MessageVersion[] {
  const owner = ownerOf(db, ref)
  const rows = owner ? (rowsOf(db, "message", owner, () => onDamage(ref)) as VersionRow[]) : []
  return rows
    .map(({ number, version, flags }) => ({ number, version, copied: (flags & FLAG.copied) !== 0 }))
    .sort((a, b) => a.number - b.number)
}

type VersionRow = { number: number; version: number; flags: number }

const TOUCHING = `select distinct c.source, c.native_id as id from file f join touch t on t.file_id = f.id join conversation c on c.id = t.conversation_id
  left join project p on p.id = f.project_id`

export function touching(db: Db, file: string, platform = process.platform): Ref[] {
  if (isFolding(platform)) return touchingInAnySpelling(db, file, platform)
  return db
    .prepare(
      `${TOUCHING} where instr(f.path, @file) > 0 or (p.path is not null and instr(p.path || '/' || f.path, @file) > 0)`,
    )
    .all({ file: file.replaceAll("\\", "/") }) as Ref[]
}

function touchingInAnySpelling(db: Db, file: string, platform: NodeJS.Platform): Ref[] {
  const wanted = foldPath(platform === "win32" ? file : file.replaceAll("\\", "/"), platform)
  const all = db.prepare(
    "select f.id, f.path, p.path || '/' || f.path as whole from file f left join project p on p.id = f.project_id",
  )
  const found: number[] = []
  for (const { id, path, whole } of all.iterate() as Iterable<{ id: number; path: string; whole: string | null }>)
    if (foldPath(whole ?? path, platform).includes(wanted)) found.push(id)
  return db.prepare(`${TOUCHING} where f.id in (select value from json_each(?))`).all(JSON.stringify(found)) as Ref[]
}

export function usingModel(db: Db, model: string): Ref[] {
  const sql = "select source, native_id as id from conversation where instr(lower(models), ?) > 0"
  return db.prepare(sql).all(model.toLowerCase()) as Ref[]
}

/** The files it edited first, then the others, each by its first mention. */
export function filesOf(db: Db, ref: Ref, onDamage: OnDamage): string[] {
  const owner = ownerOf(db, ref)
  if (!owner) return []
  const meet = () => onDamage(ref)
  const file = db.prepare("select * from file where id = ?")
  const paths = new Map<Value, string | undefined>()
  const pathOf = (id: Value) => {
    if (!paths.has(id)) {
      const stored = file.get(id) as Stored | undefined
      paths.set(id, stored && (asWritten(db, "file", stored, meet)?.path as string | undefined))
    }
    return paths.get(id)
  }
  const files = new Map<string, boolean>()
  const touches = rowsOf(db, "touch", owner, meet).sort((a, b) => (a.number as number) - (b.number as number))
  for (const { file_id, action } of touches) {
    const path = pathOf(file_id!)
    if (path !== undefined) files.set(path, action === "edited" || files.get(path) === true)
  }
  const named = [...files]
  return [...named.filter(([, edited]) => edited), ...named.filter(([, edited]) => !edited)].map(([path]) => path)
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

export function madeIn(db: Db, ref: Ref, onDamage: OnDamage): MadeRow[] {
  const owner = ownerOf(db, ref)
  const rows = owner ? rowsOf(db, "made", owner, () => onDamage(ref)) : []
  return rows
    .sort((a, b) => (a.number as number) - (b.number as number))
    .map(({ number, kind, name, subject, branch }) => present({ number, kind, name, subject, branch }) as MadeRow)
}

export function commits(
  db: Db,
  { limit, inside }: { limit: number; inside?: string },
  onDamage: OnDamage,
  platform = process.platform,
): CommitRow[] {
  const rows = db
    .prepare(
      `select c.source, c.native_id as id, t.number, t.name as hash, t.subject, m.at
       from made t join message m on m.conversation_id = t.conversation_id and m.number = t.number and not m.flags & @uncounted
       join conversation c on c.id = t.conversation_id left join project p on p.id = c.project_id
       where t.kind = 'commit' and t.subject is not null and (ifnull(p.private, 0) = 0 or p.path in (select value from json_each(@inside)))
         and ${SOUND_MADE} and ${NOT_DAMAGED}
       order by m.at desc nulls last, c.native_id, t.number, t.name limit @limit`,
    )
    .all({
      limit,
      inside: spellingsAsJson(db, inside, platform),
      uncounted: FLAG.superseded | FLAG.copied,
      damaged: damagedIds(db, onDamage),
    }) as (Ref & {
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

const COUNTED = `left join message m on m.conversation_id = t.conversation_id and m.number = t.number
  where t.conversation_id = @id`

export function work(db: Db, refs: Ref[], onDamage: OnDamage): Work[] {
  // What claims to be neither read nor mentioned is looked at: no single bit makes one of those of an edit.
  const edits = db.prepare(
    `with row as materialized (select t.added, t.removed, t.file_id, m.flags, ${SOUND_TOUCH} and m.number is not null and ${SOUND_MESSAGE} as sound
       from touch t ${COUNTED} and t.action not in ('read', 'mentioned'))
     select ifnull(sum(added), 0) as lines_added, ifnull(sum(removed), 0) as lines_removed, count(distinct file_id) as files,
       (select count(*) from row where not sound) as damaged, (select count(*) from touch where conversation_id = @id) as touches
     from row where not flags & @uncounted`,
  )
  const commits = db.prepare(
    `with row as materialized (select t.name, t.kind, m.flags, ${SOUND_MADE} and m.number is not null and ${SOUND_MESSAGE} as sound from made t ${COUNTED})
     select count(distinct name) as commits, (select count(*) from row where not sound) as damaged, (select count(*) from row) as rows
     from row where kind = 'commit' and not flags & @uncounted`,
  )
  return refs.map((ref) => {
    const owner = ownerOf(db, ref)
    if (!owner) return { lines_added: 0, lines_removed: 0, files: 0, commits: 0 }
    const values = { id: owner.id, uncounted: UNCOUNTED }
    const { damaged, touches, ...edited } = edits.get(values) as Edited
    const made = commits.get(values) as { commits: number; damaged: number; rows: number }
    const held = owner.held === null ? { touch: touches, made: made.rows } : readHeld(owner.held)
    const isWhole = damaged + made.damaged === 0 && held.touch === touches && held.made === made.rows
    return isWhole ? { ...edited, commits: made.commits } : workOf(db, owner, () => onDamage(ref))
  })
}

type Edited = Omit<Work, "commits"> & { damaged: number; touches: number }

const UNCOUNTED = FLAG.superseded | FLAG.copied

/** The same, from rows that were looked at one by one. */
function workOf(db: Db, owner: Owner, onDamage: () => void): Work {
  onDamage()
  const counted = new Set(
    rowsOf(db, "message", owner, onDamage)
      .filter(({ flags }) => ((flags as number) & UNCOUNTED) === 0)
      .map(({ number }) => number),
  )
  const isCounted = ({ number }: Row) => counted.has(number!)
  const edited = rowsOf(db, "touch", owner, onDamage).filter((row) => row.action === "edited" && isCounted(row))
  const made = rowsOf(db, "made", owner, onDamage).filter((row) => row.kind === "commit" && isCounted(row))
  const sum = (name: "added" | "removed") =>
    edited.reduce((total, row) => total + ((row[name] as number | null) ?? 0), 0)
  return {
    lines_added: sum("added"),
    lines_removed: sum("removed"),
    files: new Set(edited.map(({ file_id }) => file_id)).size,
    commits: new Set(made.map(({ name }) => name)).size,
  }
}

export function collections(db: Db, onDamage: OnDamage): Collection[] {
  const rows = db.prepare("select * from collection order by name").all() as Stored[]
  return rows.flatMap((stored) => {
    const row = asWritten(db, "collection", stored, () => onDamage(`a collection of documents (${stored.name})`))
    if (!row) return []
    const { sum: _, problems, ...rest } = row
    return [{ ...present(rest), problems: parsed(problems as string) ?? [] } as Collection]
  })
}

export function documentsIn(db: Db, name: string, onDamage: OnDamage) {
  return db
    .prepare(
      `select count(*) as documents, ifnull(sum(message_count), 0) as sections, ifnull(sum(estimated_tokens), 0) as estimated_tokens
       from conversation c where source = 'docs' and native_id >= @name || '/' and native_id < @name || '0' and ${NOT_DAMAGED}`,
    )
    .get({ name, damaged: damagedIds(db, onDamage) }) as {
    documents: number
    sections: number
    estimated_tokens: number
  }
}

export function projects(db: Db, onDamage: OnDamage): ProjectRow[] {
  return toProjects(db, db.prepare("select * from project order by path").all() as Stored[], onDamage)
}

export function busiestProjects(db: Db, limit: number, onDamage: OnDamage): ProjectRow[] {
  const rows = db
    .prepare(
      `select p.* from project p join conversation c on c.project_id = p.id and c.kind not in ('subagent', 'document')
       where ${NOT_DAMAGED} group by p.id order by count(*) desc, p.path limit @limit`,
    )
    .all({ limit, damaged: damagedIds(db, onDamage) }) as Stored[]
  return toProjects(db, rows, onDamage)
}

/** One that is damaged is left out; its conversations are then known to nobody. */
function toProjects(db: Db, rows: Stored[], onDamage: OnDamage): ProjectRow[] {
  return wholeProjects(db, rows, onDamage).map((row) => ({ path: row.path as string, private: row.private === 1 }))
}

function wholeProjects(db: Db, rows: Stored[], onDamage: OnDamage): Row[] {
  return rows
    .map((stored) => asWritten(db, "project", stored, () => onDamage("the list of projects")))
    .filter((row) => row !== undefined)
}

export function projectIdentities(db: Db, onDamage: OnDamage): ProjectIdentity[] {
  const rows = db.prepare("select * from project order by path").all() as Stored[]
  return wholeProjects(db, rows, onDamage).map(({ path, private: hidden, git_remote, root_commit }) => ({
    ...(present({ path, git_remote, root_commit } as Raw) as Omit<ProjectIdentity, "private">),
    private: hidden === 1,
  }))
}

export function stats(db: Db, onDamage: OnDamage): Stats {
  const damaged = damagedIds(db, onDamage)
  const total = db
    .prepare(
      `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, ifnull(sum(estimated_tokens), 0) as estimated_tokens,
         ifnull(sum(text_bytes), 0) as text_bytes, min(started_at) as earliest, max(ended_at) as latest
       from conversation c where kind <> 'document' and ${NOT_DAMAGED}`,
    )
    .get({ damaged }) as Raw
  const counts = (column: "source" | "kind") =>
    Object.fromEntries(
      db
        .prepare(
          `select ${column}, count(*) from conversation c where kind <> 'document' and ${NOT_DAMAGED} group by ${column} order by count(*) desc`,
        )
        .raw()
        .all({ damaged }) as [string, number][],
    )
  return {
    ...(present(total) as Omit<Stats, "sources" | "kinds">),
    sources: counts("source"),
    kinds: counts("kind"),
  }
}

const UNREADABLE = "unreadable:"

export function unreadable(db: Db, source: SourceId): UnreadableFile[] {
  return metaJson<UnreadableFile[]>(db, `${UNREADABLE}${source}`) ?? []
}

/** Those of which a file was read, or could not be. */
function unitSources(db: Db): SourceId[] {
  const sql = `select distinct source from unit where source <> 'docs'
    union select substr(key, length(@prefix) + 1) from meta where key >= @prefix and key < @prefix || char(0x10ffff)`
  return db.prepare(sql).pluck().all({ prefix: UNREADABLE }) as SourceId[]
}

export function sourceReport(db: Db, onDamage: OnDamage): SourceReport[] {
  const damaged = damagedIds(db, onDamage)
  return unitSources(db).flatMap((source) => {
    const stored = db.prepare("select * from unit where source = ?").all(source) as Stored[]
    const units = stored
      .map((row) => asWritten(db, "unit", row, () => onDamage(`the record of ${source} files`)))
      .filter((row) => row !== undefined)
    const unreadableFiles = unreadable(db, source).map(({ path, reason }) => ({ path, reason }))
    if (stored.length === 0 && unreadableFiles.length === 0) return []
    const held = db
      .prepare(
        `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, max(ended_at) as last_at
         from conversation c where source = @source and ${NOT_DAMAGED}`,
      )
      .get({ source, damaged }) as Raw
    const skipped = createCounts()
    const unknown = createCounts()
    const redactions = createCounts()
    const counts = (text: unknown) => Object.entries((parsed(text as string) ?? {}) as Record<string, number>)
    for (const unit of units) {
      for (const { reason } of (parsed(unit.skipped as string) ?? []) as { reason: string }[]) skipped.add(reason)
      for (const [type, n] of counts(unit.unknown)) unknown.add(type, n)
      for (const [rule, n] of counts(unit.redactions)) redactions.add(rule, n)
    }
    return [
      {
        source,
        units: stored.length,
        archived: units.filter((unit) => unit.state === "archived").length,
        ...(present(held) as { conversations: number; messages: number }),
        skipped: skipped.all(),
        unknown: unknown.all(),
        redactions: redactions.all(),
        unreadable: unreadableFiles,
      },
    ]
  })
}

/** A conversation with its project and unit, each as stored; all null where there is none. */
type Joined = { conversation: Stored; project: Stored; unit: Stored }

/** Without those of which the row is damaged, or their project's: nobody knows whether that is private. */
function toRows(db: Db, rows: Joined[], onDamage: OnDamage): ConversationRow[] {
  return rows.flatMap((stored) => {
    const meet = () => onDamage(nameOf(db, stored.conversation))
    const row = asWritten(db, "conversation", stored.conversation, meet)
    if (!row) return []
    // What was joined to a damaged row may be another's.
    const joined = row === stored.conversation ? stored : { ...stored, ...relatedTo(db, row) }
    const project = joined.project.id === null ? {} : asWritten(db, "project", joined.project, meet)
    const unit = joined.unit.id === null ? {} : (asWritten(db, "unit", joined.unit, meet) ?? {})
    const told = project && toRow(row, project, unit, supersededIn(db, row))
    if (project && !told) meet()
    return told ?? []
  })
}

/** How many messages can still be read where none is in the agent's file any more. */
function supersededIn(db: Db, { id, message_count }: Row): number {
  if (message_count !== 0) return 0
  return db.prepare("select count(*) from message where conversation_id = ?").pluck().get(id) as number
}

function relatedTo(db: Db, row: Row): Pick<Joined, "project" | "unit"> {
  const none = { id: null, sum: null }
  return {
    project: (db.prepare("select * from project where id = ?").get(row.project_id) as Stored | undefined) ?? none,
    unit: (db.prepare("select * from unit where id = ?").get(row.unit_id) as Stored | undefined) ?? none,
  }
}

/** Undefined where a row of before there were checksums says what it cannot say. */
function toRow(row: Row, project: Partial<Row>, unit: Partial<Row>, superseded: number): ConversationRow | undefined {
  const cwds = parsed(row.cwds as string)
  const models = parsed(row.models as string)
  const usage = row.usage === null ? null : parsed(row.usage as string)
  if (cwds === undefined || models === undefined || usage === undefined) return undefined
  const parent = row.parent_id === null ? undefined : present({ id: row.parent_id, call_id: row.parent_call_id })
  return present({
    ref: { source: row.source as SourceId, id: row.native_id as string },
    kind: row.kind,
    title: row.title === null ? null : ({ text: row.title, from: row.title_from } as Title),
    project: project.path ?? null,
    private: project.private === 1,
    cwds,
    git_branch: row.git_branch,
    agent_version: row.agent_version,
    parent: parent ?? null,
    fork_of: row.fork_of,
    started_at: row.started_at,
    ended_at: row.ended_at,
    models,
    usage,
    message_count: row.message_count || superseded,
    superseded: superseded > 0,
    copied_count: row.copied_count,
    estimated_tokens: row.estimated_tokens,
    text_bytes: row.text_bytes,
    path: unit.path ?? "",
    archived: unit.state === "archived",
  }) as ConversationRow
}

/** The object without its nulls: in our own data a thing that is not known is not there. */
function present(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null))
}
