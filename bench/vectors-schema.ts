import { VECTOR_SCHEMA } from "../src/store/index/vectors.ts"

/** Vectors hang on documents; for a bench of vectors alone their ids are enough. */
export const MIGRATIONS: readonly [string, string][] = [
  ["001-docs", "create table doc (id integer primary key)"],
  ["002-vectors", VECTOR_SCHEMA],
]
