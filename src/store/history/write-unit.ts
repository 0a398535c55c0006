import { type Db, inTransaction } from "../sqlite/database.ts"
import { rowQuery, valueQuery } from "../sqlite/typed-query.ts"
import { type Block, packBlock, readBlock, unpackBlock } from "./codec.ts"
import { isIntact, rowSum } from "./rot/sums.ts"
import { BLOCK_COUNT } from "./row-counts.ts"
import type { ConversationWrite, UnitWrite, WriteResult } from "./store.ts"
import { isForgotten } from "./tombstones.ts"
import { conversationsOnlyIn, deleteConversation, saveConversation } from "./write-conversation.ts"

/** The column `kind` of raw records: 0 if the source still has them, 1 if it had them before it was rewritten. */
const RAW_LIVE = 0
const RAW_LEFT = 1

const MAX_SKIPPED = 1000

/**
 * An append extends the last block if its uncompressed size is below this. Otherwise a session that is still growing would leave
 * hundreds of blocks.
 */
const SMALL_BLOCK_BYTES = 48 << 10

/**
 * Stores a unit's conversations, records and cursor in one transaction, so that a crash leaves either all of them or none.
 * Writing the same conversations twice adds no messages, but an append must be written only once: its records are added again.
 */
export function writeUnit(db: Db, write: UnitWrite, platform = process.platform): WriteResult {
  return inTransaction(db, () => {
    const conversations = write.conversations
      .filter((conversation) => !isForgotten(db, write.source, conversation.id))
      .map((conversation) => withoutForgotten(db, write.source, conversation))
    const forgotten = write.conversations.length - conversations.length
    const withholds = forgotten > 0 || write.withholdsRaw === true
    const unitId = saveUnit(db, write, withholds)
    saveClaims(db, unitId, conversations)
    if (withholds) deleteRaw(db, unitId)
    else saveRaw(db, unitId, write.raw)
    db.prepare(`update unit set blocks = ${BLOCK_COUNT} where id = @id`).run({ id: unitId })
    const result: WriteResult = { changed: 0, added_messages: 0, forgotten, fresh: [], paid: [], unitsToRead: [] }
    const written = new Set<number>()
    for (const conversation of conversations) {
      const saved = saveConversation(db, write, unitId, conversation, platform)
      if (!saved) continue
      written.add(saved.id)
      result.unitsToRead.push(...saved.unitsToRead)
      result.changed += saved.changed ? 1 : 0
      result.added_messages += saved.added
      const ref = { source: write.source, id: conversation.id }
      if (saved.fresh.length > 0) result.fresh.push({ ref, messages: saved.fresh })
      if (saved.paid) result.paid.push({ ref, ...saved.paid })
    }
    // Mark the units to read again in the same transaction, so that the next sync reads them if this one is interrupted.
    for (const key of result.unitsToRead)
      db.prepare("update unit set stamp = '' where source = ? and key = ?").run(write.source, key)
    if (write.dropsMissing && !write.partial)
      for (const id of conversationsOnlyIn(db, unitId)) if (!written.has(id)) deleteConversation(db, id)
    return result
  })
}

/** Removes `fork_of` if it names a forgotten conversation, because the name of that conversation must not be stored again. */
function withoutForgotten(db: Db, source: string, conversation: ConversationWrite): ConversationWrite {
  const { fork_of, ...rest } = conversation
  return fork_of !== undefined && isForgotten(db, source, fork_of) ? rest : conversation
}

function saveUnit(db: Db, write: UnitWrite, withheld: boolean): number {
  const { unit } = write
  const before = write.addsToCounts ? countsOf(db, write.source, unit.key) : { skipped: [], redactions: {} }
  return valueQuery(
    db,
    `insert into unit (source, key, path, stamp, cursor, born_at, modified_at, connector_version, redaction_version,
         state, raw_withheld, skipped, unknown, redactions)
       values (@source, @key, @path, @stamp, @cursor, @bornAt, @modifiedAt, @connector_version, @redaction_version,
         ifnull(@state, 'archived'), @withheld, @skipped, @unknown, @redactions)
       on conflict (source, key) do update set path = excluded.path, stamp = excluded.stamp, cursor = excluded.cursor,
         born_at = min(born_at, excluded.born_at), modified_at = excluded.modified_at,
         connector_version = excluded.connector_version, redaction_version = excluded.redaction_version,
         state = ifnull(@state, state), raw_withheld = excluded.raw_withheld, skipped = excluded.skipped,
         unknown = excluded.unknown, redactions = excluded.redactions, sum = null
       returning id`,
    "integer",
  ).get({
    source: write.source,
    key: unit.key,
    path: unit.path,
    stamp: unit.stamp,
    cursor: write.cursor,
    bornAt: Math.round(unit.bornAt),
    modifiedAt: Math.round(unit.modifiedAt),
    connector_version: write.connector_version,
    redaction_version: write.redaction_version,
    state: write.sourceExists ? "present" : null,
    withheld: withheld ? 1 : 0,
    skipped: JSON.stringify([...before.skipped, ...write.skipped].slice(0, MAX_SKIPPED)),
    unknown: JSON.stringify(write.unknown),
    redactions: JSON.stringify(sumByName(before.redactions, write.redactions)),
  })!
}

function countsOf(db: Db, source: string, key: string): Pick<UnitWrite, "skipped" | "redactions"> {
  const row = rowQuery(db, "select skipped, redactions from unit where source = ? and key = ?", {
    skipped: "text",
    redactions: "text",
  }).get(source, key)
  return row
    ? { skipped: JSON.parse(row.skipped), redactions: JSON.parse(row.redactions) }
    : { skipped: [], redactions: {} }
}

function sumByName(a: Record<string, number>, b: Record<string, number>): Record<string, number> {
  const sum = { ...a }
  for (const [name, count] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + count
  return sum
}

/**
 * Records which conversations a unit contains, even those whose messages come from a unit of higher authority, because forgetting
 * a conversation must find all of its units.
 */
function saveClaims(db: Db, unitId: number, conversations: ConversationWrite[]): void {
  db.prepare("delete from claim where unit_id = ?").run(unitId)
  const claim = db.prepare(
    "insert or ignore into claim (native_id, unit_id, authority, live, began_at) values (?, ?, ?, ?, ?)",
  )
  for (const { id, authority, messages } of conversations) {
    const live = messages.filter((message) => !message.superseded)
    const beganAt = live.find(({ at }) => at !== undefined)?.at ?? null
    claim.run(id, unitId, authority, live.length > 0 ? 1 : 0, beganAt)
  }
}

function saveRaw(db: Db, unitId: number, raw: UnitWrite["raw"]): void {
  if (raw.mode === "rewrite") deleteRaw(db, unitId)
  if (raw.mode === "replace") db.prepare("delete from raw where unit_id = ? and kind = ?").run(unitId, RAW_LIVE)
  appendRaw(db, unitId, RAW_LIVE, raw.live)
  appendRaw(db, unitId, RAW_LEFT, raw.left)
}

function appendRaw(db: Db, unitId: number, kind: number, blocks: Block[]): void {
  if (blocks.length === 0) return
  const last = rowQuery(db, "select * from raw where unit_id = ? and kind = ? order by seq desc limit 1", {
    seq: "integer",
    bytes: "integer",
    data: "blob",
    sum: "integer?",
  }).get(unitId, kind)
  const insert = db.prepare(
    "insert or replace into raw (unit_id, kind, seq, records, bytes, data, sum) values (?, ?, ?, ?, ?, ?, ?)",
  )
  let seq = last ? last.seq + 1 : 0
  let [first, ...rest] = blocks
  const canExtend = last !== undefined && last.bytes < SMALL_BLOCK_BYTES && isIntact(db, "raw", last)
  const before = canExtend ? readBlock(last.data) : undefined
  if (last && first && before) {
    first = packBlock([...before, ...unpackBlock(first.data)])
    seq = last.seq
  }
  for (const { lineCount, bytes, data } of [first!, ...rest]) {
    const values = [unitId, kind, seq++, lineCount, bytes, data]
    insert.run(...values, rowSum("raw", values))
  }
}

function deleteRaw(db: Db, unitId: number): void {
  db.prepare("delete from raw where unit_id = ?").run(unitId)
}
