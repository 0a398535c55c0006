import type { SourceId } from "../../core/conversation.ts"
import { DAY_MS } from "../../core/dates.ts"
import { messageOf } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { conversationRefOf, formatRef, parseCompleteRef, type Ref } from "../../core/ref.ts"
import {
  type Item,
  KINDS,
  type Moment,
  type Pattern,
  STATUSES,
  type Status,
  type Subscription,
  type Suggestion,
} from "../../core/suggestion.ts"
import { type Db, emptyLog, explainError, inTransaction, openDatabase } from "../sqlite/database.ts"
import { pragmaValue, type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { type Metrics, metricsOf } from "./metrics.ts"
import { SUGGESTION_MIGRATIONS } from "./migrations.ts"
import {
  type DeliveryOutcome,
  type DueDelivery,
  dueDeliveries,
  enqueueDelivery,
  type OutboxCounts,
  outboxCounts,
  recordDelivery,
  retryDeadDeliveries,
} from "./outbox.ts"
import * as subscriptions from "./subscriptions.ts"
import { type LearnWeights, learnedWeights, recordVerdict, resetWeights, type StoredItem } from "./verdicts.ts"

/** Whether the suggestion was saved, and if not, the reason in words for the user. */
export type SaveResult = { kept: true; seq: number } | { kept: false; why: string }

export type StoredSuggestion = Omit<Suggestion, "items"> & {
  /** The number of the suggestion, in the order in which suggestions were made. A number is never reused. */
  seq: number
  items: StoredItem[]
  /** True if the suggestion was only recorded as what would have been suggested. */
  would: boolean
  subscription?: string
}

export type SuggestionFilter = {
  status?: Status
  would?: boolean
  project?: string
  subscription?: string
  /** Selects suggestions made from this time on. */
  from?: number
  /** Selects only those with a larger `seq`, oldest first. */
  after?: number
  limit: number
}

export type SaveOptions = { would?: boolean; subscription?: string; once?: boolean }

/** How far dex has checked whether suggestions were used: a position in the history's feed, and the last suggestion checked. */
export type ObservationPosition = { token: string; seq: number }

export type Mute = RowOf<typeof MUTE_ROW>
const MUTE_ROW = { type: ["kind", "project"], name: "text", at: "integer" } as const

/**
 * The suggestions that dex made and their verdicts, and the user's subscriptions and mutes. Stored in its own small file,
 * independent of the history and opened on first use.
 */
export type Suggestions = {
  /**
   * Saves a suggestion with its webhook delivery in one transaction. Never throws, because a hook must continue even if saving
   * fails. With `once`, refuses if one of the items was shown in the session meanwhile.
   */
  save(suggestion: Suggestion, options?: SaveOptions): SaveResult
  /** The keys of items shown in this session; with `would`, also of those that would have been shown. Never throws. */
  seen(source: SourceId, session: string, would?: boolean): Set<string>
  /** Returns suggestions, newest first, unless `after` is given. */
  list(filter: SuggestionFilter): StoredSuggestion[]
  /** Returns a suggestion by its id or by a unique prefix of it, among those of the projects for which `isVisible` is true. */
  get(id: string, isVisible?: (project: string) => boolean): StoredSuggestion | undefined
  /**
   * Records the verdict on a suggestion or on one of its items, and adjusts the weights with `learn`, once for each item and
   * verdict. Returns undefined if there is no such suggestion or item.
   */
  setStatus(id: string, status: Status, item?: number, learn?: LearnWeights): StoredSuggestion | undefined

  mute(type: Mute["type"], name: string, at: number): void
  unmute(type: Mute["type"], name: string): boolean
  mutes(): Mute[]
  /** Moves mutes, subscriptions and suggestions of a project to the one that it was joined to. */
  renameProject(from: string, into: string): void
  /** Returns the learned weights. Never throws: without them the built-in weights apply. */
  weights(): Record<string, number>
  /** Undoes what was learned; suggestions and verdicts stay. Returns the number of weights. */
  resetWeights(): number
  /** The position up to which sessions were checked for their use of suggestions. Undefined if they were never checked. */
  observationPosition(): ObservationPosition | undefined
  saveObservationPosition(position: ObservationPosition): void
  /** The time of the first call, which is stored: `now` if there was none before. */
  firstAt(now: number): number
  metrics(from?: number): Metrics

  subscribe(subscription: Subscription, secret?: string): void
  unsubscribe(id: string): boolean
  subscriptions(project?: string): Subscription[]
  secretOf(id: string): string | undefined
  disable(id: string, because: string): void

  /** Due webhook deliveries, grouped by subscription: at most `ofEach` of each, longest due first. */
  due(now: number, ofEach: number): DueDelivery[]
  /** The time of the next due delivery. Undefined if none is waiting. */
  nextDue(): number | undefined
  record(outcome: DeliveryOutcome): void
  retryDead(now: number): number
  outbox(): OutboxCounts

  /** A number that changes whenever another process has written to the file. */
  version(): number
  /** Descriptions of damage; empty if there is none. */
  check(): string[]
  /**
   * Deletes items that quote these conversations or were shown in them, including their bytes. Deletes everything of these
   * projects, since an item may be derived from several conversations. Returns the number of deleted items.
   */
  forget(refs: readonly Ref[], projects?: readonly string[]): number
  /**
   * Removes secrets that the current `redact` finds in stored suggestions. Returns the number of suggestions that contained any.
   */
  redactAgain(): number
  close(): void
}

export const MAX_SUGGESTIONS = 10_000
export const RETENTION_MS = 180 * DAY_MS
const PRUNE_INTERVAL = 64
const MAX_TEXT_LENGTH = 4_000
const MAX_ITEMS = 20
const CACHE_KB = 1_000

export type SuggestionsOptions = {
  /** How long to wait for another writer, in milliseconds. A hook must not wait long. */
  busyMs?: number
  /** Removes secrets from each new suggestion's moment (its items are redacted already), and in `redactAgain` from all data. */
  redact?: (text: string) => string
}

export function openSuggestions(path: string, options: SuggestionsOptions = {}): Suggestions {
  let database: Db | undefined
  const db = () => (database ??= openDatabase(path, SUGGESTION_MIGRATIONS, CACHE_KB, options.busyMs))
  const explanationOf = (error: unknown) => messageOf(explainError(error, path))
  /** Throws errors with a message for the user. */
  const withDb = <T>(work: (db: Db) => T): T => {
    try {
      return work(db())
    } catch (error) {
      throw explainError(error, path)
    }
  }
  const write = <T>(work: (db: Db) => T): T => withDb((open) => inTransaction(open, () => work(open)))
  /** Returns `fallback` instead of throwing, for hooks, which must not fail. */
  const tryOr = <T>(work: (db: Db) => T, fallback: T): T => {
    try {
      return work(db())
    } catch {
      return fallback // the methods that use this function document it
    }
  }
  return {
    save: (suggestion, saveOptions = {}) => {
      try {
        const open = db()
        const moment = withoutSecrets(suggestion.moment, options.redact)
        return inTransaction(open, () => save(open, { ...suggestion, moment }, saveOptions))
      } catch (error) {
        return { kept: false, why: explanationOf(error) }
      }
    },
    seen: (source, session, would = false) => tryOr((open) => seen(open, source, session, would), new Set()),
    list: (filter) => withDb((open) => list(open, filter)),
    get: (id, isVisible) => withDb((open) => get(open, id, isVisible)),
    setStatus: (id, status, item, learn) => write((open) => setStatus(open, id, status, item, learn)),
    mute: (type, name, at) =>
      write(
        (open) => void open.prepare("insert or ignore into mute (type, name, at) values (?, ?, ?)").run(type, name, at),
      ),
    unmute: (type, name) =>
      write((open) => open.prepare("delete from mute where type = ? and name = ?").run(type, name).changes > 0),
    renameProject: (from, into) => write((open) => renameProject(open, from, into)),
    mutes: () =>
      withDb((open) => rowQuery(open, "select type, name, at from mute order by type, name", MUTE_ROW).all()),
    observationPosition: () => withDb(observationPosition),
    saveObservationPosition: (at) => write((open) => saveObservationPosition(open, at)),
    weights: () => tryOr(learnedWeights, {}),
    resetWeights: () => write(resetWeights),
    firstAt: (now) => write((open) => firstAt(open, now)),
    metrics: (from) => withDb((open) => metricsOf(open, from)),
    subscribe: (subscription, secret) => write((open) => subscriptions.add(open, subscription, secret)),
    unsubscribe: (id) => write((open) => subscriptions.remove(open, id)),
    subscriptions: (project) => withDb((open) => subscriptions.all(open, project)),
    secretOf: (id) => withDb((open) => subscriptions.secretOf(open, id)),
    disable: (id, because) => write((open) => subscriptions.disable(open, id, because)),
    due: (now, ofEach) => withDb((open) => dueDeliveries(open, now, ofEach)),
    nextDue: () =>
      withDb(
        (open) =>
          valueQuery(open, "select min(next_at) from outbox where state = 'waiting'", "integer?").get() ?? undefined,
      ),
    record: (outcome) => write((open) => recordDelivery(open, outcome)),
    retryDead: (now) => write((open) => retryDeadDeliveries(open, now)),
    outbox: () => withDb(outboxCounts),
    check: () => withDb((open) => valueQuery(open, "pragma quick_check", "text").all()).filter((line) => line !== "ok"),
    version: () => withDb((open) => pragmaValue(open, "data_version", "integer")),
    forget: (refs, projects = []) =>
      withDb((open) => {
        const deleted = inTransaction(open, () => forget(open, refs, projects))
        emptyLog(open)
        return deleted
      }),
    redactAgain: () =>
      withDb((open) => {
        const redacted = inTransaction(open, () => redactAgain(open, options.redact))
        open.pragma("wal_checkpoint(truncate)")
        return redacted
      }),
    close: () => database?.close(),
  }
}

function save(db: Db, suggestion: Suggestion, { would = false, subscription, once }: SaveOptions): SaveResult {
  const { id, moment, items, status, latency_ms } = suggestion
  if (once && moment.source && moment.session) {
    const shown = seen(db, moment.source, moment.session, would)
    if (items.some(({ key }) => shown.has(key)))
      return { kept: false, why: "One of its items was shown in this session meanwhile." }
  }
  if (subscription !== undefined) {
    const refusal = subscriptions.trigger(db, subscription, moment.at)
    if (refusal !== undefined) return { kept: false, why: refusal }
  }
  const { lastInsertRowid } = db
    .prepare(
      `insert into suggestion (id, at, project, source, session, subscription, would, status, latency_ms, moment)
       values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
    )
    .run(
      id,
      moment.at,
      moment.project,
      moment.source ?? null,
      moment.session ?? null,
      subscription ?? null,
      would ? 1 : 0,
      status,
      latency_ms,
      JSON.stringify(truncateTexts(moment)),
    )
  const seq = Number(lastInsertRowid)
  const insert = db.prepare(
    "insert into item (suggestion, number, kind, key, quotes, relevance, status, body) values (?, ?, ?, ?, ?, ?, ?, ?)",
  )
  for (const [i, item] of items.slice(0, MAX_ITEMS).entries()) {
    const { kind, key, relevance, ...body } = truncateTexts(item)
    insert.run(seq, i + 1, kind, key, quotedBy(item), relevance, status, JSON.stringify(body))
  }
  if (subscription !== undefined) enqueueDelivery(db, seq, id, subscription, moment.at)
  if (seq % PRUNE_INTERVAL === 0) prune(db, moment.at)
  return { kept: true, seq }
}

/** Redacts the current moment, which no sync has read yet. */
function withoutSecrets(moment: Moment, redact: SuggestionsOptions["redact"] = (text) => text): Moment {
  const clean = { ...moment }
  for (const field of ["prompt", "command", "error", "file", "branch", "symbol"] as const) {
    const text = moment[field]
    if (text !== undefined) clean[field] = redact(text).slice(0, MAX_TEXT_LENGTH)
  }
  if (moment.recent_files) clean.recent_files = moment.recent_files.map((path) => redact(path))
  return clean
}

function redactAgain(db: Db, redact: SuggestionsOptions["redact"] = (text) => text): number {
  const changedSeqs = new Set<number>()
  const moments = rowQuery(db, "select seq, moment from suggestion", { seq: "integer", moment: "text" }).all()
  const setMoment = db.prepare("update suggestion set moment = ? where seq = ?")
  for (const { seq, moment } of moments) {
    const clean = JSON.stringify(withoutSecrets(JSON.parse(moment) as Moment, redact))
    if (clean === moment) continue
    setMoment.run(clean, seq)
    changedSeqs.add(seq)
  }
  const items = rowQuery(db, "select suggestion, number, key, body from item", ITEM_TEXT_ROW).all()
  const setItem = db.prepare("update item set key = ?, body = ? where suggestion = ? and number = ?")
  for (const { suggestion, number, key, body } of items) {
    const fields = Object.entries(JSON.parse(body) as Record<string, unknown>)
    const clean = JSON.stringify(
      Object.fromEntries(fields.map(([name, value]) => [name, typeof value === "string" ? redact(value) : value])),
    )
    if (clean === body && redact(key) === key) continue
    setItem.run(redact(key), clean, suggestion, number)
    changedSeqs.add(suggestion)
  }
  redactPatterns(db, redact)
  return changedSeqs.size
}

function redactPatterns(db: Db, redact: (text: string) => string): void {
  const rows = rowQuery(db, "select id, patterns from subscription", { id: "text", patterns: "text" }).all()
  const update = db.prepare("update subscription set patterns = ? where id = ?")
  for (const { id, patterns } of rows) {
    const stored: Pattern[] = JSON.parse(patterns)
    const clean = JSON.stringify(stored.map((item) => ({ ...item, pattern: redact(item.pattern) })))
    if (clean !== patterns) update.run(clean, id)
  }
}
const ITEM_TEXT_ROW = { suggestion: "integer", number: "integer", key: "text", body: "text" } as const

/** Truncates long texts, so that this file stays small. */
function truncateTexts<T extends Moment | Item>(record: T): T {
  return Object.fromEntries(
    Object.entries(record).map(([name, value]) => [
      name,
      typeof value === "string" && name !== "key" && name !== "project" ? value.slice(0, MAX_TEXT_LENGTH) : value,
    ]),
  ) as T
}

/** Returns the ref of the conversation that an item quotes, in the form in which `forget` looks it up. */
function quotedBy({ ref }: Item): string | null {
  const quoted = ref === undefined ? undefined : parseCompleteRef(ref)
  return quoted ? formatRef(conversationRefOf(quoted)) : null
}

/** Deletes suggestions that are too old, and the oldest if there are too many, but none with a pending delivery. */
function prune(db: Db, now: number): void {
  const deletedSeqs = valueQuery(
    db,
    `select seq from suggestion where (at < @before
         or seq <= (select seq from suggestion order by seq desc limit 1 offset @most))
         and seq not in (select suggestion from outbox where state = 'waiting')`,
    "integer",
  ).all({ before: now - RETENTION_MS, most: MAX_SUGGESTIONS })
  for (const seq of deletedSeqs) remove(db, seq)
}

function remove(db: Db, seq: number): void {
  db.prepare("delete from item where suggestion = ?").run(seq)
  db.prepare("delete from outbox where suggestion = ?").run(seq)
  db.prepare("delete from suggestion where seq = ?").run(seq)
}

function seen(db: Db, source: SourceId, session: string, would: boolean): Set<string> {
  const keys = valueQuery(
    db,
    `select i.key from suggestion s join item i on i.suggestion = s.seq
       where s.source = ? and s.session = ? and s.would <= ?`,
    "text",
  ).all(source, session, would ? 1 : 0)
  return new Set(keys)
}

type SuggestionRow = RowOf<typeof SUGGESTION_ROW>
const SUGGESTION_ROW = {
  seq: "integer",
  id: "text",
  subscription: "text?",
  would: "integer",
  status: STATUSES,
  latency_ms: "real",
  moment: "text",
} as const
const SUGGESTION_COLUMNS = "seq, id, subscription, would, status, latency_ms, moment"

const FROM_MATCHING = `from suggestion
  where (@status is null or status = @status) and (@would is null or would = @would)
    and (@project is null or project = @project) and (@subscription is null or subscription = @subscription)
    and (@from is null or at >= @from) and seq > @after`

function list(
  db: Db,
  { status, would, project, subscription, from, after, limit }: SuggestionFilter,
): StoredSuggestion[] {
  const selectNewestFirst = rowQuery(
    db,
    `select ${SUGGESTION_COLUMNS} ${FROM_MATCHING} order by seq desc limit @limit`,
    SUGGESTION_ROW,
  )
  const selectByAge = rowQuery(
    db,
    `select ${SUGGESTION_COLUMNS} ${FROM_MATCHING} order by seq limit @limit`,
    SUGGESTION_ROW,
  )
  const rows = (after === undefined ? selectNewestFirst : selectByAge).all({
    status: status ?? null,
    would: would === undefined ? null : Number(would),
    project: project ?? null,
    subscription: subscription ?? null,
    from: from ?? null,
    after: after ?? 0,
    limit,
  })
  return rows.map((row) => withItems(db, row))
}

function renameProject(db: Db, from: string, into: string): void {
  const paths = { from, into }
  db.prepare("update or ignore mute set name = @into where type = 'project' and name = @from").run(paths)
  db.prepare("delete from mute where type = 'project' and name = ?").run(from)
  db.prepare("update subscription set project = @into where project = @from").run(paths)
  db.prepare("update suggestion set project = @into where project = @from").run(paths)
}

function get(db: Db, id: string, isVisible = (_project: string) => true): StoredSuggestion | undefined {
  if (id === "") return undefined
  const selectByPrefix = "select id, project from suggestion where substr(id, 1, length(@id)) = @id"
  const candidates = rowQuery(db, selectByPrefix, { id: "text", project: "text" }).all({ id })
  const visible = candidates.filter(({ project }) => isVisible(project))
  const match = visible.find((row) => row.id === id) ?? (visible.length === 1 ? visible[0] : undefined)
  return (
    match &&
    withItems(
      db,
      rowQuery(db, `select ${SUGGESTION_COLUMNS} from suggestion where id = ?`, SUGGESTION_ROW).get(match.id)!,
    )
  )
}

function withItems(
  db: Db,
  { seq, id, subscription, would, status, latency_ms, moment }: SuggestionRow,
): StoredSuggestion {
  const items = rowQuery(
    db,
    "select number, kind, key, relevance, status, body from item where suggestion = ? order by number",
    {
      number: "integer",
      kind: KINDS,
      key: "text",
      relevance: "real",
      status: STATUSES,
      body: "text",
    },
  ).all(seq)
  return {
    seq,
    id,
    status,
    would: would === 1,
    subscription: subscription ?? undefined,
    latency_ms,
    moment: JSON.parse(moment) as Moment,
    items: items.map(({ body, ...item }) => ({
      ...item,
      ...(JSON.parse(body) as Omit<Item, "kind" | "key" | "relevance">),
    })),
  }
}

function setStatus(
  db: Db,
  id: string,
  status: Status,
  number?: number,
  learn?: LearnWeights,
): StoredSuggestion | undefined {
  const suggestion = get(db, id)
  if (!suggestion || !recordVerdict(db, suggestion, status, number, learn)) return undefined
  return get(db, suggestion.id)
}

function firstAt(db: Db, now: number): number {
  db.prepare("insert or ignore into meta (key, value) values ('first_at', ?)").run(String(now))
  return Number(db.prepare("select value from meta where key = 'first_at'").pluck().get())
}

function observationPosition(db: Db): ObservationPosition | undefined {
  const readMeta = (key: string) => valueQuery(db, "select value from meta where key = ?", "text").get(key)
  const [token, seq] = [readMeta("observed_token"), readMeta("observed_seq")]
  return token === undefined || seq === undefined ? undefined : { token, seq: Number(seq) }
}

function saveObservationPosition(db: Db, { token, seq }: ObservationPosition): void {
  const put = db.prepare("insert or replace into meta (key, value) values (?, ?)")
  put.run("observed_token", token)
  put.run("observed_seq", String(seq))
}

function forget(db: Db, refs: readonly Ref[], projects: readonly string[]): number {
  let deleted = 0
  const drop = (suggestions: number[]) => {
    for (const seq of suggestions) {
      deleted += valueQuery(db, "select count(*) from item where suggestion = ?", "integer").get(seq)!
      remove(db, seq)
    }
  }
  const selectShownIn = valueQuery(
    db,
    "select seq from suggestion where session = ? and (source is null or source = ?)",
    "integer",
  )
  const selectOfProject = valueQuery(db, "select seq from suggestion where project = ?", "integer")
  const storedProjects = valueQuery(db, "select distinct project from suggestion", "text").all()
  for (const project of projects)
    for (const spelling of storedProjects) if (isSamePath(spelling, project)) drop(selectOfProject.all(spelling))
  for (const ref of refs) {
    const name = formatRef(conversationRefOf(ref))
    drop(selectShownIn.all(ref.id, ref.source))
    // An item's ref may contain only a prefix of the conversation's id.
    deleted += db
      .prepare("delete from item where quotes is not null and substr(@name, 1, length(quotes)) = quotes")
      .run({ name }).changes
    const subscriptionIds = valueQuery(db, "select id from subscription where session = ?", "text").all(name)
    for (const subscription of subscriptionIds) subscriptions.remove(db, subscription)
  }
  const empty = valueQuery(
    db,
    "select seq from suggestion where seq not in (select suggestion from item)",
    "integer",
  ).all()
  for (const seq of empty) remove(db, seq)
  return deleted
}
