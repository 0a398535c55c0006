import { mkdirSync } from "node:fs"
import { dirname } from "node:path"
import { DatabaseSync } from "node:sqlite"

/**
 * The time at which the upgrade of these databases finished. They are databases of OpenCode as its two generations write them:
 * the tables of 1.x, those of 2.x, and the result of the upgrade.
 */
export const UPGRADED_AT = 1_790_000_000_000
const HOUR = 3_600_000

const PROJECT = "create table project (id text primary key, worktree text not null, vcs text, name text)"

const FIRST_GENERATION = `
create table session (id text primary key, project_id text not null, parent_id text, slug text not null,
  directory text not null, title text not null, version text not null, revert text, agent text, model text,
  time_created integer not null, time_updated integer not null, time_archived integer);
create table message (id text primary key, session_id text not null, time_created integer not null,
  time_updated integer not null, data text not null);
create table part (id text primary key, message_id text not null, session_id text not null,
  time_created integer not null, time_updated integer not null, data text not null);`

const SECOND_GENERATION = `
create table session_v2 (id text primary key, project_id text not null, parent_id text, fork_session_id text,
  fork_boundary text, slug text not null, directory text not null, title text, version text not null, share_url text,
  revert text, agent text, model text, time_created integer not null, time_updated integer not null,
  time_archived integer, time_suspended integer);
create table session_message (id text primary key, session_id text not null, type text not null, seq integer not null,
  time_created integer not null, time_updated integer not null, data text not null);
create table session_inbox (id text primary key, session_id text not null, type text not null, payload text not null);
create table kv (key text primary key, value text not null, time_created integer not null, time_updated integer not null);`

type Generations = { first?: boolean; second?: boolean; completed?: boolean }
type Body = Record<string, unknown>

/** Creates a database with the tables of one generation or both. `completed`: the upgrade has recorded that it is done. */
export function opencodeDatabase(path: string, { first, second, completed }: Generations) {
  mkdirSync(dirname(path), { recursive: true })
  const db = new DatabaseSync(path)
  db.exec(`pragma journal_mode = wal; pragma synchronous = off; ${PROJECT};`)
  if (first) db.exec(FIRST_GENERATION)
  if (second) db.exec(SECOND_GENERATION)
  db.exec("insert into project values ('prj', '/home/dev/queue', 'git', null)")
  if (completed)
    db.prepare("insert into kv values ('migration.v1-v2', ?, ?, ?)").run(
      JSON.stringify({ phase: "completed" }),
      UPGRADED_AT - HOUR,
      UPGRADED_AT,
    )
  const insert = (table: string, row: Record<string, string | number | null>) => {
    const names = Object.keys(row)
    db.prepare(`insert into ${table} (${names.join(", ")}) values (${names.map(() => "?").join(", ")})`).run(
      ...Object.values(row),
    )
  }
  const session = (table: string, id: string, at: number, title: string | null, more: Record<string, string | null>) =>
    insert(table, {
      ...{ id, project_id: "prj", slug: "slug", directory: "/home/dev/queue", title, version: "1.18.33" },
      ...{ time_created: at, time_updated: at, ...more },
    })
  let parts = 0
  let seq = 0
  return {
    db,
    session: (id: string, at: number, title: string, more: Record<string, string | null> = {}) =>
      session("session", id, at, title, more),
    sessionV2: (id: string, at: number, title: string | null, more: Record<string, string | null> = {}) =>
      session("session_v2", id, at, title, { version: "2.0.3", ...more }),
    /** A message in the tables of 1.x. */
    message(sessionId: string, id: string, at: number, data: Body, ...bodies: Body[]) {
      const text = JSON.stringify({ time: { created: at }, ...data })
      insert("message", { id, session_id: sessionId, time_created: at, time_updated: at, data: text })
      for (const body of bodies)
        insert("part", {
          ...{ id: `prt_${id}_${String(++parts).padStart(3, "0")}`, message_id: id, session_id: sessionId },
          ...{ time_created: at, time_updated: at, data: JSON.stringify(body) },
        })
    },
    /** A message in the table of 2.x. */
    row(sessionId: string, id: string, at: number, type: string, data: Body) {
      const text = JSON.stringify({ time: { created: at }, ...data })
      insert("session_message", {
        ...{ id, session_id: sessionId, type, seq: seq++, time_created: at, time_updated: at, data: text },
      })
    },
    close: () => db.close(),
  }
}

export type OpencodeDatabase = ReturnType<typeof opencodeDatabase>

export const userMessage = { role: "user", agent: "build", model: { providerID: "mock", modelID: "scripted" } }
export const assistantMessage = {
  ...{ role: "assistant", agent: "build", modelID: "scripted", providerID: "mock", cost: 0.01, finish: "stop" },
  tokens: { input: 10, output: 2, reasoning: 0, cache: { read: 0, write: 0 } },
}
export const textPart = (text: string, more: Body = {}) => ({ type: "text", text, ...more })
export const step = (input: number, output: number) => ({
  ...{ type: "step-finish", reason: "stop", cost: 0.01 },
  tokens: { input, output, reasoning: 0, cache: { read: 0, write: 0 } },
})
/** An answer as 2.x writes it. */
export const reply = (...content: Body[]) => ({
  ...{ agent: "build", model: { providerID: "mock", id: "scripted" }, content, finish: "stop", cost: 0.01 },
  tokens: { input: 10, output: 2, reasoning: 0, cache: { read: 0, write: 0 } },
})
