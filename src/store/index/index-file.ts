import { codeOf, isDexError } from "../../core/error.ts"
import type { Db } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { areListsConsistent, areSumsCurrent, BLOCK_SCHEMA, countDamagedBlocks } from "./blocks.ts"
import { COLUMN_NAMES } from "./fields.ts"
import { countDamagedRows, TWIN_SCHEMA } from "./twins.ts"
import { checkVectors, VECTOR_SCHEMA } from "./vectors.ts"
import { VOCABULARY_SCHEMA } from "./vocabulary.ts"

/** The schema of the index. The number of entries is the format (INDEX_FORMAT). */
export const MIGRATIONS: readonly [string, string][] = [
  [
    "001-index",
    `
    create table meta (key text primary key, value text not null) without rowid;
    create table conversation (id integer primary key, name text not null unique, source text not null, native_id text not null, tags text not null, card text);
    create unique index conversation_ref on conversation (source, native_id);
    create table project (id integer primary key, path text not null unique);
    create table doc (id integer primary key, conversation_id integer not null, number integer not null, at integer, version integer not null);
    create index doc_conversation on doc (conversation_id, number);
    create virtual table words using fts5(${COLUMN_NAMES}, tags, content='', contentless_delete=1, tokenize='porter unicode61 remove_diacritics 2');
    insert into words (words, rank) values ('automerge', 8);
    insert into words (words, rank) values ('hashsize', 8388608);
    `,
  ],
  ["002-vectors", VECTOR_SCHEMA],
  ["003-block-sums", BLOCK_SCHEMA],
  ["004-twins", TWIN_SCHEMA],
  ["005-words-as-written", VOCABULARY_SCHEMA],
]

/** Whether an error comes from SQLite in an index file, or from a check. Damage of the history has another code. */
export function isIndexDamage(error: unknown): boolean {
  return (
    (isDexError(error) && error.code === "index_damaged") ||
    /^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT|MISMATCH)/.test(codeOf(error))
  )
}

export function checkIndex(db: Db): string[] {
  const damagedBlocks = countDamagedBlocks(db)
  const problems =
    areSumsCurrent(db) && damagedBlocks === 0 && areListsConsistent(db) ? tableProblems(db) : fileProblems(db)
  if (damagedBlocks > 0) problems.push(`blocks of words changed on disk: ${damagedBlocks}`)
  const damagedRows = countDamagedRows(db)
  if (damagedRows > 0) problems.push(`rows changed on disk: ${damagedRows}`)
  const docs = valueQuery(db, "select count(*) from doc", "integer").get()!
  const rows = valueQuery(db, "select count(*) from words_docsize", "integer").get()!
  if (docs !== rows) problems.push(`${docs} messages are listed but ${rows} are indexed`)
  return [...problems, ...checkVectors(db)]
}

/** Checks the whole file. SQLite also runs FTS5's own check here, which takes ten times as long as everything else. */
function fileProblems(db: Db): string[] {
  return problemsIn(valueQuery(db, "pragma integrity_check(20)", "text").all())
}

/** Checks an index whose blocks are all as FTS5 wrote them, so that FTS5 need not check them again. */
function tableProblems(db: Db): string[] {
  const names = "select name from pragma_table_list where schema = 'main' and type in ('table', 'shadow')"
  const check = valueQuery(db, "select integrity_check from pragma_integrity_check(?)", "text")
  return valueQuery(db, names, "text")
    .all()
    .flatMap((table) => problemsIn(check.all(table)))
}

const problemsIn = (lines: string[]) => lines.filter((line) => line !== "ok")
