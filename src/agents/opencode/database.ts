import { withoutUndefined } from "../../core/defined.ts"
import { array, isRecord, number, parseObject, type RawRecord, record, string } from "../../core/record.ts"
import { type DatabaseSession, taggedRows } from "../kit/database-units.ts"
import { columnsOf, type ForeignDatabase } from "../kit/foreign-sqlite.ts"
import { cutLongTexts, digestOf, digestOfDataUri } from "../kit/messages.ts"

// OpenCode's database. Since 2.0 its sessions are in `session_v2` and their messages in `session_message`. The upgrade
// copies the rows of `session`, `message` and `part` under the same ids, and leaves those tables unchanged.

/** All known tables of OpenCode up to 1.18, of OpenCode 2.0, and of Kilo, a fork of OpenCode 1.x. */
export const OPENCODE_TABLES = [
  ...["session", "message", "part", "session_v2", "session_message", "project", "kv"],
  ...["account", "account_state", "control_account", "credential", "permission", "session_share"],
  ...["event", "event_sequence", "session_entry", "session_input", "session_inbox", "session_pending", "todo"],
  ...["session_context_epoch", "instruction_blob", "instruction_entry", "instruction_state"],
  ...["project_directory", "workspace", "worktree", "data_migration", "migration", "__drizzle_migrations"],
  // A session's first prompt again, for the board of a group of sessions. Its messages, in another table, were never seen.
  "kilo_board",
]

/** The completion time of the upgrade to 2.0, and the ids of the sessions in the newer table. */
export type Upgrade = { completedAt: number; sessions: ReadonlySet<unknown> }

/** Returns undefined if the database was not upgraded completely. */
export function upgradeOf(db: ForeignDatabase): Upgrade | undefined {
  if (!columnsOf(db, "kv").has("time_updated") || !columnsOf(db, "session_v2").has("id")) return undefined
  const [state] = db.all("select value, time_updated from kv where key = 'migration.v1-v2'")
  const completedAt = number(state?.time_updated)
  if (completedAt === undefined || parseObject(string(state?.value) ?? "")?.phase !== "completed") return undefined
  return { completedAt, sessions: new Set(db.all("select id from session_v2").map(({ id }) => id)) }
}

/** Whether a session was deleted in 2.x: it existed at the upgrade but is not in the newer table. */
export function wasSessionDeleted({ completedAt, sessions }: Upgrade, { key, modifiedAt }: DatabaseSession): boolean {
  return modifiedAt <= completedAt && !sessions.has(key.slice(UNIT_PREFIX.length))
}

export const UNIT_PREFIX = "db:"

export function sessionsIn(db: ForeignDatabase): DatabaseSession[] {
  const tables = (["session", "session_v2"] as const).filter((table) => columnsOf(db, table).has("id"))
  if (tables.length === 0)
    throw new Error("there is no session table: this is not OpenCode's database, or dex does not know its format")
  const sessions = new Map<unknown, Required<DatabaseSession>>()
  for (const table of tables) {
    for (const row of db.iterate(SESSION_QUERIES[table])) {
      const existing = sessions.get(row.id)
      const bornAt = number(row.time_created) ?? Number.POSITIVE_INFINITY
      sessions.set(row.id, {
        key: `${UNIT_PREFIX}${row.id}`,
        stamp: existing ? `${existing.stamp}:${row.time_updated}` : String(row.time_updated),
        bytes: 0,
        modifiedAt: Math.max(number(row.time_updated) ?? 0, existing?.modifiedAt ?? 0),
        bornAt: Math.min(bornAt, existing?.bornAt ?? bornAt),
      })
    }
  }
  for (const table of ["message", "part", "session_message"] as const) {
    if (!columnsOf(db, table).has("session_id")) continue
    for (const row of db.iterate(CONTENT_QUERIES[table])) {
      const session = sessions.get(row.id)
      if (!session) continue
      session.stamp += `:${row.count},${row.updated},${row.bytes}`
      session.bytes += number(row.bytes) ?? 0
      session.modifiedAt = Math.max(session.modifiedAt, number(row.updated) ?? 0)
    }
  }
  const upgrade = tables.length === 2 ? upgradeOf(db) : undefined
  const allSessions = [...sessions.values()].map(({ bornAt, ...session }) => ({
    ...session,
    bornAt: Number.isFinite(bornAt) ? bornAt : undefined,
  }))
  return upgrade ? allSessions.filter((session) => !wasSessionDeleted(upgrade, session)) : allSessions
}

const SESSION_QUERIES = {
  session: "select id, time_created, time_updated from session",
  session_v2: "select id, time_created, time_updated from session_v2",
}

/**
 * Queries for the number, time and size of each session's rows. octet_length reads only a row's header; length would read the
 * text.
 */
const CONTENT_QUERIES = {
  message: `select session_id as id, count(*) as count, max(time_updated) as updated, sum(octet_length(data)) as bytes
    from message group by session_id`,
  part: `select session_id as id, count(*) as count, max(time_updated) as updated, sum(octet_length(data)) as bytes
    from part group by session_id`,
  session_message: `select session_id as id, count(*) as count, max(time_updated) as updated,
    sum(octet_length(data)) as bytes from session_message group by session_id`,
}

/** The columns of a session to read. Others contain secrets (share links), permissions and copies of files. */
const SESSION_COLUMNS = [
  ...["id", "project_id", "parent_id", "fork_session_id", "slug", "directory", "title", "version", "agent", "model"],
  ...["revert", "time_created", "time_updated", "time_archived"],
]
const MESSAGE_COLUMNS = ["id", "session_id", "time_created", "time_updated", "data"]

/** Returns the rows of one session from the older and the newer tables. */
export function rowsOfSession(db: ForeignDatabase, id: string): RawRecord[] {
  const sessionFilter = "where session_id = ?"
  const hasSeq = columnsOf(db, "session_message").has("seq")
  const newer = taggedRows(
    db,
    "session_message",
    ["id", "type", "seq", "time_created", "data"],
    hasSeq ? `${sessionFilter} order by seq` : `${sessionFilter} order by time_created, id`,
    id,
  ).map((row, index) => ({ seq: index, ...row }))
  const session = sessionRow(db, id, newer.length > 0)
  if (!session) return []
  return [
    session,
    ...taggedRows(db, "project", ["id", "worktree", "vcs", "name"], "where id = ?", String(session.project_id)),
    ...taggedRows(db, "message", MESSAGE_COLUMNS, `${sessionFilter} order by time_created, id`, id),
    ...taggedRows(db, "part", ["id", "message_id", "session_id", "data"], `${sessionFilter} order by id`, id),
    ...newer,
  ]
}

/** Returns one record for both tables, so that an upgrade changes the record and does not replace it. */
function sessionRow(db: ForeignDatabase, id: string, hasNewerMessages: boolean): RawRecord | undefined {
  const [older] = taggedRows(db, "session", SESSION_COLUMNS, "where id = ?", id)
  const [newer] = taggedRows(db, "session_v2", SESSION_COLUMNS, "where id = ?", id)
  if (!newer || !(hasNewerMessages || !older)) return older
  const completedAt = upgradeOf(db)?.completedAt
  return {
    ...older,
    ...Object.fromEntries(Object.entries(newer).filter(([, value]) => value !== null)),
    table: "session",
    revert: newer.revert ?? null, // the upgrade does not copy a revert
    ...withoutUndefined({ upgraded_at: completedAt }),
  }
}

/** Removes redundant data from a row: provider signatures, copies of files, editor diagnostics, image bytes. */
export function stripOpencode(row: RawRecord): RawRecord {
  const data = record(row.data)
  if (!data) return cutLongTexts(row)
  const stripped =
    row.table === "part" ? stripPart(data) : row.table === "message" ? stripMessage(data) : stripEvent(data)
  return cutLongTexts({ ...row, data: stripped })
}

/** Removes `system` (the system prompt), `tools`, and `summary.diffs` (each changed file before and after the change). */
function stripMessage({ system: _, tools: __, summary, ...rest }: RawRecord): RawRecord {
  if (!isRecord(summary)) return summary === undefined ? rest : { ...rest, summary }
  const { diffs: ___, ...otherFields } = summary
  return { ...rest, summary: otherFields }
}

/** Removes a part's `metadata`, which only the provider needs: signatures, encrypted reasoning. */
function stripPart({ metadata: _, ...part }: RawRecord): RawRecord {
  if (part.type === "file") return withoutBytes(part)
  const state = record(part.state)
  return state ? { ...part, state: stripState(state) } : part
}

function stripState(state: RawRecord): RawRecord {
  const metadata = record(state.metadata)
  return {
    ...state,
    ...withoutUndefined({
      metadata: metadata && stripMetadata(metadata, state.output),
      attachments: Array.isArray(state.attachments) ? eachWithoutBytes(state.attachments) : undefined,
      content: Array.isArray(state.content) ? eachWithoutBytes(state.content) : undefined,
    }),
  }
}

function stripMetadata(metadata: RawRecord, output: unknown): RawRecord {
  const { diagnostics: _, display: __, preview: ___, ...rest } = metadata
  if (isRecord(rest.filediff)) rest.filediff = withoutCopies(rest.filediff)
  if (Array.isArray(rest.files)) rest.files = rest.files.map((file) => (isRecord(file) ? withoutCopies(file) : file))
  if (typeof rest.output === "string" && typeof output === "string" && output.includes(rest.output)) delete rest.output
  return rest
}

function withoutCopies({ before: _, after: __, oldContent: ___, newContent: ____, ...rest }: RawRecord): RawRecord {
  return rest
}

/** Strips a message of the newer tables, which contains its parts. A compaction's `recent` repeats the messages before it. */
function stripEvent({
  native: _,
  providerState: __,
  providerContext: ___,
  recent: ____,
  ...rest
}: RawRecord): RawRecord {
  return {
    ...rest,
    ...withoutUndefined({
      files: Array.isArray(rest.files) ? eachWithoutBytes(rest.files) : undefined,
      content: Array.isArray(rest.content) ? rest.content.map(stripEventPart) : undefined,
    }),
  }
}

function stripEventPart(value: unknown): unknown {
  if (!isRecord(value)) return value
  const { native: _, providerState: __, providerResultState: ___, ...part } = value
  if (part.type !== "tool") {
    const { state: ____, ...rest } = part // `state` is the former name of `native`
    return rest
  }
  const state = record(part.state)
  return state ? { ...part, state: stripState(state) } : part
}

function eachWithoutBytes(values: unknown): unknown[] {
  return array(values).map((value) => (isRecord(value) ? withoutBytes(value) : value))
}

function withoutBytes(file: RawRecord): RawRecord {
  if (typeof file.data === "string")
    return { ...file, data: digestOf(Buffer.from(file.data, "base64"), string(file.mime)) }
  for (const field of ["url", "uri"]) {
    const address = string(file[field])
    const digest = address === undefined ? undefined : digestOfDataUri(address)
    if (digest) return { ...file, [field]: digest }
  }
  return file
}
