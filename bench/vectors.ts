import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import Database from "better-sqlite3"
import { build } from "esbuild"
import { createVectorCache, saveVectors, scanVectors } from "../src/store/index/vectors.ts"
import { type Db, openDatabase } from "../src/store/sqlite/database.ts"
import { generator } from "./corpus.ts"
import { ROOT, shortCount, sizeOf, time } from "./measure.ts"
import { median, percentile, type Row } from "./report.ts"
import { MIGRATIONS } from "./scan-vectors.ts"

const DIMS = 384
const QUERIES = 40
/** The number of queries. Finding exact neighbours takes longer than all the rest. */
const EXACT_QUERIES = 20
const K = 10
const EMBEDDER = `bench:clustered@1:${DIMS}:p0`
/** The size of a cluster: the messages of one conversation are close together. */
const CLUSTER = 200
const SAVED_AT_ONCE = 4096

/** Compares the scan of this many vectors with an exact one and with sqlite-vec, on the same vectors in the same run. */
export async function benchVectors(count: number): Promise<Row[]> {
  const name = shortCount(count)
  const home = join(tmpdir(), "dex-bench-histories", `vectors-${count}`)
  rmSync(home, { recursive: true, force: true })
  mkdirSync(home, { recursive: true })
  const ours = join(home, "index.db")
  const theirs = join(home, "vec.db")
  const library = await openLibrary(theirs)
  const db = openDatabase(ours, MIGRATIONS)
  const { exact, queries, saveMs } = fill(db, library, count)
  db.pragma("wal_checkpoint(truncate)")
  const warm = warmScans(db, queries)
  db.close()
  const cold = await coldScans(ours, home, queries)
  const vec = library && libraryScans(library, queries)
  library?.close()
  const beside = (one: number[] | undefined) => (one ? `sqlite-vec ${times(one)}` : "sqlite-vec is not installed")
  const million = count >= 1e6
  return [
    {
      what: `nearest of ${name} vectors (${DIMS}), warm, p95 (median)`,
      measured: `${times(warm.ms)}; one in ten allowed: ${times(warm.filtered)}`,
      floor: beside(vec?.ms),
      goal: million ? "< 100 ms" : "",
      ok: million ? percentile(warm.ms, 0.95) < 100 : undefined,
    },
    {
      what: `the same from a cold process, ${name}, p95 (median)`,
      measured: `${times(cold.whole)}, of which the scan ${times(cold.scan)}`,
      floor: `node -e 0: ${median(cold.empty).toFixed(0)} ms`,
      goal: million ? "< 250 ms" : "",
      ok: million ? percentile(cold.whole, 0.95) < 250 : undefined,
    },
    {
      what: `recall@${K} against exact, ${name}`,
      measured: recall(exact, warm.docs),
      floor: vec ? `sqlite-vec ${recall(exact, vec.docs)}` : "",
      goal: "",
      ok: undefined,
    },
    {
      what: `disk and time to save, ${name}`,
      measured: `${(sizeOf(ours) / 1e6).toFixed(0)} MB, ${((count / saveMs) * 1000).toFixed(0)} vectors/s`,
      floor: library ? `sqlite-vec ${(sizeOf(theirs) / 1e6).toFixed(0)} MB` : "",
      goal: "",
      ok: undefined,
    },
  ]
}

/** Makes the vectors, stores them in both, and finds the exact neighbours of the queries at the same time. */
function fill(db: Db, library: Library | undefined, count: number) {
  const random = generator(7)
  const queryRandom = generator(8)
  const queries: Float32Array[] = []
  const every = Math.floor(count / QUERIES)
  const best: { doc: number; score: number }[][] = []
  // The queries are close to documents that are made later, so they are made first, with the same numbers.
  const ahead = generator(7)
  let centre: Float32Array = new Float32Array(DIMS)
  for (let i = 0; i < count; i++) {
    if (i % CLUSTER === 0) centre = point(ahead)
    const vector = near(centre, ahead, 0.6)
    if (i % every === Math.floor(every / 2) && queries.length < QUERIES) queries.push(near(vector, queryRandom, 0.5))
  }
  for (let q = 0; q < EXACT_QUERIES; q++) best.push([])
  let saveMs = 0
  for (let at = 0; at < count; at += SAVED_AT_ONCE) {
    const rows: { doc: number; vector: Float32Array }[] = []
    for (let i = at; i < Math.min(at + SAVED_AT_ONCE, count); i++) {
      if (i % CLUSTER === 0) centre = point(random)
      const vector = near(centre, random, 0.6)
      rows.push({ doc: i + 1, vector })
      for (const [q, hits] of best.entries()) keepBest(hits, i + 1, dot(queries[q]!, vector))
    }
    db.exec("begin immediate")
    for (const { doc } of rows) db.prepare("insert into doc (id) values (?)").run(doc)
    db.exec("commit")
    const groups = rows.map((row) => ({ docs: [row.doc], vectors: [row] }))
    saveMs += timed(() => saveVectors(db, EMBEDDER, groups)).ms
    library?.save(rows)
  }
  return { exact: best.map((hits) => hits.map((hit) => hit.doc)), queries, saveMs }
}

function warmScans(db: Db, queries: Float32Array[]) {
  const cache = createVectorCache()
  scanVectors(db, EMBEDDER, queries[0]!, { k: K, cache })
  const runs = queries.map((query) => timed(() => scanVectors(db, EMBEDDER, query, { k: K, cache })))
  const allowed = (doc: number) => doc % 10 === 0
  const filtered = queries.map((query) => timed(() => scanVectors(db, EMBEDDER, query, { k: K, cache, allowed })).ms)
  return { ms: runs.map((run) => run.ms), filtered, docs: runs.map((run) => run.result.map((hit) => hit.doc)) }
}

async function coldScans(path: string, home: string, queries: Float32Array[]) {
  const whole: number[] = []
  const scan: number[] = []
  const empty: number[] = []
  const file = join(home, "query")
  // Started like the product: bundled, inside the tree so that the native part is found.
  const program = join(ROOT, "node_modules", ".cache", "dex-bench", "scan-vectors.mjs")
  await build({
    entryPoints: [join(ROOT, "bench/scan-vectors.ts")],
    outfile: program,
    bundle: true,
    format: "esm",
    platform: "node",
    banner: { js: "import{createRequire as r}from'node:module';const require=r(import.meta.url);" },
  })
  for (const query of queries) {
    writeFileSync(file, new Uint8Array(query.buffer))
    const run = time([program, path, EMBEDDER, file])
    if (run.code !== 0) throw new Error(run.stderr)
    whole.push(run.ms)
    scan.push((JSON.parse(run.stdout) as { ms: number }).ms)
    empty.push(time(["-e", "0"]).ms)
  }
  return { whole, scan, empty }
}

type Library = {
  save(rows: { doc: number; vector: Float32Array }[]): void
  find(query: Float32Array): number[]
  close(): void
}

/** sqlite-vec in its best arrangement for this: a table of bits, and bytes in an ordinary one to decide between 400. */
async function openLibrary(path: string): Promise<Library | undefined> {
  const vec = await import("sqlite-vec").catch(() => undefined)
  if (!vec) return undefined
  const db = new Database(path)
  vec.load(db)
  db.pragma("journal_mode = wal")
  db.pragma("synchronous = normal")
  db.exec(`create virtual table bits using vec0(v bit[${DIMS}]); create table bytes (id integer primary key, v blob)`)
  const putBits = db.prepare("insert into bits (rowid, v) values (?, vec_quantize_binary(?))")
  const putBytes = db.prepare("insert into bytes (id, v) values (?, ?)")
  const find = db
    .prepare(
      `select b.id from (select rowid from bits where v match vec_quantize_binary(@query) and k = 400) near
       join bytes b on b.id = near.rowid
       order by vec_distance_cosine(vec_int8(b.v), vec_int8(@bytes)) limit ${K}`,
    )
    .pluck()
  return {
    save: (rows) => {
      db.exec("begin immediate")
      for (const { doc, vector } of rows) {
        putBits.run(BigInt(doc), new Uint8Array(vector.buffer))
        putBytes.run(doc, toBytes(vector))
      }
      db.exec("commit")
    },
    find: (query) => find.all({ query: new Uint8Array(query.buffer), bytes: toBytes(query) }) as number[],
    close: () => db.close(),
  }
}

/** Its own quantisation only supports the range from -1 to 1, of which 384 numbers use little: recall 0.84. */
function toBytes(vector: Float32Array): Uint8Array {
  const most = vector.reduce((so, value) => Math.max(so, Math.abs(value)), 0)
  return new Uint8Array(Int8Array.from(vector, (value) => Math.round((value / most) * 127)).buffer)
}

function libraryScans(library: Library, queries: Float32Array[]) {
  library.find(queries[0]!)
  const runs = queries.map((query) => timed(() => library.find(query)))
  return { ms: runs.map((run) => run.ms), docs: runs.map((run) => run.result) }
}

function times(ms: number[]): string {
  return `${percentile(ms, 0.95).toFixed(0)} (${median(ms).toFixed(0)}) ms`
}

function recall(exact: number[][], found: number[][]): string {
  const right = exact.flatMap((docs, q) => docs.filter((doc) => found[q]!.includes(doc))).length
  return (right / exact.flat().length).toFixed(3)
}

function timed<T>(work: () => T): { result: T; ms: number } {
  const started = performance.now()
  const result = work()
  return { result, ms: performance.now() - started }
}

function point(random: () => number): Float32Array {
  return unit(Float32Array.from({ length: DIMS }, () => normal(random)))
}

/** A vector whose noise is `spread` times as long as its centre. */
function near(centre: Float32Array, random: () => number, spread: number): Float32Array {
  const vector = new Float32Array(DIMS)
  const scale = spread / Math.sqrt(DIMS)
  for (let i = 0; i < DIMS; i++) vector[i] = centre[i]! + normal(random) * scale
  return unit(vector)
}

/** Close enough to a normal distribution, and fast. */
function normal(random: () => number): number {
  return (random() + random() + random() + random() - 2) * Math.sqrt(3)
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(dot(vector, vector))
  for (let i = 0; i < vector.length; i++) vector[i]! /= length
  return vector
}

function dot(a: Float32Array, b: Float32Array): number {
  let sum = 0
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!
  return sum
}

function keepBest(hits: { doc: number; score: number }[], doc: number, score: number): void {
  if (hits.length === K && score <= hits[K - 1]!.score) return
  hits.push({ doc, score })
  hits.sort((a, b) => b.score - a.score)
  hits.length = Math.min(hits.length, K)
}
