import { codeOf, isDexError } from "../../core/error.ts"
import { COLUMN_NAMES } from "./fields.ts"
import { CONVERSATION_TWIN, DOC_SUM, PROJECT_TWIN } from "./twins.ts"

/** Requires the table `doc (id integer primary key, …)`. Before an id is reused, `deleteVectors` must be called. */
export const VECTOR_SCHEMA = `
  create table vector_space (id integer primary key autoincrement, embedder text not null unique, dims integer not null, golden blob);
  -- Up to 1,024 vectors. docs: a 32-bit id each, 0 where the vector was deleted. version: rises with every change.
  create table vector_bits (id integer primary key autoincrement, space integer not null, version integer not null, size integer not null, dead integer not null, docs blob not null, bits blob not null);
  -- slot: 1,024 × the chunk's id + the place in it. A document has a vector for each window of which it contains the most words.
  create table vector (slot integer primary key, space integer not null, doc integer not null, data blob not null);
  create index vector_doc on vector (doc, space);
  -- Every document that was processed. head: the first document of those whose text is embedded together; null if there is none.
  create table vector_group (doc integer not null, space integer not null, head integer, primary key (doc, space)) without rowid;
  create index vector_head on vector_group (head, space) where head is not null;
`

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
  [
    "002-vectors",
    `
    create table vector_space (id integer primary key autoincrement, embedder text not null unique, dims integer not null, golden blob);
    create table vector_bits (id integer primary key autoincrement, space integer not null, version integer not null, size integer not null, dead integer not null, docs blob not null, bits blob not null);
    create table vector (slot integer primary key, space integer not null, doc integer not null, data blob not null);
    create unique index vector_doc on vector (doc, space);
    create table vector_none (doc integer not null, space integer not null, primary key (doc, space)) without rowid;
    `,
  ],
  ["003-block-sums", "create table block_sum (id integer primary key, sum integer not null);"],
  [
    "004-twins",
    `
    create table new_conversation (id integer primary key, name text not null unique, source text not null, native_id text not null, tags text not null, card text,
      twin text generated always as (${CONVERSATION_TWIN}) stored);
    insert into new_conversation (id, name, source, native_id, tags, card) select id, name, source, native_id, tags, card from conversation;
    drop table conversation;
    alter table new_conversation rename to conversation;
    create unique index conversation_ref on conversation (source, native_id);
    create table new_project (id integer primary key, path text not null unique, twin text generated always as (${PROJECT_TWIN}) stored);
    insert into new_project (id, path) select id, path from project;
    drop table project;
    alter table new_project rename to project;
    create table new_doc (id integer primary key, conversation_id integer not null, number integer not null, at integer, version integer not null,
      sum integer generated always as (${DOC_SUM}) stored);
    insert into new_doc (id, conversation_id, number, at, version) select id, conversation_id, number, at, version from doc;
    drop table doc;
    alter table new_doc rename to doc;
    create index doc_conversation on doc (conversation_id, number);
    `,
  ],
  [
    "005-words-as-written",
    // 1073741823 is 2^30 − 1, a bit for each of the 30 groups of conversations. If there are messages already, all groups must still
    // be read.
    `
    create table word (word text primary key, groups integer not null) without rowid;
    insert into meta (key, value) select 'unread_groups', '1073741823' where exists (select 1 from doc);
    `,
  ],
  [
    "006-access",
    // Empty on a laptop. visibility: 0 private, 1 project, 2 organisation. messages: the number of documents.
    `
    create table access (conversation integer primary key, author integer not null, project integer not null, visibility integer not null, messages integer not null);
    create index access_author on access (author);
    create index access_project on access (project) where visibility > 0;
    create index access_org on access (visibility) where visibility = 2;
    create table access_total (author integer not null, project integer not null, visibility integer not null, messages integer not null,
      primary key (author, project, visibility)) without rowid;
    create table project_total (project integer not null, visibility integer not null, messages integer not null, primary key (project, visibility)) without rowid;
    `,
  ],
  [
    "007-windows",
    // The old vectors are of single messages, and of tool calls too, so all are made again.
    `
    drop table vector_none;
    drop table vector;
    drop table vector_bits;
    drop table vector_space;
    delete from meta where key = 'distrusted';
    ${VECTOR_SCHEMA}
    `,
  ],
]

/**
 * Whether an error means that the index is damaged: dex's own error, or one of SQLite's that an undamaged index never causes. Only
 * for errors from the index: damage to the history has its own code.
 */
export function isIndexDamage(error: unknown): boolean {
  return (
    (isDexError(error) && error.code === "index_damaged") ||
    /^SQLITE_(CORRUPT|NOTADB|ERROR|CONSTRAINT|MISMATCH)/.test(codeOf(error))
  )
}
