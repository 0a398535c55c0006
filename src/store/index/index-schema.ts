import { BLOCK_SCHEMA } from "./blocks.ts"
import { COLUMN_NAMES } from "./fields.ts"
import { TWIN_SCHEMA } from "./twins.ts"
import { VECTOR_SCHEMA } from "./vectors.ts"
import { VOCABULARY_SCHEMA } from "./vocabulary.ts"

/** As many as INDEX_FORMAT says. */
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
