import type { SourceId } from "../core/conversation.ts"
import { inTransaction } from "./database.ts"
import { type Knowledge, OWN_WORDS, projectId } from "./knowledge-rows.ts"

// What was decided in a project, in whose words, and what was taken back later.

export const DECISIONS_SCHEMA = `
  create table decision (
    id integer primary key,
    conversation_id integer not null,
    project_id integer,
    key text not null,
    number integer not null,
    at integer,
    kind text not null,
    origin text not null,
    quote text not null,
    subject text not null,
    files text not null,
    symbols text not null,
    reversed_by text
  );
  create index decision_conversation on decision (conversation_id);
  create index decision_project on decision (project_id, at);
  create index decision_key on decision (key);
  create table decision_about (
    decision_id integer not null,
    kind text not null,
    name text not null,
    primary key (decision_id, kind, name)
  ) without rowid;
  create index decision_about_name on decision_about (kind, name);
  create virtual table decision_words using fts5(words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
  -- Projects whose decisions changed since it was last worked out which of them reverse others.
  create table decision_stale (project_id integer primary key) without rowid;
`

export const DECISION_KINDS = ["plan", "answer", "said", "adr", "breaking", "revert"] as const
export type DecisionKind = (typeof DECISION_KINDS)[number]

export type KeptDecision = {
  /** Names this decision, wherever it is told again. */
  key: string
  kind: DecisionKind
  /** As it was written. */
  quote: string
  /** The message that states it. */
  number: number
  at?: number
  /** Named with it, or edited after it and before the person spoke again. Relative to the project. */
  files: string[]
  symbols: string[]
  /** The words that it is about. */
  subject: string[]
  /** Whose words the quote holds. An approved plan and a chosen answer are the agent's. */
  origin: "person" | "agent"
}

export function saveDecisions(
  db: Knowledge,
  conversation: number,
  project: string | undefined,
  decisions: KeptDecision[],
): void {
  if (decisions.length === 0) return
  const of = project === undefined ? null : projectId(db, project)
  const put = db.prepare(
    `insert into decision (conversation_id, project_id, key, number, at, kind, origin, quote, subject, files, symbols)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
  )
  const index = db.prepare("insert into decision_words (rowid, words) values (?, ?)")
  const name = db.prepare("insert or ignore into decision_about (decision_id, kind, name) values (?, ?, ?)")
  for (const { key, number, at, kind, origin, quote, subject, files, symbols } of decisions) {
    const lists = [subject, files, symbols].map((list) => JSON.stringify(list))
    const id = put.pluck().get(conversation, of, key, number, at ?? null, kind, origin, quote, ...lists)
    index.run(id, [quote, ...subject, ...symbols].join("\n"))
    for (const file of files) name.run(id, "file", file)
    for (const symbol of symbols) name.run(id, "symbol", symbol.toLowerCase())
  }
  if (of !== null) db.prepare("insert or ignore into decision_stale (project_id) values (?)").run(of)
}

export function removeDecisions(db: Knowledge, conversation: number): void {
  db.prepare(
    `insert or ignore into decision_stale (project_id)
     select distinct project_id from decision where conversation_id = ? and project_id is not null`,
  ).run(conversation)
  db.prepare("delete from decision_words where rowid in (select id from decision where conversation_id = ?)").run(
    conversation,
  )
  db.prepare("delete from decision_about where decision_id in (select id from decision where conversation_id = ?)").run(
    conversation,
  )
  db.prepare("delete from decision where conversation_id = ?").run(conversation)
}

export type MadeDecision = {
  key: string
  kind: string
  quote: string
  number: number
  subject: string[]
  conversation: string
}

/** For each project where something changed, `reversals` gets all its decisions in order of time: reversed key → by key. */
export function renewReversals(db: Knowledge, reversals: (decisions: MadeDecision[]) => Map<string, string>): void {
  const stale = db.prepare("select project_id from decision_stale").pluck()
  if (stale.get() === undefined) return // whoever only reads takes no lock
  inTransaction(db, () => {
    for (const project of stale.all() as number[]) {
      const found = reversals(inOrder(db, project))
      db.prepare("update decision set reversed_by = null where project_id = ? and reversed_by is not null").run(project)
      const mark = db.prepare("update decision set reversed_by = ? where project_id = ? and key = ?")
      for (const [earlier, later] of found) mark.run(later, project, earlier)
      db.prepare("delete from decision_stale where project_id = ?").run(project)
    }
  })
}

function inOrder(db: Knowledge, project: number): MadeDecision[] {
  const rows = db
    .prepare(
      `select d.key, d.kind, d.quote, d.number, d.subject, c.source || ':' || c.native_id as conversation
       from decision d join conversation c on c.id = d.conversation_id
       where d.project_id = ? order by ifnull(d.at, ifnull(c.ended_at, 0)), d.conversation_id, d.number, d.id`,
    )
    .all(project) as (Omit<MadeDecision, "subject"> & { subject: string })[]
  return rows.map((row) => ({ ...row, subject: JSON.parse(row.subject) as string[] }))
}

export type DecisionFilter = {
  /** Only of this project; a part of its path is enough where `exactly` is not set. */
  project?: string
  exactly?: boolean
  /** Relative to the project, or the end of it. */
  file?: string
  symbol?: string
  /** All of them. */
  words?: string[]
  /** Of these projects nothing is told. */
  except?: string[]
  limit: number
}

export type KnownDecision = KeptDecision & {
  source: SourceId
  id: string
  root: string
  project?: string
  /** Nobody else's words can stand in it. */
  is_own_words: boolean
  /** The later decision that took it back. */
  reversed_by?: Pick<KeptDecision, "key" | "quote" | "number" | "at" | "origin"> & {
    source: SourceId
    id: string
    is_own_words: boolean
  }
}

const CHOSEN = `
  from decision fact join conversation c on c.id = fact.conversation_id left join project p on p.id = fact.project_id
  where (@project is null or (case when @exactly then p.path = @project else instr(lower(p.path), lower(@project)) end))
    and (@match is null or fact.id in (select rowid from decision_words where decision_words match @match))
    and (p.path is null or p.path not in (select value from json_each(@except)))
    and (@file is null or exists (
      select 1 from decision_about a where a.decision_id = fact.id and a.kind = 'file'
        and (a.name = @file or substr(a.name, -length(@file) - 1) = '/' || @file)))
    and (@symbol is null or exists (
      select 1 from decision_about a where a.decision_id = fact.id and a.kind = 'symbol'
        and (a.name = lower(@symbol) or substr(a.name, -length(@symbol) - 1) = '.' || lower(@symbol))))`

/** Newest first; `total` is all that there are. */
export function knownDecisions(db: Knowledge, filter: DecisionFilter): { decisions: KnownDecision[]; total: number } {
  if (filter.words?.length === 0) return { decisions: [], total: 0 }
  const values = {
    match: filter.words?.map((word) => `"${word.replaceAll('"', "")}"`).join(" AND ") ?? null,
    project: filter.project ?? null,
    exactly: filter.exactly ? 1 : 0,
    except: JSON.stringify(filter.except ?? []),
    file: filter.file ?? null,
    symbol: filter.symbol ?? null,
  }
  const total = db.prepare(`select count(*) ${CHOSEN}`).pluck().get(values) as number
  const rows = db
    .prepare(
      `select fact.*, c.source, c.native_id, c.root, p.path as project, ${OWN_WORDS} as own ${CHOSEN}
       order by ifnull(fact.at, ifnull(c.ended_at, 0)) desc, fact.conversation_id, fact.number desc, fact.id desc limit @limit`,
    )
    .all({ ...values, limit: filter.limit }) as DecisionRow[]
  return { decisions: rows.map((row) => known(db, row)), total }
}

type DecisionRow = {
  source: SourceId
  native_id: string
  root: string
  project: string | null
  key: string
  number: number
  at: number | null
  kind: DecisionKind
  origin: "person" | "agent"
  quote: string
  subject: string
  files: string
  symbols: string
  reversed_by: string | null
  own: number
}

function known(db: Knowledge, row: DecisionRow): KnownDecision {
  const later = row.reversed_by === null ? undefined : laterOf(db, row.reversed_by)
  return {
    source: row.source,
    id: row.native_id,
    root: row.root,
    ...(row.project !== null && { project: row.project }),
    key: row.key,
    kind: row.kind,
    origin: row.origin,
    quote: row.quote,
    number: row.number,
    ...(row.at !== null && { at: row.at }),
    subject: JSON.parse(row.subject) as string[],
    files: JSON.parse(row.files) as string[],
    symbols: JSON.parse(row.symbols) as string[],
    is_own_words: row.own === 1,
    ...(later && { reversed_by: later }),
  }
}

type LaterRow = Pick<KeptDecision, "key" | "quote" | "number" | "origin"> & {
  at: number | null
  source: SourceId
  id: string
  own: number
}

function laterOf(db: Knowledge, key: string): KnownDecision["reversed_by"] {
  const row = db
    .prepare(
      `select fact.key, fact.quote, fact.number, fact.at, fact.origin, c.source, c.native_id as id, ${OWN_WORDS} as own
       from decision fact join conversation c on c.id = fact.conversation_id where fact.key = ?`,
    )
    .get(key) as LaterRow | undefined
  if (!row) return undefined
  const { at, own, ...later } = row
  return { ...later, ...(at !== null && { at }), is_own_words: own === 1 }
}
