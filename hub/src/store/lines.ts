import { sourceWithOwner } from "../../../src/core/ref.ts"
import { evidenceDeadline, MAX_SILENCE_SECONDS } from "../../../src/learn/blame/evidence.ts"
import { baseNameOf, type LineQueries } from "../../../src/learn/blame/facts.ts"
import type { LinesRequest } from "../../../src/learn/blame/lines-about.ts"
import { linesOfConversation } from "../../../src/learn/blame/lines-in.ts"
import { LEARNER_VERSION } from "../../../src/learn/outdated.ts"
import type {
  EditWrite,
  LineEdit,
  LinesWrite,
  LineWorker,
  RanCommit,
  RanCommitWrite,
} from "../../../src/store/knowledge/lines.ts"
import { type Database, databaseUnavailable, type Query, type Viewer } from "./connection.ts"
import { feeds } from "./feeds.ts"
import type { TenantKey } from "./keyring.ts"
import { seal, unseal } from "./keys.ts"
import { beginReading, openHubHistory, type SealedTitle, unsealTitle } from "./reader.ts"
import { MEMBER_SCOPE, TENANT, TENANT_SCOPE } from "./scope.ts"
import { SEAL_PURPOSES } from "./sealed.ts"
import { TITLE_COLUMNS } from "./statements.ts"
import { tenantKeyOf } from "./tenant.ts"

// PostgreSQL finds the rows by keyed hashes of paths, file names, and hashes and subjects of commits. Everything else in them is
// sealed with the conversation's key. They are derived from conversations, and can be derived again at any time.

/** The edits of one file by one conversation. Packed, they are a number of four bytes for each line behind a short description. */
type EditsOfFile = { path: string; edits: Pick<LineEdit, "number" | "at" | "added" | "removed">[] }
type PackedDescription = { path: string; edits: [number: number, at: number, added: number, removed: number][] }

function packEdits({ path, edits }: { path: string; edits: EditWrite[] }): Buffer {
  const description: PackedDescription = {
    path,
    edits: edits.map(({ number, at, added, removed }) => [number, at, added.length, removed.length]),
  }
  const text = Buffer.from(JSON.stringify(description))
  const keys = edits.flatMap(({ added, removed }) => [packNumbers(added), packNumbers(removed)])
  return Buffer.concat([packNumbers([text.length]), text, ...keys])
}

function unpackEdits(packed: Buffer): EditsOfFile {
  const [length] = unpackNumbers(packed.subarray(0, 4))
  let read = 4 + length!
  const { path, edits } = JSON.parse(packed.toString("utf8", 4, read)) as PackedDescription
  const next = (count: number) => {
    const from = read
    read += 4 * count
    return unpackNumbers(packed.subarray(from, read))
  }
  return {
    path,
    edits: edits.map(([number, at, added, removed]) => ({ number, at, added: next(added), removed: next(removed) })),
  }
}

function packNumbers(numbers: number[]): Buffer {
  return Buffer.from(Uint32Array.from(numbers).buffer)
}

function unpackNumbers(bytes: Buffer): Uint32Array {
  // Copied, because four-byte numbers must be aligned.
  return new Uint32Array(Uint8Array.from(bytes).buffer)
}

/** Git prints at least this many characters of a commit's hash. */
const HASH_LENGTH = 7

/** How a path, the last part of a path, and a commit are called in keyed hashes. */
const pathName = (path: string) => `path ${path}`
const fileName = (path: string) => `name ${baseNameOf(path)}`
const hashName = (hash: string) => `hash ${hash.slice(0, HASH_LENGTH)}`
const subjectName = (subject: string) => `subject ${subject}`

/** The rows that may matter for a request, from the conversations in `scope`. */
export async function linesAbout(
  db: Database,
  viewer: Viewer,
  { project: key, commits, paths, sessions }: LinesRequest,
  scope = MEMBER_SCOPE,
): Promise<LineQueries> {
  const sql = lineStatements(scope)
  return db.as(viewer, async (query) => {
    // PostgreSQL cannot store NUL in a text.
    const [found] = key.includes("\0") ? [] : await query<{ id: number }>(SELECT_PROJECT, [key])
    if (!found) return NO_LINES
    const project = found.id
    const tenant = await tenantKeyOf(db, query)
    const namesOf = (plainNames: string[]) =>
      [...new Set(plainNames)].map((plainName) => tenant.lineName(project, plainName))
    const keyOf = keysOf(tenant)
    const unsealed = (row: KeyedRow, sealed: Buffer, purpose: "edits" | "commit" | "activity") =>
      unseal(keyOf(row), sealed, `${SEAL_PURPOSES[purpose]} ${row.id}`)
    const files = new Map<string, FileEdits>()
    const readFiles = async (statement: string, names: Buffer[]) => {
      if (names.length === 0) return
      for (const row of await query<FileRow>(statement, [project, names])) {
        const file = unpackEdits(unsealed(row, row.edits, "edits"))
        files.set(`${row.id} ${file.path}`, { id: row.id, ...file })
      }
    }
    await readFiles(sql.FILES_BY_PATH, namesOf(paths.map(({ path }) => pathName(path))))
    const firstEdits = new Map<string, number>()
    for (const { path, edits } of files.values())
      for (const { at } of edits) firstEdits.set(path, Math.min(at, firstEdits.get(path) ?? at))
    const unknownPaths = paths.filter(({ path, until }) => !((firstEdits.get(path) ?? Infinity) <= until))
    await readFiles(sql.FILES_BY_NAME, namesOf(unknownPaths.map(({ path }) => fileName(path))))
    const hashes = namesOf(commits.map(({ hash }) => hashName(hash)))
    const subjects = namesOf(commits.map(({ subject }) => subjectName(subject)))
    const runs = (await query<CommitRow>(sql.COMMITS, [project, hashes, subjects])).map((row) => ({
      id: row.id,
      ...(JSON.parse(unsealed(row, row.made, "commit").toString("utf8")) as RanCommitWrite),
    }))
    const workers = new Map<number, WorkerRow>()
    let added = await query<WorkerRow>(sql.WORKERS, [
      project,
      [...new Set([...files.values(), ...runs].map(({ id }) => id))],
      `{${commits.map(periodBefore).join()}}`,
      // A session's name may be longer than any conversation's id: some have a date and a hyphen before it.
      sessions.map((session) => session.slice(-MAX_ID_LENGTH - 1)).filter((session) => !session.includes("\0")),
    ])
    while (added.length > 0) {
      for (const row of added) workers.set(row.id, row)
      const columns = [added.map(({ author }) => author), added.map(({ source }) => source)]
      const names = [added.map(({ native_id }) => native_id), added.map(({ parent_id }) => parent_id)]
      const related = await query<WorkerRow>(sql.RELATED_WORKERS, [project, ...columns, ...names])
      added = related.filter(({ id }) => !workers.has(id))
    }
    const rows = [...workers.values()].sort((a, b) => a.id - b.id)
    return inOneAnswer(
      rows.map((row) => ({
        ...row,
        seconds: unpackNumbers(unsealed(row, row.activity, "activity")),
        text: unsealTitle(keyOf(row), row),
      })),
      [...files.values()],
      runs,
    )
  })
}

/** The period in which a conversation must have a message to be a candidate for a commit whose files it did not edit. */
function periodBefore(commit: LinesRequest["commits"][number]): string {
  const until = evidenceDeadline(commit)
  // The times of conversations are rounded down to seconds before they are compared.
  return `[${until - (MAX_SILENCE_SECONDS + 1) * 1000},${until + 1000}]`
}

/** The longest id of a conversation, in characters. */
const MAX_ID_LENGTH = 1000

const NO_LINES: LineQueries = {
  lineWorkers: () => [],
  lineFiles: () => [],
  editsOfFiles: () => [],
  ranCommits: () => [],
}

type KeyedRow = { id: number; wrapped: Buffer }
type FileRow = KeyedRow & { edits: Buffer }
type CommitRow = KeyedRow & { made: Buffer }
type WorkerRow = KeyedRow &
  SealedTitle & {
    author: number
    owner: string
    source: string
    native_id: string
    parent_id: string | null
    started_at: number | null
    activity: Buffer
  }
type FileEdits = EditsOfFile & { id: number }

/** Unwraps the key of each conversation once. */
function keysOf(tenant: TenantKey) {
  const keys = new Map<number, Buffer>()
  return ({ id, wrapped }: KeyedRow): Buffer => {
    const key = keys.get(id) ?? tenant.conversationKey(wrapped)
    keys.set(id, key)
    return key
  }
}

/** Numbers conversations and files within the answer, because PostgreSQL's numbers reveal how many others there are. */
function inOneAnswer(
  rows: (WorkerRow & { seconds: Uint32Array; text: string })[],
  filesOfAll: FileEdits[],
  runsOfAll: (RanCommitWrite & { id: number })[],
): LineQueries {
  const conversations = new Map(rows.map(({ id }, i) => [id, i + 1]))
  const isKnown = ({ id }: { id: number }) => conversations.has(id)
  const edited = filesOfAll.filter(isKnown).sort((a, b) => a.id - b.id)
  const files = new Map([...new Set(edited.map(({ path }) => path))].map((path, i) => [path, i + 1]))
  const edits = edited
    .flatMap(({ id, path, edits: editsOfFile }) =>
      editsOfFile.map((edit): LineEdit => ({ ...edit, conversation: conversations.get(id)!, file: files.get(path)! })),
    )
    .sort((a, b) => a.at - b.at)
  const workers = rows.map(
    ({ id, owner, source, native_id, parent_id, started_at, seconds, text }, i): LineWorker => ({
      conversation: i + 1,
      name: String(id),
      source: sourceWithOwner({ owner, source }),
      id: native_id,
      belongs_to: parent_id ?? native_id,
      ...(text !== "" && { title: text }),
      ...(started_at !== null && { started_at }),
      said: seconds,
    }),
  )
  const runs = runsOfAll
    .filter(isKnown)
    .map(({ id, ...run }): RanCommit => ({ ...run, conversation: conversations.get(id)! }))
    .sort((a, b) => a.at - b.at || a.conversation - b.conversation)
  return {
    lineWorkers: () => workers,
    lineFiles: () => [...files].map(([path, file]) => ({ file, path })),
    editsOfFiles: (wanted) => {
      const wantedFiles = new Set(wanted)
      return edits.filter(({ file }) => wantedFiles.has(file))
    },
    ranCommits: () => runs,
  }
}

const SELECT_PROJECT = `select id from hub.project where tenant = ${TENANT} and key = $1`

/** The queries for the lines of conversations in a scope. */
function lineStatements(SCOPE: string) {
  const VISIBLE = `(select * from hub.conversation where ${SCOPE})`
  const OF_ROW = `join ${VISIBLE} c on c.tenant = l.tenant and c.id = l.conversation
    join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
    where l.tenant = ${TENANT} and c.project = $1`
  const WORKER_COLUMNS = `c.id, k.wrapped, c.author, m.name as owner, c.source, c.native_id, c.parent_id, c.started_at, l.activity, ${TITLE_COLUMNS}`
  const WITH_ACTIVITY = `join hub.line_work l on l.tenant = c.tenant and l.conversation = c.id
    join hub.member m on m.tenant = c.tenant and m.id = c.author
    join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id`
  const FILES = `select c.id, k.wrapped, l.edits from hub.line_file l ${OF_ROW}`
  return {
    FILES_BY_PATH: `${FILES} and l.path = any ($2)`,
    FILES_BY_NAME: `${FILES} and l.name = any ($2)`,
    COMMITS: `select c.id, k.wrapped, l.made from hub.line_commit l ${OF_ROW} and (l.hash = any ($2) or l.subject = any ($3))`,
    /** The conversations with these ids ($2), those with messages in these periods ($3), and those of sessions ($4). */
    WORKERS: `select ${WORKER_COLUMNS} from ${VISIBLE} c ${WITH_ACTIVITY} where c.project = $1 and (c.id = any ($2)
      or (c.last_at is not null and int8range(c.first_at, c.last_at, '[]') && $3::int8multirange)
      or ($4::text[] <> '{}' and exists (select from unnest($4::text[]) as one (session)
        where one.session = c.native_id or right(one.session, length(c.native_id) + 1) = '-' || c.native_id)))`,
    /** The conversations that started these, and that these started. They are named by author ($2), source, id and starter. */
    RELATED_WORKERS: `select ${WORKER_COLUMNS} from unnest($2::int[], $3::text[], $4::text[], $5::text[]) as one (author, source, native_id, parent_id)
      cross join lateral (
        select * from ${VISIBLE} starter where tenant = ${TENANT} and author = one.author and source = one.source
          and native_id = one.parent_id and project = $1
        union all
        select * from ${VISIBLE} started where tenant = ${TENANT} and author = one.author and source = one.source
          and parent_id = one.native_id and project = $1) c ${WITH_ACTIVITY}`,
  }
}

/** The number of conversations of a tenant that are looked up together. */
const BATCH_SIZE = 50
/** The first number of the locks that let only one hub at a time derive the lines of a conversation. */
const LOCK = 7_238_454

const IS_DUE = `c.tenant = ${TENANT} and c.rev > 0 and c.quarantined_at is null
  and (case when c.lines_rev = c.rev then c.lines_version else 0 end) < $1`
const SELECT_DUE = `select c.id, c.rev from hub.conversation c
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
  where ${IS_DUE} and (c.id, c.rev) not in (select * from unnest($2::bigint[], $3::bigint[])) limit $4`
/** An id may be larger than the second number of a lock can be. */
const TRY_LOCK = "select pg_try_advisory_xact_lock($1, ($2::bigint % 2147483647)::int) as locked"
const SELECT_IF_DUE = `select c.id, c.rev, c.project, c.source, c.native_id, m.name as owner, k.wrapped from hub.conversation c
  join hub.member m on m.tenant = c.tenant and m.id = c.author
  join hub_key.conversation_key k on k.tenant = c.tenant and k.conversation = c.id
  where ${IS_DUE} and c.id = $2`
const SAVE_LINES = "select hub.save_lines($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) as saved"

type DueConversation = { id: number; rev: number }
type LockedConversation = DueConversation & {
  project: number
  source: string
  native_id: string
  owner: string
  wrapped: Buffer
}

export type LineDeriver = {
  /**
   * Derives the lines of conversations that changed since theirs were derived, until the deadline. Returns true if nothing is left
   * to do here. Throws if the lines of a conversation cannot be derived; it is not tried again until it changes or the hub restarts.
   */
  step(deadline: number): Promise<boolean>
}

/** Derives the lines of all tenants. Other hubs may do the same at the same time. */
export function createLineDeriver(db: Database): LineDeriver {
  const failed: DueConversation[] = []
  const complete = new Map<number, string>()
  const stepOf = async (tenant: number, position: string, deadline: number): Promise<boolean> => {
    for (;;) {
      const except = [failed.map(({ id }) => id), failed.map(({ rev }) => rev)]
      const due = await db.asIndex(tenant, (query) =>
        query<DueConversation>(SELECT_DUE, [LEARNER_VERSION, ...except, BATCH_SIZE]),
      )
      let derived = 0
      for (const one of due) {
        if (Date.now() > deadline) return false
        try {
          if (await db.asIndex(tenant, (query) => deriveLines(db, query, one.id))) derived++
        } catch (error) {
          if (!databaseUnavailable(error)) failed.push(one)
          throw error
        }
      }
      if (due.length === 0) complete.set(tenant, position)
      // If none was derived, other hubs are doing what is left.
      if (derived === 0) return true
    }
  }
  return {
    step: async (deadline) => {
      let isDone = true
      for (const { tenant, position } of await feeds(db))
        if (complete.get(tenant) !== position) isDone = (await stepOf(tenant, position, deadline)) && isDone
      return isDone
    },
  }
}

/** Returns false if another hub is doing it, or if the conversation has changed meanwhile. */
async function deriveLines(db: Database, query: Query, id: number): Promise<boolean> {
  const [lock] = await query<{ locked: boolean }>(TRY_LOCK, [LOCK, id])
  const [due] = lock!.locked ? await query<LockedConversation>(SELECT_IF_DUE, [LEARNER_VERSION, id]) : []
  if (!due) return false
  const tenant = await tenantKeyOf(db, query)
  const transaction = beginReading(query, tenant)
  const history = openHubHistory((work) => work(transaction), { scope: TENANT_SCOPE })
  const row = await history.conversation({ owner: due.owner, source: due.source, id: due.native_id })
  if (!row) return false
  const isWork = row.kind !== "document" && row.kind !== "dex"
  const messages = isWork ? await history.messages(row.ref) : []
  const own = messages.filter((message) => !message.superseded && !message.copied)
  const values = isWork ? sealedLines(linesOfConversation(row, own), due, tenant) : [null, [], [], [], [], [], []]
  // If the conversation has another revision by now, its messages may be of that one, and nothing is saved.
  const [saved] = await query<{ saved: boolean }>(SAVE_LINES, [id, due.rev, LEARNER_VERSION, ...values])
  return saved!.saved
}

/** The values of a conversation's rows: its activity, three lists for its files, and three for its commits. */
function sealedLines(
  { said: seconds, edits, commits }: LinesWrite,
  { id, project, wrapped }: LockedConversation,
  tenant: TenantKey,
): unknown[] {
  const key = tenant.conversationKey(wrapped)
  const nameOf = (plainName: string) => tenant.lineName(project, plainName)
  const files = [...Map.groupBy(edits, ({ path }) => path)].map(([path, editsOfFile]) => ({ path, edits: editsOfFile }))
  return [
    seal(key, packNumbers(seconds), `${SEAL_PURPOSES.activity} ${id}`),
    files.map(({ path }) => nameOf(pathName(path))),
    files.map(({ path }) => nameOf(fileName(path))),
    files.map((file) => seal(key, packEdits(file), `${SEAL_PURPOSES.edits} ${id}`)),
    commits.map(({ hash }) => nameOf(hashName(hash))),
    commits.map(({ subject }) => nameOf(subjectName(subject))),
    commits.map((commit) => seal(key, Buffer.from(JSON.stringify(commit)), `${SEAL_PURPOSES.commit} ${id}`)),
  ]
}
