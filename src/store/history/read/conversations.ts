import { CONVERSATION_KINDS, type Kind, type SourceId } from "../../../core/conversation.ts"
import { conversationRefOf, formatRef, type Ref, type RefQuery, sourceWithOwner } from "../../../core/ref.ts"
import type { Usage } from "../../../core/usage.ts"
import type { Db } from "../../sqlite/database.ts"
import { joinQuery, rowQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { marksOf } from "../marks.ts"
import { conversationRef, intactRow, type OnDamage, tryParseJson } from "../rot/checked-rows.ts"
import type { ConversationRow, ConversationSpan, ListFilter, Marks } from "../store.ts"
import { type RowIn, TABLES } from "../tables.ts"
import { ENDED_AT, isImportedKey, NOT_DAMAGED, NOT_IMPORTED, STARTED_AT, spellingsAsJson, validTime } from "./rows.ts"

const SELECT_JOINED = `select c.*, p.*, u.* from conversation c left join unit u on u.id = c.unit_id
  left join project p on p.id = c.project_id`

const LISTED_CONDITION = `where (@source is null or c.source = @source)
  and (@named is null or c.project_id in (select value from json_each(@named))) and (@in_project is null or p.path in (select value from json_each(@in_project)))
  and (@of_source is null or (c.source = @of_source and (c.native_id = @of_id or c.parent_id = @of_id)))
  and (@among is null or c.source || ':' || c.native_id in (select value from json_each(@among)))
  and (@from is null or c.ended_at >= @from) and (@to is null or c.started_at <= @to)
  and (c.kind = 'document') = (@collections is not null)
  and (@collections is null or substr(c.native_id, 1, instr(c.native_id, '/') - 1) in (select value from json_each(@collections)))
  and (ifnull(p.private, 0) = 0 or p.path in (select value from json_each(@inside))) and ${NOT_DAMAGED}`

const KIND_CONDITION = "(@kinds is null or instr(@kinds, ',' || c.kind || ',') > 0)"

/** Steps through the index from one source to the next. The cost depends on the number of agents, not of conversations. */
const SELECT_SOURCES = `with recursive next(source) as (
    select min(source) from conversation
    union all select (select min(source) from conversation where source > next.source) from next where next.source is not null
  ) select source from next where source is not null`

function sourcesIn(db: Db): SourceId[] {
  return valueQuery(db, SELECT_SOURCES, "text").all()
}

/**
 * Returns the conversations whose id equals the input or begins with it, except those of the projects in `except`. If an id
 * equals the input, longer ids are not returned.
 */
export function findConversations(
  db: Db,
  query: RefQuery,
  onDamage: OnDamage,
  except: readonly string[] = [],
): ConversationRow[] {
  const { owner, source } = query
  const sources = source === undefined ? sourcesIn(db) : [sourceWithOwner({ owner, source })]
  const excludedPaths = JSON.stringify(except)
  const exactQuery = queryJoined(db, `where c.source = ? and c.native_id = ? and ${NOT_EXCLUDED}`)
  const exactMatches = sources.flatMap((source) => exactQuery.all(source, query.prefix, excludedPaths))
  if (exactMatches.length > 0) return toRows(db, exactMatches, onDamage)
  const prefixQuery = queryJoined(
    db,
    `where c.source = ? and c.native_id >= ? and c.native_id < ? and ${NOT_EXCLUDED} limit 10`,
  )
  const matching = sources.flatMap((source) =>
    prefixQuery.all(source, query.prefix, `${query.prefix}\u{10ffff}`, excludedPaths),
  )
  return toRows(db, matching, onDamage)
}

const NOT_EXCLUDED = "(p.path is null or p.path not in (select value from json_each(?)))"

/**
 * Returns the conversations of these projects. Does not check their rows for damage, because callers only exclude these
 * conversations.
 */
export function conversationsIn(db: Db, projects: readonly string[]): Ref[] {
  return rowQuery(
    db,
    `select c.source, c.native_id as id from project p join conversation c on c.project_id = p.id
       where p.path in (select value from json_each(?))`,
    { source: "text", id: "text" },
  ).all(JSON.stringify(projects))
}

export function loadConversation(db: Db, ref: Ref, onDamage: OnDamage): ConversationRow | undefined {
  const rows = queryJoined(db, "where c.source = ? and c.native_id = ?").all(sourceWithOwner(ref), ref.id)
  const [row] = toRows(db, rows, onDamage)
  const projectId = rows[0]?.project.id ?? null
  if (!row || projectId === null) return row
  const folders = valueQuery(db, "select path from project_path where project_id = ?", "text").all(projectId)
  return folders.length === 0 ? row : { ...row, folders }
}

export function readTitles(db: Db, refs: Ref[]): string[] {
  const selectTitle = valueQuery(db, "select title from conversation where source = ? and native_id = ?", "text?")
  return refs.map((ref) => {
    const source = sourceWithOwner(ref)
    return marksOf(db, source, ref.id).title ?? selectTitle.get(source, ref.id) ?? ""
  })
}

/** Lists conversations, newest first; ties are sorted by id. Conversations with a damaged row are left out. */
export function listConversations(
  db: Db,
  filter: ListFilter,
  onDamage: OnDamage,
  platform = process.platform,
): { rows: ConversationRow[]; total: number; left_out: Partial<Record<Kind, number>> } {
  const values = parametersOf(db, filter, platform)
  const counts = rowQuery(
    db,
    `select c.kind, count(*) as n from conversation c left join project p on p.id = c.project_id ${LISTED_CONDITION} group by c.kind`,
    { kind: CONVERSATION_KINDS, n: "integer" },
  ).all(values)
  const isSelected = (kind: Kind) => filter.kinds === undefined || filter.kinds.includes(kind)
  const rows = queryJoined(
    db,
    `${LISTED_CONDITION} and ${KIND_CONDITION} order by c.ended_at desc nulls last, c.native_id limit @limit offset @offset`,
  ).all({ ...values, kinds: kindsAsText(filter), limit: filter.limit, offset: filter.offset })
  return {
    rows: toRows(db, rows, onDamage),
    total: counts.filter(({ kind }) => isSelected(kind)).reduce((sum, { n }) => sum + n, 0),
    left_out: Object.fromEntries(counts.filter(({ kind }) => !isSelected(kind)).map(({ kind, n }) => [kind, n])),
  }
}

/** Returns the agent, project, start and end of the conversations that a listing would show, without loading their other data. */
export function conversationSpans(
  db: Db,
  filter: Pick<ListFilter, "kinds" | "among" | "inside">,
  platform = process.platform,
): ConversationSpan[] {
  const rows = rowQuery(
    db,
    `select c.source, p.path as project, ${STARTED_AT} as started_at, ${ENDED_AT} as ended_at
     from conversation c
     left join project p on p.id = c.project_id ${LISTED_CONDITION} and ${KIND_CONDITION}`,
    { source: "text", project: "text?", started_at: "integer?", ended_at: "integer?" },
  ).all({ ...parametersOf(db, filter, platform), kinds: kindsAsText(filter) })
  return rows.map(({ source, project, started_at, ended_at }) => ({
    source,
    project: project ?? undefined,
    started_at: started_at ?? undefined,
    ended_at: ended_at ?? undefined,
  }))
}

function kindsAsText({ kinds }: Pick<ListFilter, "kinds">): string | null {
  return kinds ? `,${kinds.join(",")},` : null
}

function parametersOf(db: Db, filter: Omit<ListFilter, "limit" | "offset">, platform: NodeJS.Platform) {
  return {
    source: filter.source ?? null,
    named: filter.project === undefined ? null : JSON.stringify(projectsNamed(db, filter.project)),
    from: filter.from ?? null,
    to: filter.to ?? null,
    inside: spellingsAsJson(db, filter.inside, platform),
    in_project: spellingsAsJson(db, filter.in_project, platform),
    of_source: filter.conversation ? sourceWithOwner(filter.conversation) : null,
    of_id: filter.conversation?.id ?? null,
    among: filter.among ? JSON.stringify(filter.among.map((ref) => formatRef(conversationRefOf(ref)))) : null,
    collections: filter.collections ? JSON.stringify(filter.collections) : null,
    damaged: "[]", // checking all rows takes longer than listing some, so `toRows` checks those that are listed
  }
}

/** Returns the ids of the projects of which a folder or a remote contains this text. */
function projectsNamed(db: Db, typed: string): number[] {
  return valueQuery(
    db,
    `select id from project where instr(lower(path), @typed) > 0 or instr(lower(ifnull(remotes, '')), @typed) > 0
     union select project_id from project_path where instr(lower(path), @typed) > 0`,
    "integer",
  ).all({ typed: typed.toLowerCase() })
}

export function conversationsUsingModel(db: Db, model: string): Ref[] {
  const sql = "select source, native_id as id from conversation where instr(lower(models), ?) > 0"
  return rowQuery(db, sql, { source: "text", id: "text" }).all(model.toLowerCase())
}

/** Also those that a file no longer contains: they have no current messages. */
export function conversationsKeptOnlyHere(db: Db): Ref[] {
  const sql = `select c.source, c.native_id as id from conversation c join unit u on u.id = c.unit_id
    where (u.state = 'archived' or (c.message_count = 0 and c.last_number > 0)) and ${NOT_IMPORTED}`
  return rowQuery(db, sql, { source: "text", id: "text" }).all()
}

/** Queries conversations with their project and unit. The columns of a missing project or unit are null. */
function queryJoined(db: Db, condition: string) {
  const { conversation, project, unit } = TABLES
  return joinQuery(db, `${SELECT_JOINED} ${condition}`, { conversation }, { project, unit })
}
type Joined = ReturnType<ReturnType<typeof queryJoined>["all"]>[number]

/** Leaves out conversations with a damaged row or a damaged project row, because such a project may be private. */
function toRows(db: Db, rows: Joined[], onDamage: OnDamage): ConversationRow[] {
  return rows.flatMap((stored) => {
    const reportDamage = () => onDamage(conversationRef(db, stored.conversation))
    const row = intactRow(db, "conversation", stored.conversation, reportDamage)
    if (!row) return []
    const project = stored.project.id === null ? NO_PROJECT : intactRow(db, "project", stored.project, reportDamage)
    const unit = stored.unit.id === null ? undefined : intactRow(db, "unit", stored.unit, reportDamage)
    const complete =
      project && toRow(row, project, unit, supersededCount(db, row), marksOf(db, row.source, row.native_id))
    if (project && !complete) reportDamage()
    return complete ?? []
  })
}

/** Returns the number of stored messages if the agent's file no longer contains any, otherwise 0. */
function supersededCount(db: Db, { id, message_count }: RowIn<"conversation">): number {
  if (message_count !== 0) return 0
  return valueQuery(db, "select count(*) from message where conversation_id = ?", "integer").get(id)!
}

const NO_PROJECT = { path: undefined, private: 0 }

/** Returns undefined if a column with JSON cannot be parsed, which is possible only in a row without a checksum. */
function toRow(
  row: RowIn<"conversation">,
  project: { path: string | undefined; private: number },
  unit: RowIn<"unit"> | undefined,
  superseded: number,
  marks: Marks,
): ConversationRow | undefined {
  const cwds = tryParseJson(row.cwds)
  const models = tryParseJson(row.models)
  const usage = row.usage === null ? null : tryParseJson(row.usage)
  if (cwds === undefined || models === undefined || usage === undefined) return undefined
  const { title, title_from, parent_id, parent_call_id } = row
  const recordedTitle = title === null || title_from === null ? undefined : { text: title, from: title_from }
  return {
    ref: { source: row.source, id: row.native_id },
    kind: row.kind,
    title: recordedTitle,
    ...(marks.title !== undefined && {
      title: { text: marks.title, from: "person" as const },
      recorded_title: recordedTitle ?? null,
    }),
    ...(marks.tags.length > 0 && { tags: marks.tags }),
    project: project.path,
    private: project.private === 1,
    cwds: cwds as string[],
    git_branch: row.git_branch ?? undefined,
    agent_version: row.agent_version ?? undefined,
    parent: parent_id === null ? undefined : { id: parent_id, call_id: parent_call_id ?? undefined },
    fork_of: row.fork_of ?? undefined,
    started_at: validTime(row.started_at) ?? undefined,
    ended_at: validTime(row.ended_at) ?? undefined,
    models: models as string[],
    usage: (usage ?? undefined) as Usage | undefined,
    message_count: row.message_count || superseded,
    superseded: superseded > 0,
    copied_count: row.copied_count,
    estimated_tokens: row.estimated_tokens,
    text_bytes: row.text_bytes,
    path: unit?.path ?? "",
    archived: unit?.state === "archived",
    imported_from: unit && importedFrom(unit),
  }
}

/** Matches the folder of a user on macOS, Linux and Windows. */
const HOME_OF = /^(?:\/Users\/|\/home\/|[a-z]:\\Users\\)([^/\\]+)[/\\]/i

/** The person from whose history a unit was imported, by the name of their home folder. */
function importedFrom({ key, path }: RowIn<"unit">): string | undefined {
  return isImportedKey(key) ? (HOME_OF.exec(path)?.[1] ?? "another machine") : undefined
}
