import { codeOf } from "../../core/error.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { type RowOf, rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { createHamming, type HammingScanner, MAX_BITS } from "./hamming.ts"

// Vectors of documents, stored in the index: one sign bit per dimension, in chunks that a scan reads completely, and one byte per
// dimension, in a row each, for the few candidates that a scan returns. Each embedder has its own space, and vectors of different
// spaces are never compared.

/** The number of vectors in a chunk. It must never change, because existing indexes contain chunks of this size. */
const CHUNK_SIZE = 1024
/** The number of candidates that the scan of the bits leaves for comparison by bytes. */
const CANDIDATE_COUNT = 400

/**
 * Documents whose text is embedded together, in windows, first document first. Each vector belongs to the document that contains
 * the most words of its window. Without vectors, there is nothing to embed, and the documents are not retried.
 */
export type DocGroup = { docs: number[]; vectors: DocVector[] }
type DocVector = { doc: number; vector: Float32Array }
export type VectorHit = { doc: number; score: number }

/**
 * Stores the vectors of groups, and deletes earlier ones of the same documents and embedder, with those of the documents that were
 * in a group with them. Ignores a group if one of its documents no longer exists. Call it with a few hundred at a time, because
 * each call rewrites the last chunk.
 */
export function saveVectors(db: Db, embedder: string, groups: DocGroup[]): { saved: number; gone: number } {
  return inTransaction(db, () => {
    const exists = db.prepare("select 1 from doc where id = ?").pluck()
    const existing = groups.filter(({ docs }) => docs.every((doc) => exists.get(doc) === 1))
    const vectors = existing.flatMap((group) => group.vectors)
    const saved = countDocs(existing)
    const gone = countDocs(groups) - saved
    if (existing.length === 0) return { saved, gone }
    const space = openSpace(db, embedder, vectors[0]?.vector.length ?? spaceNamed(db, embedder)?.dims ?? 0)
    for (const { vector } of vectors)
      if (vector.length !== space.dims)
        throw new Error(`A vector of ${vector.length} numbers does not belong to ${embedder} (${space.dims}).`)
    removeDocs(
      db,
      existing.flatMap(({ docs }) => docs),
      space.id,
    )
    const insertDoc = db.prepare("insert into vector_group (doc, space, head) values (?, ?, ?)")
    for (const group of existing)
      for (const doc of group.docs) insertDoc.run(doc, space.id, group.vectors.length === 0 ? null : group.docs[0])
    appendVectors(
      db,
      space,
      vectors.map(({ doc, vector }) => ({ doc, bits: signBits(vector), data: quantize(vector) })),
    )
    return { saved, gone }
  })
}

function countDocs(groups: DocGroup[]): number {
  return groups.reduce((sum, { docs }) => sum + docs.length, 0)
}

/** Deletes the vectors of these documents, and of those that were embedded together with them. Call it in the transaction that deletes the documents. */
export function deleteVectors(db: Db, docs: number[]): void {
  if (docs.length === 0 || !hasSpaces(db)) return
  inTransaction(db, () => removeDocs(db, docs))
}

/**
 * Returns documents that this embedder has not embedded yet, newest first: the newest have the smallest numbers. To page, pass the last
 * number of the previous call as `after`. `match` restricts the result to documents that match this FTS5 expression.
 */
export function missingVectors(db: Db, embedder: string, limit: number, after = 0, match?: string): number[] {
  const space = spaceNamed(db, embedder)?.id ?? 0
  if (match === undefined) return valueQuery(db, SELECT_MISSING, "integer").all({ space, after, limit })
  return valueQuery(db, SELECT_MISSING_MATCHING, "integer").all({ space, after, limit, match })
}

const IS_MISSING = "not exists (select 1 from vector_group g where g.doc = d.id and g.space = @space)"
const SELECT_MISSING = `select d.id from doc d where d.id > @after and ${IS_MISSING} order by d.id limit @limit`
const SELECT_MISSING_MATCHING = `select d.id from words join doc d on d.id = words.rowid
  where words match @match and words.rowid > @after and ${IS_MISSING} order by words.rowid limit @limit`

export type ScanOptions = {
  k: number
  allowed?: (doc: number) => boolean
  /** Caches the bits in memory between scans; only changed chunks are read again. */
  cache?: VectorCache
  candidates?: number
}

/** Returns the k nearest documents by the cosine of their best vector, best first; equally near ones newest first. */
export function scanVectors(db: Db, embedder: string, query: Float32Array, options: ScanOptions): VectorHit[] {
  const space = spaceNamed(db, embedder)
  if (!space || space.dims === 0) return []
  if (query.length !== space.dims)
    throw new Error(`A query of ${query.length} numbers cannot be compared with ${embedder} (${space.dims}).`)
  const maxCandidates = options.candidates ?? Math.max(CANDIDATE_COUNT, 4 * options.k)
  const candidates = nearestByBits(chunksOf(db, space, options.cache), signBits(query), maxCandidates, options.allowed)
  const unitVector = normalized(query)
  const selectData = valueQuery(db, "select data from vector where slot = ? and doc = ?", "blob")
  const hits = candidates.flatMap(({ slot, doc }) => {
    const data = selectData.get(slot, doc) // missing if another process deleted it
    return data ? [{ doc, score: cosine(unitVector, data) }] : []
  })
  hits.sort((a, b) => b.score - a.score || a.doc - b.doc)
  const bestByDoc = new Map<number, VectorHit>()
  for (const hit of hits) if (!bestByDoc.has(hit.doc)) bestByDoc.set(hit.doc, hit)
  return [...bestByDoc.values()].slice(0, options.k)
}

/** Returns the cosines of a fixed sample from the entire space: a vector that is not nearer than these is not related. */
export function sampleCosines(db: Db, embedder: string, query: Float32Array, count: number): number[] {
  const space = spaceNamed(db, embedder)
  if (!space || query.length !== space.dims) return []
  const chunks = rowQuery(db, "select id, size from vector_bits where space = ? order by id", {
    id: "integer",
    size: "integer",
  }).all(space.id)
  const slotCount = chunks.reduce((sum, { size }) => sum + size, 0)
  const step = Math.max(1, slotCount / count)
  const slots: number[] = []
  let before = 0
  for (const { id, size } of chunks) {
    for (
      let sampled = Math.ceil(slots.length * step);
      sampled < before + size;
      sampled = Math.ceil(slots.length * step)
    )
      slots.push(id * CHUNK_SIZE + sampled - before)
    before += size
  }
  return cosinesOf(db, query, slots)
}

/** Returns the cosines of an even sample of these documents, in the given order. */
export function sampleCosinesOf(
  db: Db,
  embedder: string,
  query: Float32Array,
  count: number,
  docs: readonly number[],
): number[] {
  const space = spaceNamed(db, embedder)
  if (!space || query.length !== space.dims) return []
  const slots = valueQuery(db, SELECT_SLOTS, "integer").all({ docs: JSON.stringify(docs), space: space.id })
  return cosinesOf(db, query, evenSample(slots, count))
}

const SELECT_SLOTS = `select v.slot from json_each(@docs) j join vector v on v.doc = j.value and v.space = @space order by j.key`

export function evenSample<T>(list: readonly T[], count: number): T[] {
  const step = Math.max(1, list.length / count)
  return Array.from({ length: Math.min(count, list.length) }, (_, i) => list[Math.floor(i * step)]!)
}

function cosinesOf(db: Db, query: Float32Array, slots: readonly number[]): number[] {
  const unitVector = normalized(query)
  const selectData = valueQuery(db, "select data from vector where slot = ?", "blob")
  return slots.flatMap((slot) => {
    const data = selectData.get(slot) // missing if the vector was deleted
    return data ? [cosine(unitVector, data)] : []
  })
}

export type VectorStats = RowOf<typeof VECTOR_STATS_ROW>
const VECTOR_STATS_ROW = {
  embedder: "text",
  dims: "integer",
  vectors: "integer",
  done: "integer",
  dead: "integer",
  bytes: "integer",
} as const

/** `done` counts the processed documents, with and without vectors. `without` are documents that are not counted. */
export function vectorStats(db: Db, without: readonly number[] = []): VectorStats[] {
  const allStats = rowQuery(db, SELECT_STATS, VECTOR_STATS_ROW).all()
  if (without.length === 0) return allStats
  const countVectors = rowQuery(db, COUNT_VECTORS, { vectors: "integer", done: "integer" })
  return allStats.map((stats) => {
    const { vectors, done } = countVectors.get({ embedder: stats.embedder, docs: JSON.stringify(without) })!
    return { ...stats, vectors: stats.vectors - vectors, done: stats.done - done }
  })
}

const COUNT_VECTORS = `select
    (select count(*) from json_each(@docs) j join vector v on v.doc = j.value and v.space = s.id) as vectors,
    (select count(*) from json_each(@docs) j join vector_group g on g.doc = j.value and g.space = s.id) as done
  from vector_space s where s.embedder = @embedder`
const SELECT_STATS = `select s.embedder, s.dims,
    (select ifnull(sum(b.size - b.dead), 0) from vector_bits b where b.space = s.id) as vectors,
    (select count(*) from vector_group g where g.space = s.id) as done,
    (select ifnull(sum(b.dead), 0) from vector_bits b where b.space = s.id) as dead,
    (select ifnull(sum(length(b.docs) + length(b.bits) + (b.size - b.dead) * s.dims), 0) from vector_bits b where b.space = s.id) as bytes
  from vector_space s order by s.id`

/** Removes the vectors of all embedders except this one, or of all embedders if omitted. */
export function dropOtherVectors(db: Db, embedder?: string): void {
  inTransaction(db, () => {
    const keep = (embedder !== undefined && spaceNamed(db, embedder)?.id) || 0
    db.prepare("delete from vector where space <> ?").run(keep)
    db.prepare("delete from vector_bits where space <> ?").run(keep)
    db.prepare("delete from vector_group where space <> ?").run(keep)
    db.prepare("delete from vector_space where id <> ?").run(keep)
  })
}

/**
 * Copies the vectors of unchanged messages from an index that this one is about to replace. If that index is damaged, copies
 * nothing: the vectors are then computed again.
 */
export function copyVectors(db: Db, from: string): void {
  try {
    db.prepare("attach database ? as old").run(from)
    try {
      if (db.prepare("select 1 from old.sqlite_master where name = 'vector_group'").get() === undefined) return
      inTransaction(db, () => copySpaces(db))
    } finally {
      db.exec("detach database old")
    }
  } catch (error) {
    if (!/^SQLITE_(CORRUPT|NOTADB|IOERR|ERROR)/.test(codeOf(error))) throw error
  }
}

/** The processed documents that have not changed, with their new numbers. */
const KEEP_SAME_DOCS = `create temp table same_doc as select g.doc as old, n.id as new, g.head
  from old.vector_group g join old.doc o on o.id = g.doc join old.conversation oc on oc.id = o.conversation_id
  join conversation c on c.name = oc.name
  join doc n on n.conversation_id = c.id and n.number = o.number and n.version = o.version where g.space = ?`
/** If one document of a group has changed, all of them are embedded again. */
const DROP_PARTIAL_GROUPS = `delete from same_doc where head in (select g.head from old.vector_group g
  where g.space = ? and g.head is not null and g.doc not in (select old from same_doc))`
const SAVE_SAME_GROUPS = `insert into vector_group (doc, space, head)
  select s.new, ?, h.new from same_doc s left join same_doc h on h.old = s.head`

function copySpaces(db: Db): void {
  db.exec("insert or ignore into meta select key, value from old.meta where key = 'distrusted'")
  const spaces = rowQuery(db, "select id, embedder, dims, golden from old.vector_space order by id", {
    id: "integer",
    dims: "integer",
    golden: "blob?",
    embedder: "text",
  }).all()
  for (const { id, embedder, dims, golden } of spaces) {
    const space = openSpace(db, embedder, dims)
    db.prepare("update vector_space set golden = ? where id = ?").run(golden, space.id)
    db.prepare(KEEP_SAME_DOCS).run(id)
    db.exec("create unique index temp.same_doc_old on same_doc (old)")
    db.prepare(DROP_PARTIAL_GROUPS).run(id)
    db.prepare(SAVE_SAME_GROUPS).run(space.id)
    const selectSameDoc = valueQuery(db, "select new from same_doc where old = ?", "integer")
    const chunks = valueQuery(db, "select id from old.vector_bits where space = ? order by id", "integer").all(id)
    for (const chunk of chunks) {
      const { size, bits } = rowQuery(db, "select size, bits from old.vector_bits where id = ?", {
        size: "integer",
        bits: "blob",
      }).get(chunk)!
      const rows = rowQuery(db, "select slot, doc, data from old.vector where slot >= ? and slot < ? order by slot", {
        slot: "integer",
        doc: "integer",
        data: "blob",
      }).all(chunk * CHUNK_SIZE, (chunk + 1) * CHUNK_SIZE)
      const stride = bits.length / size
      const entries = rows.flatMap(({ slot, doc, data }) => {
        const position = slot % CHUNK_SIZE
        const newDoc = selectSameDoc.get(doc)
        return newDoc === undefined
          ? []
          : [{ doc: newDoc, data, bits: bits.subarray(position * stride, (position + 1) * stride) }]
      })
      appendVectors(db, space, entries)
    }
    db.exec("drop table temp.same_doc")
  }
  // A process that has the old chunks in memory and finds the new ones under the same ids must notice the change.
  db.exec("update vector_bits set version = version + (select ifnull(max(version), 0) from old.vector_bits)")
}

/** Moves the vectors of chunks with many deletions to other chunks. Returns the number of freed slots. */
export function compactVectors(db: Db): number {
  const sparse = valueQuery(db, "select id from vector_bits where dead * 4 >= size", "integer").all()
  return sparse.reduce((freed, id) => freed + inTransaction(db, () => mergeChunk(db, id)), 0)
}

/**
 * Returns the vector that the embedder first returned for the golden text. If it returns a different one later, the model has
 * changed.
 */
export function goldenVector(db: Db, embedder: string): Float32Array | undefined {
  const golden = spaceNamed(db, embedder)?.golden
  return golden
    ? new Float32Array(golden.buffer.slice(golden.byteOffset, golden.byteOffset + golden.length))
    : undefined
}

export function saveGoldenVector(db: Db, embedder: string, vector: Float32Array): void {
  inTransaction(db, () => {
    const space = openSpace(db, embedder, vector.length)
    const golden = Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength)
    db.prepare("update vector_space set golden = ? where id = ?").run(golden, space.id)
  })
}

type Space = RowOf<typeof SPACE_ROW>
const SPACE_ROW = { id: "integer", dims: "integer", golden: "blob?" } as const

function hasSpaces(db: Db): boolean {
  return db.prepare("select 1 from vector_space limit 1").pluck().get() === 1
}

function spaceNamed(db: Db, embedder: string): Space | undefined {
  return rowQuery(db, "select id, dims, golden from vector_space where embedder = ?", SPACE_ROW).get(embedder)
}

/** Returns the space of an embedder, and creates it if needed. Its first vector determines its dimensions. */
function openSpace(db: Db, embedder: string, dims: number): Space {
  if (strideOf(dims) * 8 > MAX_BITS) throw new Error(`Vectors of more than ${MAX_BITS} numbers cannot be stored.`)
  db.prepare(
    `insert into vector_space (embedder, dims) values (?, ?)
     on conflict (embedder) do update set dims = excluded.dims where vector_space.dims = 0`,
  ).run(embedder, dims)
  return spaceNamed(db, embedder)!
}

/** Returns the number of bytes per vector: a multiple of 128 bits, because the scan reads that many at a time. */
function strideOf(dims: number): number {
  return Math.ceil(dims / 128) * 16
}

type VectorEntry = { doc: number; bits: Uint8Array; data: Uint8Array }
type ChunkRow = RowOf<typeof CHUNK_ROW>
const CHUNK_ROW = {
  id: "integer",
  space: "integer",
  version: "integer",
  size: "integer",
  dead: "integer",
  docs: "blob",
  bits: "blob",
} as const

function appendVectors(db: Db, space: Pick<Space, "id" | "dims">, entries: VectorEntry[]): void {
  const stride = strideOf(space.dims)
  const insert = db.prepare("insert into vector (slot, space, doc, data) values (?, ?, ?, ?)")
  for (let offset = 0; offset < entries.length; ) {
    const chunk = openChunk(db, space.id)
    const added = entries.slice(offset, offset + CHUNK_SIZE - chunk.size)
    const docs = new Uint32Array(added.map((entry) => entry.doc))
    const bits = new Uint8Array(added.length * stride)
    for (const [i, entry] of added.entries()) {
      bits.set(entry.bits, i * stride)
      insert.run(chunk.id * CHUNK_SIZE + chunk.size + i, space.id, entry.doc, entry.data)
    }
    saveChunk(db, {
      ...chunk,
      size: chunk.size + added.length,
      docs: Buffer.concat([chunk.docs, new Uint8Array(docs.buffer)]),
      bits: Buffer.concat([chunk.bits, bits]),
    })
    offset += added.length
  }
}

function openChunk(db: Db, space: number): ChunkRow {
  const selectLast = "select * from vector_bits where space = ? and size < ? order by id desc limit 1"
  const insertChunk =
    "insert into vector_bits (space, version, size, dead, docs, bits) values (?, 0, 0, 0, x'', x'') returning *"
  return rowQuery(db, selectLast, CHUNK_ROW).get(space, CHUNK_SIZE) ?? rowQuery(db, insertChunk, CHUNK_ROW).get(space)!
}

function saveChunk(db: Db, { id, size, dead, docs, bits }: ChunkRow): void {
  const sql = "update vector_bits set version = version + 1, size = ?, dead = ?, docs = ?, bits = ? where id = ?"
  db.prepare(sql).run(size, dead, docs, bits, id)
}

function removeDocs(db: Db, docs: number[], space?: number): void {
  const findGroup = rowQuery(db, "select space, head from vector_group where doc = ? and (? is null or space = ?)", {
    space: "integer",
    head: "integer?",
  })
  const selectDocs = valueQuery(db, "select doc from vector_group where head = ? and space = ?", "integer")
  const remove = db.prepare("delete from vector_group where doc = ? and space = ?")
  const findSlots = valueQuery(db, "select slot from vector where doc = ? and space = ?", "integer")
  const spaceOrNull = space ?? null
  const slots: number[] = []
  for (const doc of docs) {
    for (const group of findGroup.all(doc, spaceOrNull, spaceOrNull)) {
      const docsInGroup = group.head === null ? [doc] : selectDocs.all(group.head, group.space)
      for (const member of docsInGroup) {
        slots.push(...findSlots.all(member, group.space))
        remove.run(member, group.space)
      }
    }
  }
  const removeSlot = db.prepare("delete from vector where slot = ?")
  for (const slot of slots) removeSlot.run(slot)
  const byChunk = Map.groupBy(slots, (slot) => Math.floor(slot / CHUNK_SIZE))
  for (const [chunk, slotsInChunk] of byChunk) deleteSlots(db, chunk, slotsInChunk)
}

function deleteSlots(db: Db, id: number, slots: number[]): void {
  const chunk = chunkRow(db, id)!
  const stride = chunk.bits.length / chunk.size
  for (const slot of slots) {
    const position = slot % CHUNK_SIZE
    chunk.docs.fill(0, position * 4, position * 4 + 4)
    chunk.bits.fill(0, position * stride, (position + 1) * stride)
  }
  const dead = chunk.dead + slots.length
  if (dead === chunk.size) db.prepare("delete from vector_bits where id = ?").run(id)
  else saveChunk(db, { ...chunk, dead })
}

function mergeChunk(db: Db, id: number): number {
  const chunk = chunkRow(db, id)!
  const first = id * CHUNK_SIZE
  const rows = rowQuery(db, "select slot, doc, data from vector where slot >= ? and slot < ? order by slot", {
    slot: "integer",
    doc: "integer",
    data: "blob",
  }).all(first, first + CHUNK_SIZE)
  const stride = chunk.bits.length / chunk.size
  const entries = rows.map(({ slot, doc, data }) => {
    const position = slot - first
    return { doc, data, bits: chunk.bits.subarray(position * stride, (position + 1) * stride) }
  })
  db.prepare("delete from vector where slot >= ? and slot < ?").run(first, first + CHUNK_SIZE)
  db.prepare("delete from vector_bits where id = ?").run(id)
  const dims = valueQuery(db, "select dims from vector_space where id = ?", "integer").get(chunk.space)!
  appendVectors(db, { id: chunk.space, dims }, entries)
  return chunk.dead
}

function chunkRow(db: Db, id: number): ChunkRow | undefined {
  return rowQuery(db, "select * from vector_bits where id = ?", CHUNK_ROW).get(id)
}

/** A cache for callers that scan more than once. It is reset for another database or space. */
export type VectorCache = {
  db?: Db
  space?: number
  hamming?: HammingScanner
  chunks: Map<number, { version: number; position: number; size: number; docs: Uint32Array }>
}

export function createVectorCache(): VectorCache {
  return { chunks: new Map() }
}

type Chunk = { id: number; size: number; docs: Uint32Array; position: number; hamming: HammingScanner }

/** Yields the chunks of a space. Without a cache, all chunks use the same memory, one after another. */
function* chunksOf(db: Db, space: Space, cache: VectorCache | undefined): Generator<Chunk> {
  if (cache) return yield* cachedChunks(db, space, cache)
  const hamming = createHamming(strideOf(space.dims), CHUNK_SIZE)
  const sql = "select id, size, docs, bits from vector_bits where space = ? order by id"
  const shape = { id: "integer", size: "integer", docs: "blob", bits: "blob" } as const
  for (const { id, size, docs, bits } of rowQuery(db, sql, shape).iterate(space.id)) {
    hamming.chunk(0).set(bits)
    yield { id, size, docs: integersIn(docs), position: 0, hamming }
  }
}

function* cachedChunks(db: Db, space: Space, cache: VectorCache): Generator<Chunk> {
  if (cache.db !== db || cache.space !== space.id || !cache.hamming)
    Object.assign(cache, {
      db,
      space: space.id,
      hamming: createHamming(strideOf(space.dims), CHUNK_SIZE),
      chunks: new Map(),
    })
  const hamming = cache.hamming!
  const listedChunks = rowQuery(db, "select id, version from vector_bits where space = ? order by id", {
    id: "integer",
    version: "integer",
  }).all(space.id)
  const listedIds = new Set(listedChunks.map(({ id }) => id))
  for (const id of cache.chunks.keys()) if (!listedIds.has(id)) cache.chunks.delete(id)
  const takenPositions = new Set([...cache.chunks.values()].map(({ position }) => position))
  let freePosition = 0
  hamming.reserve(Math.max(listedChunks.length, ...[...takenPositions].map((position) => position + 1)))
  for (const { id, version } of listedChunks) {
    const cachedChunk = cache.chunks.get(id)
    if (cachedChunk?.version === version) continue
    const row = chunkRow(db, id)
    if (!row) continue // another process deleted it
    while (!cachedChunk && takenPositions.has(freePosition)) freePosition++
    const position = cachedChunk?.position ?? freePosition++
    hamming.chunk(position).set(row.bits)
    cache.chunks.set(id, { version: row.version, position, size: row.size, docs: integersIn(row.docs) })
  }
  for (const { id } of listedChunks) {
    const chunk = cache.chunks.get(id)
    if (chunk) yield { id, ...chunk, hamming }
  }
}

function integersIn(blob: Buffer): Uint32Array {
  return blob.byteOffset % 4 === 0
    ? new Uint32Array(blob.buffer, blob.byteOffset, blob.length / 4)
    : new Uint32Array(blob.buffer.slice(blob.byteOffset, blob.byteOffset + blob.length))
}

/** Returns at most `maxCount` of the nearest vectors, unsorted. Of equally distant ones, the newest are preferred. */
function nearestByBits(
  chunks: Iterable<Chunk>,
  query: Uint8Array,
  maxCount: number,
  allowed: ((doc: number) => boolean) | undefined,
): { slot: number; doc: number }[] {
  const counts = new Uint32Array(MAX_BITS + 2)
  const nearVectors: { slot: number; doc: number; distance: number }[] = []
  let limit = MAX_BITS + 1 // vectors at this distance or beyond are excluded
  let countWithinLimit = 0
  let current: HammingScanner | undefined
  for (const { id, size, docs, position, hamming } of chunks) {
    if (current !== hamming) hamming.setQuery(query)
    current = hamming
    const distances = hamming.distances(position, size)
    for (let i = 0; i < size; i++) {
      const distance = distances[i]!
      if (distance > limit) continue
      const doc = docs[i]!
      if (doc === 0 || (allowed && !allowed(doc))) continue
      nearVectors.push({ slot: id * CHUNK_SIZE + i, doc, distance })
      counts[distance]!++
      countWithinLimit++
      while (limit > 0 && countWithinLimit - counts[limit]! >= maxCount) countWithinLimit -= counts[limit--]!
    }
  }
  const belowLimit = nearVectors.filter(({ distance }) => distance < limit)
  const atLimit = nearVectors.filter(({ distance }) => distance === limit)
  atLimit.sort((a, b) => a.doc - b.doc)
  return [...belowLimit, ...atLimit.slice(0, Math.max(0, maxCount - belowLimit.length))]
}

function signBits(vector: Float32Array): Uint8Array {
  const bits = new Uint8Array(strideOf(vector.length))
  for (let i = 0; i < vector.length; i++) if (vector[i]! > 0) bits[i >> 3]! |= 1 << (i & 7)
  return bits
}

/** Converts each number to a byte. The length of the vector is lost, but a cosine depends only on the direction. */
function quantize(vector: Float32Array): Uint8Array {
  let largest = 0
  for (const value of vector) largest = Math.max(largest, Math.abs(value))
  const bytes = new Int8Array(vector.length)
  for (let i = 0; i < vector.length; i++) bytes[i] = Math.round((vector[i]! / (largest || 1)) * 127)
  return new Uint8Array(bytes.buffer)
}

function normalized(vector: Float32Array): Float32Array {
  const length = Math.hypot(...vector)
  return length === 0 ? vector : vector.map((value) => value / length)
}

function cosine(unitVector: Float32Array, data: Buffer): number {
  const bytes = new Int8Array(data.buffer, data.byteOffset, data.length)
  let dot = 0
  let square = 0
  for (let i = 0; i < unitVector.length; i++) {
    const value = bytes[i]!
    dot += unitVector[i]! * value
    square += value * value
  }
  return square === 0 ? 0 : dot / Math.sqrt(square)
}
