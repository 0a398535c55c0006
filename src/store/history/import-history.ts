import { hash } from "node:crypto"
import type { Kind, SourceId, Title } from "../../core/conversation.ts"
import type { Db } from "../sqlite/database.ts"
import { loadLines } from "./bodies.ts"
import type { Block } from "./codec.ts"
import type { ConversationWrite, ImportReport, MessageWrite, UnitWrite } from "./store.ts"
import { type OldRow, restored } from "./write-conversation.ts"
import { writeUnit } from "./write-unit.ts"

type UnitRow = {
  id: number
  source: SourceId
  key: string
  path: string
  stamp: string
  cursor: string
  born_at: number
  modified_at: number
  connector_version: number
  redaction_version: number
  skipped: string
  unknown: string
  redactions: string
}

/**
 * Merges another history into this one, unit by unit, each in one transaction. A unit from elsewhere has a key of its
 * own and counts as archived, so what it tells is merged by message key with what is told here, and importing the same
 * history again changes nothing. Documents stay where they are: their files are there to be read.
 */
export function mergeHistory(
  db: Db,
  other: Db,
  otherId: string,
  onProgress?: (done: number, total: number) => void,
): ImportReport {
  const report: ImportReport = { units: 0, conversations: 0, messages: 0, forgotten: 0 }
  const units = other.prepare("select * from unit where source <> 'docs' order by modified_at desc").all() as UnitRow[]
  for (const [i, unit] of units.entries()) {
    onProgress?.(i, units.length)
    const written = writeUnit(db, unitWrite(other, unit, otherId))
    report.units++
    report.conversations += written.changed
    report.messages += written.added_messages
    report.forgotten += written.forgotten
  }
  onProgress?.(units.length, units.length)
  return report
}

function unitWrite(other: Db, unit: UnitRow, otherId: string): UnitWrite {
  const { key, path, stamp, born_at, modified_at } = unit
  return {
    source: unit.source,
    unit: { key: importedKey(key, otherId), path, stamp, bornAt: born_at, modifiedAt: modified_at },
    seen: false,
    cursor: unit.cursor,
    connector_version: unit.connector_version,
    redaction_version: unit.redaction_version,
    raw: { mode: "rewrite", live: rawBlocks(other, unit.id, 0), left: rawBlocks(other, unit.id, 1) },
    conversations: conversationsToldBy(other, unit.id),
    tellsAll: true,
    dropsUntold: false,
    skipped: JSON.parse(unit.skipped),
    unknown: JSON.parse(unit.unknown),
    redactions: JSON.parse(unit.redactions),
  }
}

/** What was imported there keeps the name of the history it came from, or two machines would hand it on for ever. */
function importedKey(key: string, otherId: string): string {
  return key.includes("#from-") ? key : `${key}#from-${hash("sha256", otherId).slice(0, 12)}`
}

function rawBlocks(other: Db, unitId: number, kind: number): Block[] {
  const rows = other
    .prepare("select records, bytes, data from raw where unit_id = ? and kind = ? order by seq")
    .all(unitId, kind) as { records: number; bytes: number; data: Buffer }[]
  return rows.map(({ records, bytes, data }) => ({ lines: records, bytes, data }))
}

type ConversationFacts = Record<string, string | null> & { id: number; unit_id: number; authority: number; kind: Kind }

function conversationsToldBy(other: Db, unitId: number): ConversationWrite[] {
  const rows = other
    .prepare(
      `select c.*, p.path as project, p.git_remote from conversation c left join project p on p.id = c.project_id
       where c.unit_id = @unit or c.id in (select conversation_id from message where unit_id = @unit)`,
    )
    .all({ unit: unitId }) as ConversationFacts[]
  return rows.map((row) => conversationWrite(other, row, unitId)).filter(({ messages }) => messages.length > 0)
}

function conversationWrite(other: Db, row: ConversationFacts, unitId: number): ConversationWrite {
  const present = (name: string) => (row[name] === null ? {} : { [name]: row[name] })
  return {
    id: row.native_id!,
    kind: row.kind,
    ...(row.title !== null && { title: { text: row.title!, from: row.title_from as Title["from"] } }),
    cwds: JSON.parse(row.cwds!),
    ...present("git_branch"),
    ...present("git_remote"),
    ...present("git_commit"),
    ...present("agent_version"),
    ...present("fork_of"),
    ...present("resume_of"),
    ...present("started_at"),
    ...present("ended_at"),
    ...present("project"),
    ...(row.parent_id !== null && {
      parent: { id: row.parent_id!, ...(row.parent_call_id !== null && { call_id: row.parent_call_id! }) },
    }),
    authority: row.authority,
    messages: messagesToldBy(other, row, unitId),
  }
}

function messagesToldBy(other: Db, { id, unit_id }: ConversationFacts, unitId: number): MessageWrite[] {
  const lines = loadLines(other, id)
  const rows = other
    .prepare(
      `select number, position, chunk, key, role, flags, at, unit_id from message
       where conversation_id = ? and ifnull(unit_id, ?) = ? order by ifnull(position, number)`,
    )
    .all(id, unit_id, unitId) as OldRow[]
  return rows.flatMap((row) => {
    const line = lines.get(row.number)
    if (line === undefined) return []
    const { message } = restored({ ...row, by: unitId, line })
    return [{ ...message, stored: { key: row.key, number: row.number } }]
  })
}
