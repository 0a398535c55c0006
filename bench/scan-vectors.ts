// One nearest-neighbour query from a cold process. Prints how long it took, beginning with opening the database. Arguments: the
// database, the embedder's id, a file with the query as 32-bit floats.
import { readFileSync } from "node:fs"
import { VECTOR_SCHEMA } from "../src/store/index/index-file.ts"
import { scanVectors } from "../src/store/index/vectors.ts"
import { openDatabase } from "../src/store/sqlite/database.ts"

/** Vectors belong to documents; for a bench of vectors alone their ids are enough. */
export const MIGRATIONS: readonly [string, string][] = [
  ["001-docs", "create table doc (id integer primary key)"],
  ["002-vectors", VECTOR_SCHEMA],
]

if (process.argv[1] === import.meta.filename) {
  const [path, embedder, file] = process.argv.slice(2) as [string, string, string]
  const bytes = readFileSync(file)
  const query = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
  const started = performance.now()
  const db = openDatabase(path, MIGRATIONS)
  const hits = scanVectors(db, embedder, query, { k: 10 })
  console.log(JSON.stringify({ ms: performance.now() - started, hits: hits.length }))
  db.close()
}
