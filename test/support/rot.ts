import { join } from "node:path"
import { type Db, openSqlite } from "../../src/store/sqlite/engine.ts"

/** Changes stored data without dex noticing, as a failing disk does. */
export function rot(home: string, change: (db: Db) => void): void {
  const db = openSqlite(join(home, ".dex", "history.db"))
  db.unsafeMode(true)
  db.pragma("writable_schema = on")
  change(db)
  db.close()
}

/** The number of a conversation in the history. */
export function idOf(db: Db, ref: string): number {
  return db.prepare("select id from conversation where source || ':' || native_id = ?").pluck().get(ref) as number
}

export const flipBit = (data: Buffer, at = data.length >> 1) => {
  const flipped = Buffer.from(data)
  flipped[at]! ^= 4
  return flipped
}

/** Clears a complete sector, as disks lose them. */
export const loseSector = (data: Buffer) => {
  const lost = Buffer.from(data)
  lost.fill(0, lost.length >> 1, (lost.length >> 1) + 64)
  return lost
}

export function rotBodies(home: string, ref: string, change: (data: Buffer) => Buffer): void {
  rot(home, (db) => {
    const rows = db.prepare("select chunk, data from body where conversation_id = ?").all(idOf(db, ref)) as {
      chunk: number
      data: Buffer
    }[]
    for (const { chunk, data } of rows)
      db.prepare("update body set data = ? where conversation_id = ? and chunk = ?").run(
        change(data),
        idOf(db, ref),
        chunk,
      )
  })
}

export function rotRecords(home: string, ref: string, change: (data: Buffer) => Buffer): void {
  rot(home, (db) => {
    const unit = db.prepare("select unit_id from conversation where id = ?").pluck().get(idOf(db, ref))
    const rows = db.prepare("select kind, seq, data from raw where unit_id = ?").all(unit) as {
      kind: number
      seq: number
      data: Buffer
    }[]
    for (const { kind, seq, data } of rows)
      db.prepare("update raw set data = ? where unit_id = ? and kind = ? and seq = ?").run(
        change(data),
        unit,
        kind,
        seq,
      )
  })
}
