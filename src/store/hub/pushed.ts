import type { Ref } from "../../core/ref.ts"
import { type Db, emptyLog, explainError, inTransaction, openDatabase } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { HUB_MIGRATIONS } from "./migrations.ts"

const PUSH_STATES = ["sent", "leaving", "gone", "refused"] as const
export type PushState = (typeof PUSH_STATES)[number]

export type PushedRow = {
  ref: Ref
  conversation?: string
  shared_id: string
  /** The hub's key for the project. */
  project: string
  state: PushState
  mark: string
  digest?: string
  rev?: number
  why?: string
  /** Set if a secret was found: the version of the redaction rules that missed it. */
  rules?: number
  at: number
}

/** When dex last tried to push, and with what result. Times are in milliseconds since 1970. */
export type PushHealth = {
  tried_at?: number
  succeeded_at?: number
  problem?: string
  retry_at?: number
  failures?: number
}

/**
 * The conversations that a hub has acknowledged, and the position in the history's feed up to which they were sent. Stored in its
 * own small file, opened on first use.
 */
export type Pushed = {
  /** The position to continue from. Undefined means from the beginning. */
  token(): string | undefined
  saveToken(token: string | undefined): void
  /**
   * Call this before pushing. If the hub or the member is not the same as before, forgets what was acknowledged, and returns
   * true.
   */
  begin(hub: string): boolean
  /** The position in the hub's history that includes everything it acknowledged, and when it was last checked. */
  position(): { position: string; at: number } | undefined
  savePosition(position: string, at: number): void
  /** Everything that the hub acknowledged will be offered to it again. */
  forgetAcknowledged(): void
  /** Forgets the names that conversations have in the feed, because they are invalid after the history was replaced. */
  forgetNames(): void
  health(): PushHealth
  saveHealth(health: PushHealth): void

  get(ref: Ref): PushedRow | undefined
  /** The conversation with this name in the feed. */
  named(conversation: string): PushedRow | undefined
  put(row: PushedRow): void
  remove(ref: Ref): void
  inState(state: PushState, limit: number): PushedRow[]
  ofProject(project: string): PushedRow[]
  /** The number of conversations in each state, by project. */
  counts(): { project: string; state: PushState; count: number }[]

  hold(refs: readonly Ref[], now: number): void
  /** Allows held conversations to be sent again. Returns true if any of them was held. */
  release(refs: readonly Ref[]): boolean
  isHeld(ref: Ref): boolean
  held(): Ref[]

  withdraw(project: string, now: number): void
  withdrawn(): string[]
  endWithdrawal(project: string): void
  close(): void
}

const CACHE_KB = 1_000

export function openPushed(path: string): Pushed {
  let database: Db | undefined
  const withDb = <T>(work: (db: Db) => T): T => {
    try {
      database ??= openDatabase(path, HUB_MIGRATIONS, CACHE_KB)
      return work(database)
    } catch (error) {
      throw explainError(error, path)
    }
  }
  const write = <T>(work: (db: Db) => T): T => withDb((db) => inTransaction(db, () => work(db)))
  return {
    token: () => withDb((db) => readMeta(db, "token")),
    saveToken: (token) => write((db) => writeMeta(db, "token", token)),
    begin: (hub) => (withDb((db) => readMeta(db, "hub")) === hub ? false : write((db) => begin(db, hub))),
    position: () =>
      withDb((db) => {
        const [position, at] = readMeta(db, "position")?.split(" ") ?? []
        return position === undefined ? undefined : { position, at: Number(at) }
      }),
    savePosition: (position, at) => write((db) => writeMeta(db, "position", `${position} ${at}`)),
    forgetAcknowledged: () =>
      write((db) => {
        db.prepare("update pushed set mark = '', digest = null where state = 'sent'").run()
        writeMeta(db, "token", undefined)
        writeMeta(db, "position", undefined)
      }),
    forgetNames: () => write((db) => void db.prepare("update pushed set conversation = null").run()),
    health: () => withDb((db): PushHealth => JSON.parse(readMeta(db, "health") ?? "{}")),
    saveHealth: (health) => write((db) => writeMeta(db, "health", JSON.stringify(health))),
    get: ({ source, id }) =>
      withDb((db) => {
        const row = rowQuery(db, "select * from pushed where source = ? and id = ?", PUSHED_ROW).get(source, id)
        return row && pushedRow(row)
      }),
    named: (conversation) =>
      withDb((db) => {
        const row = rowQuery(db, "select * from pushed where conversation = ?", PUSHED_ROW).get(conversation)
        return row && pushedRow(row)
      }),
    put: (row) => write((db) => put(db, row)),
    remove: ({ source, id }) => {
      write((db) => void db.prepare("delete from pushed where source = ? and id = ?").run(source, id))
      withDb((db) => void emptyLog(db))
    },
    inState: (state, limit) =>
      withDb((db) => {
        const sql = "select * from pushed where state = ? order by at, source, id limit ?"
        return rowQuery(db, sql, PUSHED_ROW).all(state, limit).map(pushedRow)
      }),
    ofProject: (project) =>
      withDb((db) => rowQuery(db, "select * from pushed where project = ?", PUSHED_ROW).all(project).map(pushedRow)),
    counts: () =>
      withDb((db) =>
        rowQuery(
          db,
          "select project, state, count(*) as count from pushed group by project, state order by project, state",
          { project: "text", state: PUSH_STATES, count: "integer" },
        ).all(),
      ),
    hold: (refs, now) =>
      write((db) => {
        const insert = db.prepare("insert or ignore into held (source, id, at) values (?, ?, ?)")
        for (const { source, id } of refs) insert.run(source, id, now)
      }),
    release: (refs) =>
      write((db) => {
        const remove = db.prepare("delete from held where source = ? and id = ?")
        return refs.map(({ source, id }) => remove.run(source, id).changes).some((changes) => changes > 0)
      }),
    isHeld: ({ source, id }) =>
      withDb((db) => db.prepare("select 1 from held where source = ? and id = ?").get(source, id) !== undefined),
    held: () =>
      withDb((db) =>
        rowQuery(db, "select source, id from held order by at, source, id", { source: "text", id: "text" }).all(),
      ),
    withdraw: (project, now) =>
      write((db) => void db.prepare("insert or replace into withdrawn (project, at) values (?, ?)").run(project, now)),
    withdrawn: () => withDb((db) => valueQuery(db, "select project from withdrawn order by project", "text").all()),
    endWithdrawal: (project) => write((db) => void db.prepare("delete from withdrawn where project = ?").run(project)),
    close: () => database?.close(),
  }
}

function begin(db: Db, hub: string): true {
  db.prepare("delete from pushed").run()
  db.prepare("delete from withdrawn").run()
  db.prepare("delete from meta").run()
  writeMeta(db, "hub", hub)
  return true
}

function readMeta(db: Db, key: string): string | undefined {
  return valueQuery(db, "select value from meta where key = ?", "text").get(key)
}

function writeMeta(db: Db, key: string, value: string | undefined): void {
  if (value === undefined) db.prepare("delete from meta where key = ?").run(key)
  else db.prepare("insert or replace into meta (key, value) values (?, ?)").run(key, value)
}

function put(db: Db, row: PushedRow): void {
  const { ref, conversation, shared_id, project, state, mark, digest, rev, why, rules, at } = row
  db.prepare(
    `insert or replace into pushed (source, id, conversation, shared_id, project, state, mark, digest, rev, why, rules, at)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  ).run(
    ref.source,
    ref.id,
    conversation ?? null,
    shared_id,
    project,
    state,
    mark,
    digest ?? null,
    rev ?? null,
    why ?? null,
    rules ?? null,
    at,
  )
}

const PUSHED_ROW = {
  source: "text",
  id: "text",
  conversation: "text?",
  shared_id: "text",
  project: "text",
  state: PUSH_STATES,
  mark: "text",
  digest: "text?",
  rev: "integer?",
  why: "text?",
  rules: "integer?",
  at: "integer",
} as const

function pushedRow({ source, id, conversation, digest, rev, why, rules, ...row }: RowOf<typeof PUSHED_ROW>): PushedRow {
  return {
    ref: { source, id },
    ...row,
    conversation: conversation ?? undefined,
    digest: digest ?? undefined,
    rev: rev ?? undefined,
    why: why ?? undefined,
    rules: rules ?? undefined,
  }
}
