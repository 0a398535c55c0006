// One nearest-neighbour query from a cold process. Prints how long it took from opening the database on.
// Arguments: the database, the embedder's id, a file with the query as 32-bit floats.
import { readFileSync } from "node:fs"
import { scanVectors } from "../src/store/index/vectors.ts"
import { openDatabase } from "../src/store/sqlite/database.ts"
import { MIGRATIONS } from "./vectors-schema.ts"

const [path, embedder, file] = process.argv.slice(2) as [string, string, string]
const bytes = readFileSync(file)
const query = new Float32Array(bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length))
const started = performance.now()
const db = openDatabase(path, MIGRATIONS)
const hits = scanVectors(db, embedder, query, { k: 10 })
console.log(JSON.stringify({ ms: performance.now() - started, hits: hits.length }))
db.close()
