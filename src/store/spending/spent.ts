import type { Spending } from "../../core/usage.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"

// Stores the spending of conversations, and the commits and pull requests that they made.

export const SPENT_SCHEMA = `
  create table meta (key text primary key, value text not null) without rowid;
  -- name: as the history's feed calls it. parent: the conversation that started it.
  create table conversation (
    id integer primary key,
    name text not null unique,
    source text not null,
    native_id text not null,
    kind text not null,
    project text,
    branch text,
    title text,
    parent text,
    unique (source, native_id)
  );
  -- Few, and each of them in many rows. Empty: not said.
  create table spent_by (
    id integer primary key,
    model text not null,
    service_tier text not null,
    speed text not null,
    unique (model, service_tier, speed)
  );
  create table spent (
    conversation_id integer not null,
    number integer not null,
    seq integer not null,
    at integer not null,
    by_id integer not null,
    context integer not null,
    superseded integer not null,
    answers integer not null,
    input integer not null,
    output integer not null,
    reasoning integer not null,
    cache_read integer not null,
    cache_write_5m integer not null,
    cache_write_1h integer not null,
    cache_write_other integer not null,
    web_searches integer not null,
    web_fetches integer not null,
    recorded real not null,
    primary key (conversation_id, seq)
  ) without rowid;
  create index spent_at on spent (at);

  create table made (
    conversation_id integer not null,
    number integer not null,
    at integer not null,
    type text not null,
    name text not null,
    subject text,
    primary key (conversation_id, number, type, name)
  ) without rowid;
`

export type SpentWrite = Spending & { number: number; superseded: boolean }
export type MadeWrite = { number: number; at: number; type: "commit" | "pull_request"; name: string; subject?: string }

/** A conversation in this file, with or without spending. `parent` is the conversation that started it. */
export type Spender = {
  id: number
  source: string
  native_id: string
  kind: string
  project?: string
  branch?: string
  title?: string
  parent?: string
}

export type KnownSpending = Spending & { conversation: number; number: number; superseded: boolean }
export type KnownMade = MadeWrite & { conversation: number }

export function saveSpent(db: Db, conversation: number, spent: SpentWrite[], made: MadeWrite[]): void {
  const insertModel = db.prepare(
    `insert into spent_by (model, service_tier, speed) values (@model, @service_tier, @speed)
     on conflict do update set model = model returning id`,
  )
  const insertSpent = db.prepare(
    `insert into spent (conversation_id, number, seq, at, by_id, context, superseded, answers, input, output, reasoning,
       cache_read, cache_write_5m, cache_write_1h, cache_write_other, web_searches, web_fetches, recorded)
     values (@conversation, @number, @seq, @at, @by_id, @context, @superseded, @answers, @input, @output, @reasoning,
       @cache_read, @cache_write_5m, @cache_write_1h, @cache_write_other, @web_searches, @web_fetches, @recorded)`,
  )
  for (const [seq, { model = "", service_tier = "", speed = "", superseded, ...part }] of spent.entries()) {
    const by_id = insertModel.pluck().get({ model, service_tier, speed })
    insertSpent.run({ ...part, conversation, seq, by_id, superseded: superseded ? 1 : 0 })
  }
  const insertMade = db.prepare(
    "insert or ignore into made (conversation_id, number, at, type, name, subject) values (?, ?, ?, ?, ?, ?)",
  )
  for (const { number, at, type, name, subject } of made)
    insertMade.run(conversation, number, at, type, name, subject ?? null)
}

export function removeSpent(db: Db, conversation: number): void {
  db.prepare("delete from spent where conversation_id = ?").run(conversation)
  db.prepare("delete from made where conversation_id = ?").run(conversation)
}

type SpentRow = Omit<RowOf<typeof SPENT_ROW>, "superseded"> &
  Pick<Spending, "model" | "service_tier" | "speed"> & { superseded: number | boolean }

/** Returns the spending in a period, both ends included; times are exact to a quarter of an hour. */
export function spentBetween(db: Db, from: number, to: number): KnownSpending[] {
  const models = new Map(
    rowQuery(db, "select id, model, service_tier, speed from spent_by", MODEL_ROW)
      .all()
      .map((row) => [row.id, row]),
  )
  const rows: SpentRow[] = rowQuery(
    db,
    `select conversation_id conversation, number, at, by_id, context, superseded, answers, input, output, reasoning, cache_read,
       cache_write_5m, cache_write_1h, cache_write_other, web_searches, web_fetches, recorded
     from spent where at between ? and ? order by conversation_id, seq`,
    SPENT_ROW,
  ).all(from, to)
  for (const row of rows) {
    const { model, service_tier, speed } = models.get(row.by_id)!
    row.superseded = row.superseded === 1
    // Give all rows the same fields: if some rows lacked them, reading a hundred thousand rows would take three times as long.
    row.model = model || undefined
    row.service_tier = service_tier || undefined
    row.speed = speed || undefined
  }
  return rows as KnownSpending[]
}
const SPENT_ROW = {
  conversation: "integer",
  number: "integer",
  at: "integer",
  by_id: "integer",
  context: "integer",
  superseded: "integer",
  answers: "integer",
  input: "integer",
  output: "integer",
  reasoning: "integer",
  cache_read: "integer",
  cache_write_5m: "integer",
  cache_write_1h: "integer",
  cache_write_other: "integer",
  web_searches: "integer",
  web_fetches: "integer",
  recorded: "real",
} as const
const MODEL_ROW = { id: "integer", model: "text", service_tier: "text", speed: "text" } as const

/** Returns what conversations made, oldest first. */
export function madeThings(db: Db, type: MadeWrite["type"]): KnownMade[] {
  const rows = rowQuery(
    db,
    `select conversation_id conversation, number, at, type, name, subject from made where type = ?
       order by at, conversation_id, number`,
    {
      number: "integer",
      at: "integer",
      type: ["commit", "pull_request"],
      name: "text",
      subject: "text?",
      conversation: "integer",
    },
  ).all(type)
  return rows.map(({ subject, ...row }) => ({ ...row, subject: subject ?? undefined }))
}

/** Returns all conversations, including those without spending: spending of their subagents may be attributed to them. */
export function spenders(db: Db): Spender[] {
  const rows = rowQuery(db, "select id, source, native_id, kind, project, branch, title, parent from conversation", {
    id: "integer",
    source: "text",
    native_id: "text",
    kind: "text",
    title: "text?",
    project: "text?",
    branch: "text?",
    parent: "text?",
  }).all()
  return rows.map(({ project, branch, title, parent, ...row }) => ({
    ...row,
    project: project ?? undefined,
    branch: branch ?? undefined,
    title: title ?? undefined,
    parent: parent ?? undefined,
  }))
}

/** Deletes unused models, whose names may contain the name of a person or a project. */
export function dropUnusedModels(db: Db): void {
  db.exec("delete from spent_by where id not in (select by_id from spent)")
}
