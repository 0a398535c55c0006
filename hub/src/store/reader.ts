import { isAbsolute } from "node:path"
import type { Effect, Kind } from "../../../src/core/conversation.ts"
import { formatRef, type Ref, type RefQuery } from "../../../src/core/ref.ts"
import { chunkLines, type WireMessage } from "../../../src/hub-client/wire.ts"
import type {
  CommitRow,
  ConversationAccess,
  ConversationRow,
  HistoryReader,
  ListFilter,
  MadeRow,
  StoredMessage,
  Work,
} from "../../../src/store/history/store.ts"
import type { Query } from "./connection.ts"
import { includedNumber, positionIn } from "./feeds.ts"
import type { TenantKey } from "./keyring.ts"
import { unseal } from "./keys.ts"
import { TENANT } from "./scope.ts"
import { type MessageFacts, SEAL_PURPOSES, type SealedHead, unsealJson } from "./sealed.ts"
import { type Statements, statementsIn } from "./statements.ts"

/** One transaction, and a cache of what was read in it. Its queries return only what the access checks allow. */
export type Transaction = {
  query: Query
  tenant: TenantKey
  rows: Map<string, Row>
  heads: Map<number, SealedHead>
  /** The lines of a chunk, one message each. */
  chunks: Map<string, string[]>
  facts: Map<number, MessageFacts[]>
  projects?: Promise<{ key: string }[]>
}
export type RunInTransaction = <T>(work: (transaction: Transaction) => Promise<T>) => Promise<T>

export function beginReading(query: Query, tenant: TenantKey): Transaction {
  return { query, tenant, rows: new Map(), heads: new Map(), chunks: new Map(), facts: new Map() }
}

export type ReaderOptions = {
  /** The member whose conversations are named without an owner. */
  self?: string
  /** The condition for the conversations to read: the access check before row-level security. */
  scope: string
}

/** A tenant's conversations: those that one person may read, or all of them, for the tenant's index. */
export function openHubHistory(inTransaction: RunInTransaction, { self, scope }: ReaderOptions): HistoryReader {
  const sql = statementsIn(scope)
  const refOf = ({ owner, source, native_id }: ConversationName): Ref =>
    owner === self ? { source, id: native_id } : { owner, source, id: native_id }
  const rowOf = (row: Row, transaction: Transaction): ConversationRow =>
    toRow(row, refOf(row), headOf(row, transaction))
  const findRow = async (transaction: Transaction, ref: Ref): Promise<Row | undefined> =>
    (await findRows(sql, transaction, [ref], self))[0]
  const factsIn = async (transaction: Transaction, ref: Ref): Promise<MessageFacts[]> => {
    const row = await findRow(transaction, ref)
    return row ? ((await factsOf(transaction, [row])).get(row.id) ?? []) : []
  }
  const effectsIn = (ref: Ref) =>
    inTransaction(async (transaction) =>
      (await factsIn(transaction, ref)).flatMap(({ n, effects = [] }) =>
        effects.map((effect) => ({ number: n, effect })),
      ),
    )

  return {
    id: () => inTransaction(async ({ query }) => (await positionIn(query)).id),
    revision: () => inTransaction(async ({ query }) => (await positionIn(query)).token),
    changes: (after, limit) =>
      inTransaction(async ({ query }) => {
        const now = await positionIn(query)
        const from = after === undefined ? 0 : await includedNumber(query, now, after)
        if (from === undefined) return { changes: [], token: `${now.id}@0`, more: true, rebuild: true }
        if (from === now.seq) return { changes: [], token: now.token, more: false, rebuild: false }
        const rows = await query<Partial<ConversationName> & { conversation: number; seq: number; deleted: boolean }>(
          sql.CHANGES,
          [from, limit],
        )
        return {
          changes: rows.map(({ conversation, owner, source, native_id }) => ({
            conversation: String(conversation),
            deleted: owner === undefined || owner === null,
            ref: owner ? refOf({ owner, source: source!, native_id: native_id! }) : undefined,
          })),
          token: `${now.id}@${rows.at(-1)?.seq ?? from}`,
          more: rows.length === limit,
          rebuild: false,
        }
      }),

    resolve: (refQuery) =>
      inTransaction(async (transaction) => {
        const rows = await resolveRows(sql, transaction.query, refQuery, self)
        const exact = rows.filter(({ native_id }) => native_id === refQuery.prefix)
        return (exact.length > 0 ? exact : rows).map((row) => rowOf(row, transaction))
      }),
    conversation: (ref) =>
      inTransaction(async (transaction) => {
        const row = await findRow(transaction, ref)
        return row && rowOf(row, transaction)
      }),
    titles: (refs) =>
      inTransaction(async (transaction) => {
        const rows = await transaction.query<TitleRow>(sql.TITLES, columnsOf(refs, self))
        const titles = new Map(
          rows.map((row) => [nameOf(row), unsealTitle(transaction.tenant.conversationKey(row.wrapped), row)]),
        )
        return refs.map((ref) => titles.get(keyOf(ref, self)) ?? "")
      }),
    list: (filter) =>
      inTransaction(async (transaction) => {
        const values = listValues(filter, self)
        const counts = await transaction.query<{ kind: Kind; count: number }>(sql.COUNT_LISTED, values)
        const isShown = ({ kind }: { kind: Kind }) => filter.kinds?.includes(kind) ?? true
        const rows = await transaction.query<Row>(sql.LISTED, [
          ...values,
          filter.kinds ?? null,
          filter.limit,
          filter.offset,
        ])
        return {
          rows: rows.map((row) => rowOf(row, transaction)),
          total: sum(counts.filter(isShown).map(({ count }) => count)),
          left_out: Object.fromEntries(counts.filter((one) => !isShown(one)).map(({ kind, count }) => [kind, count])),
        }
      }),
    spans: ({ kinds, ...filter }) =>
      inTransaction(async ({ query }) => {
        const values = listValues({ ...filter, limit: 0, offset: 0 }, self)
        const rows = await query<Row>(sql.SPANS, [...values, kinds ?? null])
        return rows.map(({ source, project, started_at, ended_at }) =>
          withoutUndefined({ source, project, started_at: started_at ?? undefined, ended_at: ended_at ?? undefined }),
        )
      }),
    messages: (ref, numbers) =>
      inTransaction(async (transaction) => {
        const row = await findRow(transaction, ref)
        return row ? messagesOf(transaction, row, numbers) : []
      }),
    readAhead: (refs) =>
      inTransaction(async (transaction) => {
        const rows = await findRows(sql, transaction, refs, self)
        const complete: Row[] = []
        let bytes = 0
        const wantedChunks = rows.flatMap(({ place, ...row }) => {
          const wanted = refs[place]!.number
          if (wanted === undefined) {
            bytes += row.text_bytes
            if (bytes > MAX_BYTES_AHEAD) return []
            complete.push(row)
          }
          const places = placesOf(headOf(row, transaction), ({ number }) => wanted === undefined || number === wanted)
          return places.map(({ hash }) => ({ row, hash }))
        })
        await readChunks(transaction, wantedChunks)
        await factsOf(transaction, complete)
      }),
    versions: (ref) =>
      inTransaction(async (transaction) => {
        const row = await findRow(transaction, ref)
        if (!row) return []
        return headOf(row, transaction)
          .messages.map(([number, version, copied]) => ({ number, version, copied: copied === 1 }))
          .sort((a, b) => a.number - b.number)
      }),

    touching: (file) =>
      inTransaction(async (transaction) => {
        const wantedPath = file.replaceAll("\\", "/")
        const rows = await transaction.query<Row>(sql.ALL)
        const facts = await factsOf(transaction, rows)
        const contains = (row: Row, path: string) =>
          (isAbsolute(path) ? path : `${row.project}/${path}`).includes(wantedPath)
        return rows.filter((row) => touchedFiles(facts.get(row.id)).some(({ path }) => contains(row, path))).map(refOf)
      }),
    usingModel: (model) =>
      inTransaction(async ({ query }) =>
        (await query<Row>(sql.USING_MODEL, [model.toLowerCase()])).map((row) => refOf(row)),
      ),
    // A hub knows only the copies that it was sent, not the files of their senders.
    tagged: async () => [],
    keptOnlyHere: async () => [],
    filesOf: (ref) =>
      inTransaction(async (transaction) => {
        const files = touchedFiles(await factsIn(transaction, ref))
        const edited = files.filter(({ action }) => action === "edited")
        return [...new Set([...edited, ...files].map(({ path }) => path))]
      }),
    editedFiles: (ref, limit) =>
      inTransaction(async (transaction) => {
        const editCounts = new Map<string, number>()
        for (const { path, action } of touchedFiles(await factsIn(transaction, ref)))
          if (action === "edited") editCounts.set(path, (editCounts.get(path) ?? 0) + 1)
        return [...editCounts]
          .sort(([a, n], [b, m]) => m - n || (a < b ? -1 : 1))
          .slice(0, limit)
          .map(([path]) => path)
      }),
    commandsOf: async (ref) =>
      (await effectsIn(ref)).flatMap(({ number, effect }) => {
        if (effect.type !== "command") return []
        const { command, exit_status, failed, error } = effect
        return [withoutUndefined({ number, command, exit_status, failed, error })]
      }),
    madeIn: async (ref) =>
      (await effectsIn(ref)).flatMap(({ number, effect }): MadeRow[] => {
        if (effect.type === "pull_request") return [{ number, kind: effect.type, name: effect.url }]
        if (effect.type !== "commit") return []
        const { hash: name, subject, branch } = effect
        return [withoutUndefined({ number, kind: effect.type, name, subject, branch })]
      }),
    commits: ({ limit, inside }) =>
      inTransaction(async (transaction) => {
        const rows = await transaction.query<Row>(sql.COMMITTING, [inside ?? null])
        const facts = await factsOf(transaction, rows)
        return rows
          .flatMap((row) => commitsIn(refOf(row), facts.get(row.id)))
          .sort((a, b) => (b.at ?? 0) - (a.at ?? 0))
          .slice(0, limit)
      }),
    work: (refs) =>
      inTransaction(async (transaction) => {
        const rows = await findRows(sql, transaction, refs, self)
        const facts = await factsOf(transaction, rows)
        const idByPlace = new Map(rows.map((row) => [row.place, row.id]))
        return refs.map((_, i) => workIn(facts.get(idByPlace.get(i) ?? -1)))
      }),
    around: ({ number, ...ref }, before, after) =>
      inTransaction(async (transaction) => {
        const center = await findRow(transaction, ref)
        if (!center) return []
        const message = (await factsOf(transaction, [center])).get(center.id)?.find(({ n }) => n === number)
        if (!message) return []
        if (message.at === undefined || message.copied || message.superseded) return [{ ...ref, number }]
        const nearbyRows = await transaction.query<Row>(sql.AROUND, [
          center.project_id,
          message.at,
          before,
          after,
          center.id,
        ])
        const facts = await factsOf(transaction, nearbyRows)
        const timedMessages = nearbyRows
          .flatMap((row) => countedFacts(facts.get(row.id)).map(({ n, at: time }) => ({ row, n, time })))
          .filter(({ time }) => time !== undefined)
          .sort((a, b) => a.time! - b.time! || a.row.id - b.row.id || a.n - b.n)
        const position = timedMessages.findIndex(({ row, n }) => row.id === center.id && n === number)
        return timedMessages
          .slice(Math.max(0, position - before), position + after + 1)
          .map(({ row, n }) => ({ ...refOf(row), number: n }))
      }),

    stats: () =>
      inTransaction(async ({ query }) => {
        const [totals] = await query<StatsRow>(sql.STATS)
        const { conversations, messages, estimated_tokens, text_bytes, earliest, latest, sources, kinds } = totals!
        return withoutUndefined({
          ...{ conversations, messages, estimated_tokens, text_bytes },
          earliest: earliest ?? undefined,
          latest: latest ?? undefined,
          sources: sources ?? {},
          kinds: kinds ?? {},
        })
      }),
    storedSources: () =>
      inTransaction(async ({ query }) => (await query<{ source: string }>(sql.SOURCES)).map(({ source }) => source)),
    sourceReport: () =>
      inTransaction(async ({ query }) =>
        (await query<SourceRow>(sql.SOURCE_REPORT)).map(({ last_at, ...row }) => ({
          ...row,
          last_at: last_at ?? undefined,
          units: row.conversations,
          archived: 0,
          skipped: {},
          unknown: {},
          redactions: {},
          unreadable: [],
        })),
      ),
    // Documents are never pushed to a hub.
    collections: async () => [],
    documentsIn: async () => ({ documents: 0, sections: 0, estimated_tokens: 0 }),
    projects: (wanted) =>
      inTransaction(async (transaction) => {
        if (wanted === "private") return []
        transaction.projects ??= transaction.query<{ key: string }>(sql.PROJECTS)
        return (await transaction.projects).map(({ key }) => ({ path: key, private: false }))
      }),
    busiestProjects: (limit) =>
      inTransaction(async ({ query }) =>
        (await query<{ key: string }>(sql.BUSIEST, [limit])).map(({ key }) => ({ path: key, private: false })),
      ),

    conversationsIn: (projects) =>
      inTransaction(async ({ query }) => {
        const values = projects.map((project) => listValues({ in_project: project, limit: 0, offset: 0 }, self))
        return (await Promise.all(values.map((parameters) => query<Row>(sql.SPANS, [...parameters, null]))))
          .flat()
          .map(refOf)
      }),

    withSubagents: (refs) =>
      inTransaction((transaction) => withRelatives(sql, transaction, refs, self, refOf, childrenOf(sql))),
    family: (refs) =>
      inTransaction((transaction) =>
        withRelatives(sql, transaction, refs, self, refOf, async (tx, row) => [
          ...(await childrenOf(sql)(tx, row)),
          ...(await forksOf(sql, tx, row)),
        ]),
      ),
    // Quarantined conversations count as forgotten, because the index contains no word of them either.
    forgotten: () =>
      inTransaction(
        async ({ query }) =>
          (
            await query<{ count: number }>(
              `select count(*) as count from hub.change where tenant = ${TENANT} and deleted`,
            )
          )[0]!.count,
      ),
    // Only a laptop syncs.
    progress: async () => undefined,
    close: () => {},
  }
}

type ConversationName = { owner: string; source: string; native_id: string }
type Row = ConversationName & {
  id: number
  project: string
  project_id: number
  author: number
  visibility: ConversationAccess["visibility"]
  kind: Kind
  models: string[]
  message_count: number
  copied_count: number
  superseded: boolean
  estimated_tokens: number
  text_bytes: number
  started_at: number | null
  ended_at: number | null
  first_at: number | null
  last_at: number | null
  head: Buffer
  wrapped: Buffer
}
type StatsRow = {
  conversations: number
  messages: number
  estimated_tokens: number
  text_bytes: number
  earliest: number | null
  latest: number | null
  sources: Record<string, number> | null
  kinds: Record<string, number> | null
}
type SourceRow = {
  source: string
  conversations: number
  messages: number
  kinds: Record<string, number>
  last_at: number | null
}

/** How many bytes of complete conversations are read ahead. */
const MAX_BYTES_AHEAD = 4_000_000
const SELECT_FACTS = "select conversation, hash, facts from hub.chunk where conversation = any ($1)"

/** Finds the conversations of the refs, without those that do not exist. `place` is the index of the ref in `refs`. */
async function findRows(
  sql: Statements,
  { query, rows }: Transaction,
  refs: Ref[],
  self: string | undefined,
): Promise<(Row & { place: number })[]> {
  const keys = refs.map((ref) => keyOf(ref, self))
  const unread = refs.filter((_, i) => !rows.has(keys[i]!))
  if (unread.length > 0)
    for (const row of await query<Row>(sql.NAMED, columnsOf(unread, self))) rows.set(nameOf(row), row)
  return keys.flatMap((key, i) => (rows.has(key) ? [{ ...rows.get(key)!, place: i }] : []))
}

/** Names a conversation. `nameOf` takes a row and `keyOf` a ref; both return the same text for the same conversation. */
function nameOf({ owner, source, native_id }: ConversationName): string {
  return formatRef({ owner, source, id: native_id })
}
function keyOf({ owner, source, id }: Ref, self: string | undefined): string {
  return formatRef({ owner: owner ?? self ?? "", source, id })
}

/** The owners, sources and ids of refs, as three parameters of a statement. */
function columnsOf(refs: readonly Ref[], self: string | undefined): string[][] {
  return [refs.map(({ owner }) => owner ?? self ?? ""), refs.map(({ source }) => source), refs.map(({ id }) => id)]
}

async function resolveRows(
  sql: Statements,
  query: Query,
  { prefix, source, owner }: RefQuery,
  self: string | undefined,
): Promise<Row[]> {
  const rows = await query<Row>(sql.RESOLVED, [prefix, source ?? null, owner ?? null])
  // Without an owner, the viewer's own conversation takes precedence over others with the same id.
  const ownRows = owner === undefined ? rows.filter((row) => row.owner === self && row.native_id === prefix) : []
  return ownRows.length > 0 ? ownRows : rows
}

function listValues(filter: ListFilter, self: string | undefined): unknown[] {
  const { conversation, among } = filter
  return [
    ...[filter.inside ?? null, filter.project ?? null, filter.source ?? null],
    ...[filter.from ?? null, filter.to ?? null, filter.in_project ?? null],
    ...(conversation ? [conversation.owner ?? self ?? "", conversation.source, conversation.id] : [null, null, null]),
    ...(among ? columnsOf(among, self) : [null, null, null]),
  ]
}

function headOf({ id, head, wrapped }: Row, { tenant, heads }: Transaction): SealedHead {
  const unsealed =
    heads.get(id) ?? unsealJson<SealedHead>(tenant.conversationKey(wrapped), head, `${SEAL_PURPOSES.head} ${id}`)
  heads.set(id, unsealed)
  return unsealed
}

/** A title, or the head if it has a newer title. */
export type SealedTitle = { id: number } & ({ title: Buffer; head: null } | { title: null; head: Buffer })
type TitleRow = ConversationName & Pick<Row, "wrapped"> & SealedTitle

export function unsealTitle(key: Buffer, { id, title, head }: SealedTitle): string {
  if (title !== null) return unseal(key, title, `${SEAL_PURPOSES.title} ${id}`).toString("utf8")
  return unsealJson<SealedHead>(key, head, `${SEAL_PURPOSES.head} ${id}`).title?.text ?? ""
}

function toRow(row: Row, ref: Ref, { title, git_branch, agent_version, parent, fork_of, usage }: SealedHead) {
  return withoutUndefined<ConversationRow>({
    ref,
    kind: row.kind,
    title,
    project: row.project,
    private: row.visibility === "private",
    cwds: [row.project],
    git_branch,
    agent_version,
    parent,
    fork_of,
    started_at: row.started_at ?? undefined,
    ended_at: row.ended_at ?? undefined,
    models: row.models,
    usage,
    message_count: row.message_count,
    superseded: row.superseded,
    copied_count: row.copied_count,
    estimated_tokens: row.estimated_tokens,
    text_bytes: row.text_bytes,
    path: "",
    archived: false,
    access: { author: row.author, project: row.project_id, visibility: row.visibility },
  })
}

/** Reads only the chunks that contain a requested message. */
async function messagesOf(transaction: Transaction, row: Row, numbers: number[] | undefined): Promise<StoredMessage[]> {
  const wantedNumbers = numbers && new Set(numbers)
  const isWanted = ({ number }: { number: number }) => wantedNumbers?.has(number) ?? true
  const places = placesOf(headOf(row, transaction), isWanted)
  await readChunks(
    transaction,
    places.map(({ hash }) => ({ row, hash })),
  )
  return places.flatMap(({ hash, line }) => {
    const text = transaction.chunks.get(chunkName(row.id, hash))?.[line]
    if (text === undefined) return []
    const { version: _, ...message } = JSON.parse(text) as WireMessage
    return [message satisfies StoredMessage]
  })
}

/** The chunk and the line of each requested message. */
function placesOf(
  { messages, chunks }: SealedHead,
  isWanted: (message: { number: number }) => boolean,
): { hash: string; line: number }[] {
  const nextLines = chunks.map(() => 0)
  return messages.flatMap(([number, , , chunk]) => {
    const line = nextLines[chunk]!++
    return isWanted({ number }) ? [{ hash: chunks[chunk]!, line }] : []
  })
}

function chunkName(conversation: number, hash: string): string {
  return `${conversation} ${hash}`
}

const SELECT_CHUNKS = `select conversation, hash, data from hub.chunk
  where (conversation, hash) in (select * from unnest($1::bigint[], $2::bytea[]))`

async function readChunks({ query, tenant, chunks }: Transaction, wanted: { row: Row; hash: string }[]): Promise<void> {
  const missing = new Map(
    wanted
      .map(({ row, hash }) => ({ row, hash, name: chunkName(row.id, hash) }))
      .filter(({ name }) => !chunks.has(name))
      .map((one) => [one.name, one]),
  )
  if (missing.size === 0) return
  const unread = [...missing.values()]
  const rows = new Map(unread.map(({ row }) => [row.id, row]))
  const stored = await query<{ conversation: number; hash: Buffer; data: Buffer }>(SELECT_CHUNKS, [
    unread.map(({ row }) => row.id),
    unread.map(({ hash }) => Buffer.from(hash, "hex")),
  ])
  for (const { conversation, hash, data } of stored) {
    const key = tenant.conversationKey(rows.get(conversation)!.wrapped)
    const packed = unseal(key, data, `${SEAL_PURPOSES.chunk} ${conversation}`)
    chunks.set(chunkName(conversation, hash.toString("hex")), chunkLines(packed))
  }
}

/** The facts of these conversations' messages, in order. */
async function factsOf(transaction: Transaction, rows: Row[]): Promise<Map<number, MessageFacts[]>> {
  const unread = rows.filter(({ id }) => !transaction.facts.has(id))
  if (unread.length > 0) await readFacts(transaction, unread)
  return new Map(rows.map(({ id }) => [id, transaction.facts.get(id) ?? []]))
}

async function readFacts(transaction: Transaction, rows: Row[]): Promise<void> {
  const stored = await transaction.query<{ conversation: number; hash: Buffer; facts: Buffer }>(SELECT_FACTS, [
    rows.map(({ id }) => id),
  ])
  const chunks = new Map(stored.map((chunk) => [`${chunk.conversation} ${chunk.hash.toString("hex")}`, chunk.facts]))
  for (const row of rows) {
    const key = transaction.tenant.conversationKey(row.wrapped)
    const facts = headOf(row, transaction).chunks.flatMap((hash) => {
      const sealed = chunks.get(`${row.id} ${hash}`)
      return sealed ? unsealJson<MessageFacts[]>(key, sealed, `${SEAL_PURPOSES.facts} ${row.id}`) : []
    })
    transaction.facts.set(row.id, facts)
  }
}

type FileEffect = Extract<Effect, { type: "file" }>

function touchedFiles(facts: MessageFacts[] = []): FileEffect[] {
  return facts.flatMap(({ effects = [] }) => effects.filter((effect) => effect.type === "file"))
}

/** Leaves out superseded messages, and messages that a fork copied from its original. */
function countedFacts(facts: MessageFacts[] = []): MessageFacts[] {
  return facts.filter(({ copied, superseded }) => !copied && !superseded)
}

function commitsIn(ref: Ref, facts: MessageFacts[] | undefined): CommitRow[] {
  return countedFacts(facts).flatMap(({ n, at, effects = [] }) =>
    effects.flatMap((effect) =>
      effect.type === "commit"
        ? [withoutUndefined({ ref: { ...ref, number: n }, hash: effect.hash, subject: effect.subject, at })]
        : [],
    ),
  )
}

function workIn(facts: MessageFacts[] | undefined): Work {
  const effects = countedFacts(facts).flatMap(({ effects: all = [] }) => all)
  const edits = effects.filter((effect) => effect.type === "file").filter(({ action }) => action === "edited")
  return {
    lines_added: sum(edits.map(({ added = 0 }) => added)),
    lines_removed: sum(edits.map(({ removed = 0 }) => removed)),
    files: new Set(edits.map(({ path }) => path)).size,
    commits: new Set(effects.flatMap((effect) => (effect.type === "commit" ? [effect.hash] : []))).size,
  }
}

/** The given conversations, their relatives, the relatives of those, and so on. */
async function withRelatives(
  sql: Statements,
  transaction: Transaction,
  refs: Ref[],
  self: string | undefined,
  refOf: (row: ConversationName) => Ref,
  relatives: (transaction: Transaction, row: Row) => Promise<Row[]>,
): Promise<Ref[]> {
  const family = [...refs]
  const seenIds = new Set<number>()
  let next: Row[] = await findRows(sql, transaction, refs, self)
  for (const { id } of next) seenIds.add(id)
  while (next.length > 0) {
    const related: Row[] = []
    for (const row of next) related.push(...(await relatives(transaction, row)))
    next = related.filter(({ id }) => !seenIds.has(id) && seenIds.add(id))
    family.push(...next.map(refOf))
  }
  return family
}

function childrenOf(sql: Statements) {
  return ({ query }: Transaction, { owner, source, native_id }: Row) =>
    query<Row>(sql.CHILDREN, [owner, source, native_id])
}

/** The conversation's forks, and the conversation from which it was forked, if messages were copied. */
async function forksOf(sql: Statements, transaction: Transaction, row: Row): Promise<Row[]> {
  const siblings = await transaction.query<Row>(sql.OF_OWNER_AND_SOURCE, [row.owner, row.source])
  const origin = row.copied_count > 0 ? headOf(row, transaction).fork_of : undefined
  return siblings.filter(
    (other) =>
      other.native_id === origin || (other.copied_count > 0 && headOf(other, transaction).fork_of === row.native_id),
  )
}

function sum(values: number[]): number {
  return values.reduce((all, value) => all + value, 0)
}

function withoutUndefined<T extends object>(object: T): T {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)) as T
}
