import { formatRef } from "../../core/ref.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { knownProject, OWN_WORDS_SQL, projectId, storedSpellings } from "./rows.ts"

// Stores the decisions in each project, who wrote their words, and which of them were reversed later.

export const DECISIONS_SCHEMA = `
  create table decision (
    id integer primary key,
    -- Either the message that states it, or the commit.
    conversation_id integer,
    number integer,
    hash text,
    project_id integer,
    key text not null,
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
  create index decision_commit on decision (project_id, kind) where hash is not null;
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

const DECISION_KINDS = ["plan", "answer", "said", "adr", "breaking", "revert", "note"] as const
export type DecisionKind = (typeof DECISION_KINDS)[number]

export type StatedDecision = {
  /** Identifies this decision, even if it is repeated elsewhere. */
  key: string
  kind: DecisionKind
  /** The exact words. */
  quote: string
  at?: number
  /** Files named in the decision, or edited between it and the person's next message. Relative to the project. */
  files: string[]
  symbols: string[]
  /** The words that describe the decision's subject. */
  subject: string[]
  /**
   * The author of the quote. Approved plans and chosen answers are the agent's words; the author of a file or a commit is not
   * known.
   */
  origin: "person" | "agent" | "document" | "commit"
  /** The ref of the message or commit whose decisions this one reverses, even if they have no words in common. */
  rejects?: string
  /** The mark of the commit that contains the decision's edits. A commit that reverts that one reverses the decision. */
  committed?: string
}
export type StoredDecision = StatedDecision & {
  /** The number of the message that states the decision. */
  number: number
}
export type CommitDecision = StatedDecision & { hash: string }

export function saveDecisions(
  db: Db,
  conversation: number,
  project: string | undefined,
  decisions: StoredDecision[],
): void {
  insertDecisions(
    db,
    project,
    decisions.map((decision) => ({ ...decision, conversation })),
  )
}

/** Replaces the decisions from the project's commits, which were read up to this head. */
export function saveCommitDecisions(db: Db, project: string, decisions: CommitDecision[], head: string): void {
  inTransaction(db, () => {
    removeCommitDecisions(db, projectId(db, project))
    insertDecisions(db, project, decisions)
    saveDecidedHead(db, project, head)
  })
}

/** Records that the decisions of all commits up to this head are stored. */
function saveDecidedHead(db: Db, project: string, head: string): void {
  db.prepare("update git_read set decided = ? where project_id = ?").run(head, knownProject(db, project) ?? null)
}

type DecisionWrite = StatedDecision & { conversation?: number; number?: number; hash?: string }

function insertDecisions(db: Db, project: string | undefined, decisions: DecisionWrite[]): void {
  if (decisions.length === 0) return
  const projectRow = project === undefined ? null : projectId(db, project)
  const insertDecision = db.prepare(
    `insert into decision (conversation_id, number, hash, project_id, key, at, kind, origin, quote, subject, files, symbols)
     values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) returning id`,
  )
  const insertWords = db.prepare("insert into decision_words (rowid, words) values (?, ?)")
  const insertName = db.prepare("insert or ignore into decision_about (decision_id, kind, name) values (?, ?, ?)")
  for (const decision of decisions) {
    const { key, at, kind, origin, quote, subject, files, symbols } = decision
    const statedIn = [decision.conversation ?? null, decision.number ?? null, decision.hash ?? null]
    const lists = [subject, files, symbols].map((list) => JSON.stringify(list))
    const id = insertDecision.pluck().get(...statedIn, projectRow, key, at ?? null, kind, origin, quote, ...lists)
    insertWords.run(id, [quote, ...subject, ...symbols].join("\n"))
    for (const file of files) insertName.run(id, "file", file)
    for (const symbol of symbols) insertName.run(id, "symbol", symbol.toLowerCase())
    if (decision.rejects !== undefined) insertName.run(id, "rejects", decision.rejects)
    if (decision.committed !== undefined) insertName.run(id, "committed", decision.committed)
  }
  if (projectRow !== null) db.prepare("insert or ignore into decision_stale (project_id) values (?)").run(projectRow)
}

export function removeDecisions(db: Db, conversation: number): void {
  deleteByIds(db, valueQuery(db, "select id from decision where conversation_id = ?", "integer").all(conversation))
}

export function removeCommitDecisions(db: Db, project: number): void {
  const sql = "select id from decision where hash is not null and project_id = ?"
  deleteByIds(db, valueQuery(db, sql, "integer").all(project))
}

function deleteByIds(db: Db, ids: number[]): void {
  const markStale = db.prepare(
    `insert or ignore into decision_stale (project_id)
     select project_id from decision where id = ? and project_id is not null`,
  )
  const deleteWords = db.prepare("delete from decision_words where rowid = ?")
  const deleteAbout = db.prepare("delete from decision_about where decision_id = ?")
  const deleteDecision = db.prepare("delete from decision where id = ?")
  for (const id of ids) for (const statement of [markStale, deleteWords, deleteAbout, deleteDecision]) statement.run(id)
}

/**
 * A condition that leaves out a commit's decision if a conversation states it too, because the conversation contains the
 * reason.
 */
const IS_STATED_ONCE = `(fact.hash is null or not exists (
  select 1 from decision o where o.project_id = fact.project_id and o.kind = fact.kind and o.hash is null
    and substr(o.quote, 1, instr(o.quote || char(10), char(10)) - 1)
      = substr(fact.quote, 1, instr(fact.quote || char(10), char(10)) - 1)))`

export type MadeDecision = {
  key: string
  kind: string
  quote: string
  number: number
  subject: string[]
  /** `source:id`, or `git:<hash>`. */
  conversation: string
  rejects?: string
  committed?: string
}

/** Whether `renewReversals` has anything to do. */
export function hasStaleReversals(db: Db): boolean {
  return db.prepare("select 1 from decision_stale").get() !== undefined
}

/**
 * Calls `findReversals` for each project whose decisions have changed, with all of its decisions in order of time.
 * `findReversals` returns a map from the key of each reversed decision to that of the later one. It may take seconds, during
 * which others can write. If the decisions are still the same afterwards, the result is saved and the project is no longer
 * marked as changed. Otherwise `findReversals` is called again; after a few attempts the project stays marked.
 */
export function renewReversals(db: Db, findReversals: (decisions: MadeDecision[]) => Map<string, string>): void {
  const staleProjects = valueQuery(db, "select project_id from decision_stale", "integer").all() // reading takes no lock
  for (const project of staleProjects)
    for (let i = 0; i < MAX_ATTEMPTS; i++) {
      const decisions = decisionsInOrder(db, project)
      const reversed = findReversals(decisions.map(toMadeDecision))
      if (inTransaction(db, () => saveReversals(db, project, decisions, reversed))) break
    }
}

const MAX_ATTEMPTS = 3

/** Returns false if the decisions have changed, so that the result is outdated. Does nothing if another process was first. */
function saveReversals(db: Db, project: number, decisions: OrderedDecision[], reversed: Map<string, string>): boolean {
  if (db.prepare("select 1 from decision_stale where project_id = ?").get(project) === undefined) return true
  if (JSON.stringify(decisionsInOrder(db, project)) !== JSON.stringify(decisions)) return false
  db.prepare("update decision set reversed_by = null where project_id = ? and reversed_by is not null").run(project)
  const mark = db.prepare("update decision set reversed_by = ? where project_id = ? and key = ?")
  for (const [earlier, later] of reversed) mark.run(later, project, earlier)
  db.prepare("delete from decision_stale where project_id = ?").run(project)
  return true
}

type OrderedDecision = RowOf<typeof ORDERED_DECISION_ROW>
const ORDERED_DECISION_ROW = {
  number: "integer",
  key: "text",
  kind: "text",
  quote: "text",
  conversation: "text",
  subject: "text",
  time: "integer",
  rejects: "text?",
  committed: "text?",
} as const

function decisionsInOrder(db: Db, project: number): OrderedDecision[] {
  const decisions = rowQuery(
    db,
    `select fact.key, fact.kind, fact.quote, ifnull(fact.number, 0) as number, fact.subject,
         ifnull(c.source || ':' || c.native_id, 'git:' || fact.hash) as conversation,
         ifnull(fact.at, ifnull(c.ended_at, 0)) as time,
         (select name from decision_about a where a.decision_id = fact.id and a.kind = 'rejects') as rejects,
         (select name from decision_about a where a.decision_id = fact.id and a.kind = 'committed') as committed
       from decision fact left join conversation c on c.id = fact.conversation_id
       where fact.project_id = ? and ${IS_STATED_ONCE}
       order by time, fact.conversation_id, fact.number, fact.id`,
    ORDERED_DECISION_ROW,
  ).all(project)
  const otherDecisions = decisions.filter(({ kind }) => kind !== "adr")
  const records = sortByName(decisions.filter(({ kind }) => kind === "adr"))
  return [...otherDecisions, ...records].sort((a, b) => a.time - b.time)
}

/**
 * Sorts the decision records in documents by the numbers or dates in their names, because a file's time only shows that its
 * record is not newer.
 */
function sortByName(records: OrderedDecision[]): OrderedDecision[] {
  const byName = new Intl.Collator("en", { numeric: true }).compare
  let newest = 0
  return records
    .sort((a, b) => byName(a.conversation, b.conversation))
    .map((record) => {
      newest = Math.max(newest, record.time)
      return { ...record, time: newest }
    })
}

function toMadeDecision({ time: _, subject, rejects, committed, ...row }: OrderedDecision): MadeDecision {
  return {
    ...row,
    subject: JSON.parse(subject),
    rejects: rejects ?? undefined,
    committed: committed ?? undefined,
  }
}

export type DecisionFilter = {
  /** Selects this project. Unless `exactly` is set, a part of its path is enough. */
  project?: string
  exactly?: boolean
  /** A path relative to the project, or the end of such a path. */
  file?: string
  symbol?: string
  kind?: DecisionKind
  /** Words that must all occur. */
  words?: string[]
  /** Projects to exclude. */
  except?: string[]
  /** Includes decisions of commits that no conversation mentions. */
  with_commits?: boolean
  /** Selects decisions made in this period, both ends included. */
  from?: number
  to?: number
  /** Selects decisions stated by this message (`source:id#12`) or this commit (`git:<hash>`). */
  stated_in?: string
  /** Selects decisions that were reversed by one of the decisions with these keys. */
  taken_back_by?: string[]
  limit: number
  offset?: number
}

/** Returns those of these symbols that a decision in any project names, in the given order. */
export function symbolsDecidedOn(db: Db, symbols: readonly string[]): string[] {
  const sql =
    "select distinct name from decision_about where kind = 'symbol' and name in (select value from json_each(?))"
  const named = new Set(valueQuery(db, sql, "text").all(JSON.stringify(symbols.map((name) => name.toLowerCase()))))
  return symbols.filter((name) => named.has(name.toLowerCase()))
}

export type KnownDecision = QuotedDecision & {
  /** The agent's id of the conversation. Missing if a commit states the decision. */
  conversation?: string
  files: string[]
  symbols: string[]
  project?: string
  /** The later decision that reversed this one. */
  reversed_by?: QuotedDecision
}

type QuotedDecision = Pick<StatedDecision, "key" | "kind" | "quote" | "at" | "origin"> & {
  /** The ref of the message that states the decision, or `git:<hash>`. */
  ref: string
  /** True if the quote cannot contain a stranger's words. */
  is_own_words: boolean
  /** The person from whose history the conversation was imported. */
  imported_from?: string
}

const STATED_IN = "ifnull(c.source || ':' || c.native_id || '#' || fact.number, 'git:' || fact.hash)"
const MADE_AT = "ifnull(fact.at, ifnull(c.ended_at, 0))"
const FROM_MATCHING = `
  from decision fact left join conversation c on c.id = fact.conversation_id
    left join project p on p.id = fact.project_id
  where (fact.hash is null or @commits) and ${IS_STATED_ONCE} and (@kind is null or fact.kind = @kind)
    and (@stated is null or ${STATED_IN} = @stated)
    and (@later is null or fact.reversed_by in (select value from json_each(@later)))
    and (@from is null or ${MADE_AT} >= @from) and (@to is null or ${MADE_AT} <= @to)
    and (@project is null or (case when @exactly then p.path = @project else instr(lower(p.path), lower(@project)) end))
    and (@match is null or fact.id in (select rowid from decision_words where decision_words match @match))
    and (p.path is null or p.path not in (select value from json_each(@except)))
    and (@file is null or exists (
      select 1 from decision_about a where a.decision_id = fact.id and a.kind = 'file'
        and (a.name = @file or substr(a.name, -length(@file) - 1) = '/' || @file)))
    and (@symbol is null or exists (
      select 1 from decision_about a where a.decision_id = fact.id and a.kind = 'symbol'
        and (a.name = lower(@symbol) or substr(a.name, -length(@symbol) - 1) = '.' || lower(@symbol))))`

/** Returns decisions, newest first; `total` counts all matches. */
export function knownDecisions(db: Db, filter: DecisionFilter): { decisions: KnownDecision[]; total: number } {
  if (filter.words?.length === 0) return { decisions: [], total: 0 }
  const values = {
    match: filter.words?.map((word) => `"${word.replaceAll('"', "")}"`).join(" AND ") ?? null,
    project:
      filter.project === undefined ? null : filter.exactly ? storedSpellings(db, [filter.project])[0] : filter.project,
    exactly: filter.exactly ? 1 : 0,
    except: JSON.stringify(storedSpellings(db, filter.except ?? [])),
    file: filter.file ?? null,
    symbol: filter.symbol ?? null,
    kind: filter.kind ?? null,
    commits: filter.with_commits ? 1 : 0,
    from: filter.from ?? null,
    to: filter.to ?? null,
    stated: filter.stated_in ?? null,
    later: filter.taken_back_by === undefined ? null : JSON.stringify(filter.taken_back_by),
  }
  const total = valueQuery(db, `select count(*) ${FROM_MATCHING}`, "integer").get(values)!
  const rows = rowQuery(
    db,
    `select ${QUOTED_COLUMNS}, fact.files, fact.symbols, fact.reversed_by, p.path as project ${FROM_MATCHING}
     order by ${MADE_AT} desc, fact.conversation_id, fact.number desc, fact.id desc limit @limit offset @offset`,
    DECISION_ROW,
  ).all({ ...values, limit: filter.limit, offset: filter.offset ?? 0 })
  return { decisions: rows.map((row) => knownDecision(db, row)), total }
}

/**
 * The columns of a quoted decision. A commit message may contain anybody's words, so its decision never counts as own words.
 */
const QUOTED_COLUMNS = `fact.key, fact.kind, fact.quote, fact.number, fact.at, fact.origin, fact.hash,
  c.source, c.native_id, c.imported_from, fact.hash is null and ${OWN_WORDS_SQL} as own`

type QuotedRow = RowOf<typeof QUOTED_ROW>
const QUOTED_ROW = {
  key: "text",
  kind: DECISION_KINDS,
  quote: "text",
  origin: ["person", "agent", "document", "commit"],
  // Either the hash of a commit, or the three fields of a ref.
  hash: "text?",
  source: "text?",
  native_id: "text?",
  number: "integer?",
  at: "integer?",
  imported_from: "text?",
  own: "integer",
} as const
const DECISION_ROW = { ...QUOTED_ROW, project: "text?", files: "text", symbols: "text", reversed_by: "text?" } as const

function knownDecision(db: Db, row: RowOf<typeof DECISION_ROW>): KnownDecision {
  const later = row.reversed_by === null ? undefined : decisionWithKey(db, row.reversed_by)
  return {
    ...quotedDecision(row),
    conversation: row.native_id ?? undefined,
    project: row.project ?? undefined,
    files: JSON.parse(row.files),
    symbols: JSON.parse(row.symbols),
    reversed_by: later && quotedDecision(later),
  }
}

function quotedDecision(row: QuotedRow): QuotedDecision {
  const { key, kind, quote, origin, at, hash } = row
  const ref =
    hash === null ? formatRef({ source: row.source!, id: row.native_id!, number: row.number! }) : `git:${hash}`
  return {
    key,
    kind,
    quote,
    origin,
    at: at ?? undefined,
    ref,
    is_own_words: row.own === 1,
    imported_from: row.imported_from ?? undefined,
  }
}

function decisionWithKey(db: Db, key: string): QuotedRow | undefined {
  const sql = `select ${QUOTED_COLUMNS} from decision fact left join conversation c on c.id = fact.conversation_id where fact.key = ?`
  return rowQuery(db, sql, QUOTED_ROW).get(key)
}
