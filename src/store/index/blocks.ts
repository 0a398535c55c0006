import { crc32 } from "node:zlib"
import { DexError, isDexError } from "../../core/error.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery } from "../sqlite/typed-query.ts"
import { expressionOf, type Term } from "./terms.ts"
import { indexWords } from "./tokenizer.ts"

// Checksums for FTS5's blocks. FTS5 stores its words in blocks of about 4 kB (`words_data`) without a checksum: with a flipped
// bit, a search silently finds other messages. So dex stores a checksum of every block, and a search checks the blocks that
// contain its words. The layout of the blocks is FTS5's own and documented in its source; the version of SQLite is pinned.

/** Starts recording which blocks this connection writes. */
export function watchBlocks(db: Db): void {
  if (watchStates.has(db)) return
  watchStates.set(db, { dataVersion: currentDataVersion(db), areOthersCorrect: areSumsCurrent(db) })
  // SQLite protects FTS5's own tables from writes, and the next VACUUM would remove a permanent trigger on them.
  db.unsafeMode(true)
  db.exec("create temp table written_block (id integer primary key)")
  db.exec(
    "create temp trigger note_block after insert on words_data begin insert or ignore into written_block (id) values (new.id); end",
  )
}

/**
 * The state of each watched connection. `areOthersCorrect` is true if all blocks had correct checksums at `dataVersion`, except
 * those that this connection wrote.
 */
const watchStates = new WeakMap<Db, { dataVersion: unknown; areOthersCorrect: boolean }>()

/** A number that changes with each write of another connection. */
function currentDataVersion(db: Db): unknown {
  return db.pragma("data_version", { simple: true })
}

/**
 * Call this before rewriting blocks without changing their content: searches check nothing until the blocks have their
 * checksums again.
 */
export function distrustSums(db: Db): void {
  inTransaction(db, () => db.prepare("delete from meta where key = 'summed'").run())
}

/** Updates the checksums of the blocks that were written since the last call. */
export function sumBlocks(db: Db): void {
  const state = watchStates.get(db)
  if (!state || areSumsCurrent(db)) return
  inTransaction(db, () => {
    const dataVersion = currentDataVersion(db)
    if (state.areOthersCorrect && state.dataVersion === dataVersion) saveSums(db, SELECT_WRITTEN_BLOCKS)
    // Every write changes the structure block. If its checksum is wrong, other writes were not recorded either.
    if (!state.areOthersCorrect || state.dataVersion !== dataVersion || !isIntactBlock(blockOf(db, STRUCTURE_ID))) {
      db.exec("delete from block_sum")
      saveSums(db, SELECT_ALL_BLOCKS)
    }
    db.exec("delete from written_block")
    db.prepare("insert or replace into meta (key, value) select 'summed', value from meta where key = 'token'").run()
    watchStates.set(db, { dataVersion, areOthersCorrect: true })
  })
}

function saveSums(db: Db, sql: string): void {
  const sums: [bigint, number][] = []
  for (const { id, block } of db.prepare(sql).safeIntegers().iterate() as Iterable<{ id: bigint; block: Buffer }>)
    sums.push([id, crc32(block) | 0])
  const save = db.prepare("insert or replace into block_sum (id, sum) values (?, ?)")
  for (const [id, sum] of sums) save.run(id, sum)
}

const SELECT_ALL_BLOCKS = "select id, block from words_data"
const SELECT_WRITTEN_BLOCKS = "select d.id, d.block from written_block w join words_data d on d.id = w.id"

/** Whether no block was written since the checksums were last updated. */
export function areSumsCurrent(db: Db): boolean {
  const sql = "select 1 from meta a join meta b on b.key = 'summed' and b.value = a.value where a.key = 'token'"
  return db.prepare(sql).get() !== undefined
}

/** How long the blocks of a checked term are trusted, in milliseconds, so that one search does not check them twice. */
const TRUSTED_MS = 1_000
const trustCache = new WeakMap<Db, { at: number; expressions: Set<string> }>()

function trustedExpressionsOf(db: Db): Set<string> {
  let cached = trustCache.get(db)
  if (!cached || Date.now() - cached.at > TRUSTED_MS) {
    cached = { at: Date.now(), expressions: new Set() }
    trustCache.set(db, cached)
  }
  return cached.expressions
}

/** Throws a DexError `index_damaged` if a block with a word of these terms differs from what was written. */
export function checkBlocks(db: Db, terms: Term[]): void {
  const trustedExpressions = trustedExpressionsOf(db)
  const uncheckedTerms = terms.filter((term) => !trustedExpressions.has(expressionOf(term)))
  if (uncheckedTerms.length === 0) return
  if (areSumsCurrent(db)) {
    const segments = segmentsOf(db)
    for (const prefix of [false, true]) {
      const texts = uncheckedTerms.filter((term) => (term.prefix ?? false) === prefix).map(({ words }) => words)
      for (const token of texts.length === 0 ? [] : indexWords(texts))
        checkToken(db, segments, Buffer.from(`0${token}`), prefix)
    }
  }
  for (const term of uncheckedTerms) trustedExpressions.add(expressionOf(term))
}

/** Checks all blocks and returns the number of damaged ones, or 0 if the checksums are out of date. */
export function countDamagedBlocks(db: Db): number {
  if (!areSumsCurrent(db)) return 0
  const rows = rowQuery(db, "select d.block, s.sum from words_data d left join block_sum s on s.id = d.id", {
    block: "blob",
    sum: "integer?",
  }).iterate()
  let damagedCount = 0
  for (const row of rows) if (!isIntactBlock(row)) damagedCount++
  return damagedCount
}

/** Whether FTS5's list of pages (`words_idx`), which has no checksums, matches the pages. */
export function areListsConsistent(db: Db): boolean {
  try {
    return segmentsOf(db).every((segment) => isListConsistent(db, segment))
  } catch (error) {
    if (isDexError(error) && error.code === "index_damaged") return false
    throw error
  }
}

/** Whether every page on which a term begins is listed with the beginning of that term, and no page is missing. */
function isListConsistent(db: Db, { id, first, last }: Segment): boolean {
  const rows = db.prepare(SELECT_LISTED_PAGES).all(id) as { term: Buffer | string; page: number }[]
  const listedTerms = new Map(rows.map(({ term, page }) => [page, Buffer.from(term)]))
  const isInOrder = rows.every(({ page }, i) => page > (rows[i - 1]?.page ?? first - 1) && page <= last)
  if (!isInOrder) return false
  let page = first
  const pages = rowQuery(db, SELECT_PAGES, { number: "integer", block: "blob" }).iterate({ id, first, last })
  for (const { number, block } of pages) {
    if (number !== page++) return false
    const firstOfPage = firstTerm(block)
    const listedTerm = listedTerms.get(number)
    // The first page of a segment that is being merged loses its first terms.
    if (number > first && (listedTerm ? !firstOfPage?.subarray(0, listedTerm.length).equals(listedTerm) : firstOfPage))
      return false
  }
  return page === last + 1
}

const SELECT_LISTED_PAGES = "select term, pgno >> 1 as page from words_idx where segid = ? order by term"
const SELECT_PAGES = `select id & 2147483647 as number, block from words_data
  where id between (@id << 37) + @first and (@id << 37) + @last order by id`

const AVERAGES_ID = 1n
const STRUCTURE_ID = 10n
/** How far a segment's id is shifted in the id of its blocks, and what is added to it first for blocks with tombstones. */
const SEGMENT_BITS = 37n
const TOMBSTONE_OFFSET = 1n << 16n
/** The first bytes of a structure that includes tombstones. */
const STRUCTURE_WITH_TOMBSTONES = 0xff000001

type Segment = { id: number; first: number; last: number }

/** Checks the blocks with the averages, the structure and the tombstones, and returns the segments of the structure. */
function segmentsOf(db: Db): Segment[] {
  checkedBlock(db, AVERAGES_ID)
  const block = checkedBlock(db, STRUCTURE_ID)
  if (block.readUInt32BE(4) !== STRUCTURE_WITH_TOMBSTONES) throw blockDamage("its structure")
  let offset = 8
  const readNumber = () => {
    const { value, end } = readVarint(block, offset)
    offset = end
    return value
  }
  const levelCount = readNumber()
  readNumber() // the number of segments
  readNumber() // the number of writes until now
  const segments: Segment[] = []
  for (let level = 0; level < levelCount; level++) {
    readNumber() // the number of segments that are being merged
    for (let segmentsLeft = readNumber(); segmentsLeft > 0; segmentsLeft--) {
      const segment = { id: readNumber(), first: readNumber(), last: readNumber() }
      readNumber() // the first value of `origin`
      readNumber() // the last value of `origin`
      const tombstonePageCount = readNumber()
      readNumber() // the number of deleted entries
      readNumber() // the number of messages
      for (let page = 0; page < tombstonePageCount; page++)
        checkedBlock(db, ((BigInt(segment.id) + TOMBSTONE_OFFSET) << SEGMENT_BITS) + BigInt(page))
      if (segment.last > 0) segments.push(segment)
    }
  }
  return segments
}

/** Selects the page of each segment that should contain a term, according to the list of pages, and the page after it. */
const SELECT_TERM_PAGES = `with segment as (
    select s.value ->> 'id' as id, s.value ->> 'first' as first, s.value ->> 'last' as last from json_each(@segments) s
  ), named as materialized (
    select s.*, i.term, i.pgno >> 1 as page from segment s left join words_idx i
      on i.segid = s.id and i.term = (select max(term) from words_idx where segid = s.id and term <= @term)
  )
  select n.id as segment, n.term, n.page, n.first, n.last, d.id & 2147483647 as number, d.block, b.sum from named n
    join words_data d on d.id >= (n.id << 37) + max(n.first, ifnull(n.page, 0))
      and d.id <= (n.id << 37) + min(n.last, max(n.first, ifnull(n.page, 0)) + 1)
    left join block_sum b on b.id = d.id order by n.id, d.id`

type TermPage = Segment & {
  segment: number
  term: Buffer | string | null
  page: number | null
  number: number
  block: Buffer
  sum: number | null
}

/**
 * Checks the pages that contain a term: in each segment, from the page that the list names to the first page that begins with a
 * later term. The list has the beginning of each page's first term, so the pages themselves show whether the list named the
 * right one.
 */
function checkToken(db: Db, segments: Segment[], term: Buffer, prefix: boolean): void {
  const rows = db.prepare(SELECT_TERM_PAGES).all({ segments: JSON.stringify(segments), term }) as TermPage[]
  for (const row of rows) if (!isIntactBlock(row)) throw blockDamage("a block of words")
  const bySegment = Map.groupBy(rows, ({ segment }) => segment)
  if (bySegment.size < segments.length) throw blockDamage("its list of words")
  for (const [start, after] of bySegment.values()) checkRange(db, start!, after, term, prefix)
}

function checkRange(db: Db, start: TermPage, after: TermPage | undefined, term: Buffer, prefix: boolean): void {
  const firstOfPage = firstTerm(start.block)
  const listedStart = Buffer.from(start.term ?? "")
  // The first page of a segment that is being merged loses its first terms, and no earlier page can be missing.
  if (
    start.page !== null &&
    start.page > start.first &&
    !firstOfPage?.subarray(0, listedStart.length).equals(listedStart)
  )
    throw blockDamage("its list of words")
  if (firstOfPage && firstOfPage.compare(term) > 0 && !prefix) return
  let nextTerm = after && firstTerm(after.block)
  for (let number = start.number + 1; number <= start.last; number++) {
    if (number > start.number + 1)
      nextTerm = firstTerm(checkedBlock(db, (BigInt(start.segment) << SEGMENT_BITS) + BigInt(number)))
    if (number === start.number + MIN_PAGES_WITH_SKIPS) checkSkips(db, BigInt(start.segment), start.number)
    if (!nextTerm) continue // the page has more messages of the same term
    if (nextTerm.compare(term) > 0 && !(prefix && nextTerm.subarray(0, term.length).equals(term))) return
    if (!prefix) throw blockDamage("its list of words")
  }
}

function isIntactBlock(row: { block: Buffer; sum: number | null } | undefined): boolean {
  return Buffer.isBuffer(row?.block) && (crc32(row.block) | 0) === row.sum
}

/** If a term fills at least this many pages, FTS5 stores additional blocks that let it skip some of the pages. */
const MIN_PAGES_WITH_SKIPS = 4
const SKIP_BLOCK = 1n << 36n
const SKIP_HEIGHTS = [0n, 1n, 2n, 3n].map((height) => height << 31n)

function checkSkips(db: Db, segment: bigint, page: number): void {
  const exists = db.prepare("select 1 from words_data where id = ?")
  for (const height of SKIP_HEIGHTS) {
    const id = (segment << SEGMENT_BITS) + SKIP_BLOCK + height + BigInt(page)
    if (exists.get(id) !== undefined) checkedBlock(db, id)
  }
}

/** Returns the first term that begins on a page, or undefined if there is none. */
function firstTerm(page: Buffer): Buffer | undefined {
  const footer = page.readUInt16BE(2)
  if (footer >= page.length) return undefined
  const { value: start } = readVarint(page, footer)
  const { value: length, end } = readVarint(page, start)
  return page.subarray(end, end + length)
}

function checkedBlock(db: Db, id: bigint): Buffer {
  const row = blockOf(db, id)
  if (!row || !isIntactBlock(row)) throw blockDamage("a block of words")
  return row.block
}

function blockOf(db: Db, id: bigint): { block: Buffer; sum: number } | undefined {
  const sql = "select d.block, s.sum from words_data d join block_sum s on s.id = d.id where d.id = ?"
  return rowQuery(db, sql, { block: "blob", sum: "integer" }).get(id)
}

function readVarint(bytes: Buffer, start: number): { value: number; end: number } {
  let value = 0
  for (let offset = start; offset < start + 8 && offset < bytes.length; offset++) {
    value = value * 128 + (bytes[offset]! & 127)
    if (bytes[offset]! < 128) return { value, end: offset + 1 }
  }
  throw blockDamage("a block of words")
}

function blockDamage(what: string): DexError {
  return indexDamage(`${what} changed on disk`)
}

export function indexDamage(what: string): DexError {
  return new DexError("index_damaged", `The search index is damaged (${what}). \`dex sync\` rebuilds it.`)
}
