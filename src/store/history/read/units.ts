import { createCounts } from "../../../core/by-name.ts"
import { CONVERSATION_KINDS, type SourceId } from "../../../core/conversation.ts"
import { DexError, isDexError } from "../../../core/error.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery, tupleQuery, valueQuery } from "../../sqlite/typed-query.ts"
import { readBlock } from "../codec.ts"
import { damagedIds, intactRow, type OnDamage, tryParseJson } from "../rot/checked-rows.ts"
import { isIntact } from "../rot/sums.ts"
import { tableSql } from "../rot/table-sql.ts"
import type { KnownUnit, SourceReport, UnitMark, UnitWithSecrets, UnreadableFile } from "../store.ts"
import { type RowIn, TABLES } from "../tables.ts"
import { metaJson } from "./meta.ts"
import { ENDED_AT, isImportedKey, NOT_DAMAGED } from "./rows.ts"

// Queries for units that earlier syncs read, and for their raw records.

export function knownUnits(db: Db, source: SourceId): Map<string, UnitMark> {
  const sql = "select key, path, stamp, connector_version, redaction_version, state from unit where source = ?"
  const rows = tupleQuery(db, sql, ["text", "text", "text", "integer", "integer", TABLES.unit.state]).all(source)
  const marks = new Map<string, UnitMark>()
  for (const [key, path, stamp, connector_version, redaction_version, state] of rows)
    marks.set(key, { path, stamp, connector_version, redaction_version, state })
  return marks
}

export function knownUnit(db: Db, source: SourceId, key: string): KnownUnit | undefined {
  const stored = rowQuery(db, "select * from unit where source = ? and key = ?", TABLES.unit).get(source, key)
  if (!stored) return undefined
  const { path, stamp, cursor, connector_version, redaction_version, born_at, modified_at, state, raw_withheld } =
    // If the row itself is damaged, its cursor is not reliable.
    intactRow(db, "unit", stored, () => {}) ?? { ...stored, cursor: "null", connector_version: 0 }
  const mark = { path, stamp, cursor, connector_version, redaction_version, born_at, modified_at, state }
  return { key, ...mark, raw_withheld: raw_withheld === 1 }
}

export function knownContainers(db: Db, source: SourceId): Map<string, string> {
  const rows = rowQuery(db, "select path, stamp from container where source = ?", { path: "text", stamp: "text" }).all(
    source,
  )
  return new Map(rows.map((row) => [row.path, row.stamp]))
}

export function rawLines(
  db: Db,
  source: SourceId,
  unitKey: string,
  kind: "live" | "left",
  onlyReadable: boolean,
): string[] {
  const unit = rowQuery(db, "select id, blocks from unit where source = ? and key = ?", {
    id: "integer",
    blocks: "integer?",
  }).get(source, unitKey)
  if (!unit) return []
  const blocks = rawBlocks(db, unit, kind === "live" ? 0 : 1)
  return blocks.flatMap((block) => {
    const lines = block && readBlock(block.data)
    if (!lines && !onlyReadable) throw new DexError("damaged", `The stored records of ${unitKey} are damaged.`)
    return lines ?? []
  })
}

/** Returns the blocks in order, followed by undefined if some are damaged or missing. */
function rawBlocks(
  db: Db,
  { id, blocks }: { id: number; blocks: number | null },
  kind: number,
): (RowIn<"raw"> | undefined)[] {
  const sql = "select * from raw where unit_id = ? and kind = ? order by seq"
  const stored = rowQuery(db, sql, TABLES.raw).all(id, kind)
  const isComplete = blocks === null || blocks === db.prepare(tableSql("raw").countOf).pluck().get(id, id)
  if (isComplete && stored.every((row) => row.unit_id === id && row.kind === kind && isIntact(db, "raw", row)))
    return stored
  return [...stored.filter((row) => row.unit_id === id && row.kind === kind && isIntact(db, "raw", row)), undefined]
}

export function hasReadableRecords(db: Db, source: SourceId, unitKey: string): boolean {
  try {
    for (const kind of ["live", "left"] as const) rawLines(db, source, unitKey, kind, false)
    return true
  } catch (error) {
    if (isDexError(error) && error.code === "damaged") return false
    throw error
  }
}

const UNREADABLE_PREFIX = "unreadable:"

export function unreadableFiles(db: Db, source: SourceId): UnreadableFile[] {
  return metaJson<UnreadableFile[]>(db, `${UNREADABLE_PREFIX}${source}`) ?? []
}

/** Returns the sources of all files that dex has read or failed to read. */
export function unitSources(db: Db): SourceId[] {
  const sql = `select distinct source from unit where source <> 'docs'
    union select substr(key, length(@prefix) + 1) from meta where key >= @prefix and key < @prefix || char(0x10ffff)`
  return valueQuery(db, sql, "text").all({ prefix: UNREADABLE_PREFIX })
}

export function sourceReport(db: Db, onDamage: OnDamage): SourceReport[] {
  const damaged = damagedIds(db, onDamage)
  return unitSources(db).flatMap((source) => {
    const stored = rowQuery(db, "select * from unit where source = ?", TABLES.unit).all(source)
    const units = stored
      .map((row) => intactRow(db, "unit", row, () => onDamage(`the record of ${source} files`)))
      .filter((row) => row !== undefined)
    const unreadable = unreadableFiles(db, source).map(({ path, reason }) => ({ path, reason }))
    if (units.length === 0 && unreadable.length === 0) return []
    const totals = rowQuery(
      db,
      `select count(*) as conversations, ifnull(sum(message_count - copied_count), 0) as messages, max(${ENDED_AT}) as last_at
         from conversation c where source = @source and ${NOT_DAMAGED}`,
      { conversations: "integer", messages: "integer", last_at: "integer?" },
    ).get({ source, damaged })!
    const kinds = tupleQuery(
      db,
      `select kind, count(*) from conversation c where source = @source and ${NOT_DAMAGED} group by kind`,
      [CONVERSATION_KINDS, "integer"],
    ).all({ source, damaged })
    const skipped = createCounts()
    const unknown = createCounts()
    const redactions = createCounts()
    for (const unit of units) {
      for (const { reason } of (tryParseJson(unit.skipped) ?? []) as { reason: string }[]) skipped.add(reason)
      for (const [type, n] of Object.entries(storedCounts(unit.unknown))) unknown.add(type, n)
      for (const [rule, n] of Object.entries(storedCounts(unit.redactions))) redactions.add(rule, n)
    }
    const databases = [...knownContainers(db, source).keys()].sort()
    return [
      {
        source,
        units: stored.length,
        archived: units.filter((unit) => unit.state === "archived").length,
        conversations: totals.conversations,
        messages: totals.messages,
        last_at: totals.last_at ?? undefined,
        kinds: Object.fromEntries(kinds),
        skipped: skipped.all(),
        unknown: unknown.all(),
        redactions: redactions.all(),
        unreadable,
        databases: databases.length > 0 ? databases : undefined,
      },
    ]
  })
}

function storedCounts(json: string): Record<string, number> {
  return (tryParseJson(json) ?? {}) as Record<string, number>
}

export function unitsWithSecrets(db: Db, onDamage: OnDamage): UnitWithSecrets[] {
  const stored = rowQuery(
    db,
    "select * from unit where source <> 'docs' and redactions <> '{}' order by modified_at desc, id",
    TABLES.unit,
  ).all()
  const claims = tupleQuery(
    db,
    `select k.native_id, p.path from claim k left join conversation c on c.source = @source and c.native_id = k.native_id
       left join project p on p.id = c.project_id where k.unit_id = @id order by k.native_id`,
    ["text", "text?"],
  )
  return stored.flatMap((row) => {
    const unit = intactRow(db, "unit", row, () => onDamage(`the record of ${row.source} files`))
    if (!unit) return []
    const { source, path } = unit
    const claimed = claims.all({ source, id: unit.id })
    return [
      {
        source,
        path,
        isArchived: unit.state === "archived",
        isImported: isImportedKey(unit.key),
        redactions: storedCounts(unit.redactions),
        conversations: claimed.map(([id]) => id),
        projects: [...new Set(claimed.flatMap(([, project]) => project ?? []))],
      },
    ]
  })
}
