import type { SourceId } from "../../core/conversation.ts"
import { sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { knownProject, projectId } from "./rows.ts"

// Stores the words of what people and agents said, turn by turn, so that a prompt finds the conversations about the same thing.

export const TURNS_SCHEMA = `
  create table turn (id integer primary key, conversation_id integer not null, number integer not null);
  create index turn_conversation on turn (conversation_id);
  create virtual table turn_words using fts5(words, content='', contentless_delete=1, tokenize='unicode61 remove_diacritics 2');
  create virtual table turn_vocabulary using fts5vocab(turn_words, 'row');
  create table topic (
    project_id integer not null,
    conversation_id integer not null,
    word text not null,
    count integer not null,
    primary key (conversation_id, word)
  ) without rowid;
  create index topic_word on topic (project_id, word);
`

export type TurnWords = {
  /** The number of its first message. */
  number: number
  /** The words of what was said, with repeats. */
  words: string[]
}

/** The most frequent words of a conversation, each with how often it occurs. */
export type Topic = [word: string, count: number][]

export function saveTurns(
  db: Db,
  conversation: number,
  project: string,
  { turns, topic }: { turns: readonly TurnWords[]; topic: Topic },
): void {
  const insertTurn = valueQuery(db, "insert into turn (conversation_id, number) values (?, ?) returning id", "integer")
  const insertWords = db.prepare("insert into turn_words (rowid, words) values (?, ?)")
  for (const { number, words } of turns) insertWords.run(insertTurn.get(conversation, number)!, words.join(" "))
  const insertTopic = db.prepare("insert into topic (project_id, conversation_id, word, count) values (?, ?, ?, ?)")
  const projectRow = projectId(db, project)
  for (const [word, count] of topic) insertTopic.run(projectRow, conversation, word, count)
}

export function removeTurns(db: Db, conversation: number): void {
  db.prepare("delete from turn_words where rowid in (select id from turn where conversation_id = ?)").run(conversation)
  db.prepare("delete from turn where conversation_id = ?").run(conversation)
  db.prepare("delete from topic where conversation_id = ?").run(conversation)
}

export type MatchedConversation = {
  conversation: number
  source: SourceId
  id: string
  /** The first message of the turn that matches best, and how well it matches. */
  number: number
  score: number
  branch?: string
  title?: string
  /** The folder in which it took place. */
  folder?: string
  started_at: number
  ended_at: number
  /** The time from which it may contain a stranger's words. */
  web_at?: number
  imported_from?: string
  /** Whether it says that something is no longer as it was decided. */
  says_change: boolean
}

const MATCHED_ROW = {
  conversation: "integer",
  source: "text",
  id: "text",
  number: "integer",
  score: "real",
  branch: "text?",
  title: "text?",
  folder: "text?",
  started_at: "integer",
  ended_at: "integer",
  web_at: "integer?",
  imported_from: "text?",
  says_change: "integer",
} as const

type ConversationFilter = {
  /** Leaves out the session with this id and everything that belongs to it. */
  except?: { source: SourceId; id: string }
  /** Only conversations that had ended by then. */
  before: number
}

/** `found` has the ids of conversations. */
const MATCHED = `
  select c.id as conversation, c.source, c.native_id as id, found.number, found.score, c.branch, c.title, c.folder,
      ifnull(c.started_at, 0) as started_at, ifnull(c.ended_at, 0) as ended_at, c.imported_from, c.says_change,
      (select min(o.web_at) from conversation o where o.source = c.source and o.root = c.root) as web_at
    from found join conversation c on c.id = found.conversation_id
    where c.project_id = @project and c.kind = 'person' and ifnull(c.ended_at, 0) <= @before
      and not (c.source = @source and (c.native_id = @session or c.root = @session))
    order by score desc, c.id`
const ABOUT = `
  with matched as materialized (
    select rowid as id, -bm25(turn_words) as score from turn_words where turn_words match @words
  ),
  found as (
    select t.conversation_id, t.number, max(matched.score) as score from matched join turn t on t.id = matched.id
    group by t.conversation_id
  )
  ${MATCHED}`
const SHARING = `
  with found as (
    select conversation_id, 1 as number, cast(count(*) as real) as score
    from topic where project_id = @project and word in (select value from json_each(@words)) group by conversation_id
  )
  ${MATCHED}`
const ONE = `
  with found as (select @conversation as conversation_id, 1 as number, 0.0 as score)
  ${MATCHED}`

/** Returns the conversations of a project that people led and in which any of the words were said, best first. */
export function conversationsAbout(
  db: Db,
  project: string,
  words: readonly string[],
  filter: ConversationFilter,
): MatchedConversation[] {
  if (words.length === 0) return []
  return matchedConversations(db, ABOUT, project, filter, words.map((word) => `"${word}"`).join(" OR "))
}

/** Returns the conversations of a project that people led and that often use some of these words, most of them first. */
export function conversationsSharing(
  db: Db,
  project: string,
  words: readonly string[],
  filter: ConversationFilter,
): MatchedConversation[] {
  return matchedConversations(db, SHARING, project, filter, JSON.stringify(words))
}

function matchedConversations(
  db: Db,
  sql: string,
  project: string,
  { except, before }: ConversationFilter,
  words: string,
): MatchedConversation[] {
  const projectRow = knownProject(db, project)
  if (projectRow === undefined) return []
  const rows = rowQuery(db, sql, MATCHED_ROW).all({
    words,
    project: projectRow,
    before,
    source: except ? sourceWithOwner(except) : "",
    session: except?.id ?? "",
  })
  return rows.map(toMatched)
}

/** Returns a conversation that a person led, and its project. */
export function matchedConversation(
  db: Db,
  { source, id }: { source: SourceId; id: string },
): (MatchedConversation & { project: string }) | undefined {
  const found = rowQuery(
    db,
    "select c.id, p.path from conversation c join project p on p.id = c.project_id where c.source = ? and c.native_id = ?",
    { id: "integer", path: "text" },
  ).get(sourceWithOwner({ source }), id)
  if (!found) return undefined
  const row = rowQuery(db, ONE, MATCHED_ROW).get({
    conversation: found.id,
    project: knownProject(db, found.path)!,
    before: Number.MAX_SAFE_INTEGER,
    source: "",
    session: "",
  })
  return row && { ...toMatched(row), project: found.path }
}

function toMatched({
  branch,
  title,
  folder,
  web_at,
  imported_from,
  says_change,
  ...row
}: RowOf<typeof MATCHED_ROW>): MatchedConversation {
  return {
    ...row,
    says_change: says_change === 1,
    branch: branch ?? undefined,
    title: title ?? undefined,
    folder: folder ?? undefined,
    web_at: web_at ?? undefined,
    imported_from: imported_from ?? undefined,
  }
}

/** Whether a conversation of the project after this time says that it changes a rule or decision. */
export function saysChangeAfter(db: Db, project: string, time: number): boolean {
  const query = "select exists (select 1 from conversation where project_id = ? and says_change and started_at > ?)"
  return valueQuery(db, query, "integer").get(knownProject(db, project) ?? null, time) === 1
}

export function topicOf(db: Db, conversation: number): Topic {
  return rowQuery(db, "select word, count from topic where conversation_id = ?", { word: "text", count: "integer" })
    .all(conversation)
    .map(({ word, count }) => [word, count])
}

/** In how many conversations of the project each of these words is one of the most frequent. */
export function topicsWith(db: Db, project: string, words: readonly string[]): number[] {
  const query = valueQuery(db, "select count(*) from topic where project_id = ? and word = ?", "integer")
  const projectRow = knownProject(db, project) ?? null
  return words.map((word) => query.get(projectRow, word)!)
}

/** The number of conversations of the project that people led. */
export function conversationCount(db: Db, project: string): number {
  return valueQuery(db, "select count(*) from conversation where project_id = ? and kind = 'person'", "integer").get(
    knownProject(db, project) ?? null,
  )!
}

/** The number of all turns. */
export function turnCount(db: Db): number {
  return valueQuery(db, "select count(*) from turn", "integer").get()!
}

/** The number of turns that contain each of these words. */
export function turnsWith(db: Db, words: readonly string[]): number[] {
  const query = valueQuery(db, "select doc from turn_vocabulary where term = ?", "integer")
  return words.map((word) => query.get(word) ?? 0)
}
