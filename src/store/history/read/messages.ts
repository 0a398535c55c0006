import type { Effect, Message } from "../../../core/conversation.ts"
import { isValidTime } from "../../../core/record.ts"
import type { Ref } from "../../../core/ref.ts"
import type { Usage } from "../../../core/usage.ts"
import type { Db } from "../../sqlite/database.ts"
import { rowQuery } from "../../sqlite/typed-query.ts"
import { lineOfMessage, numberOfLine, readBlock } from "../codec.ts"
import { MESSAGE_FLAGS } from "../flags.ts"
import { type OnDamage, tryParseJson } from "../rot/checked-rows.ts"
import { isIntact } from "../rot/sums.ts"
import type { MessageVersion, StoredMessage } from "../store.ts"
import { type RowIn, TABLES } from "../tables.ts"
import { findStoredConversation, rowsOf, type StoredConversation } from "./rows.ts"

/** Loads messages. Those that cannot be read are left out and reported to `onDamage`. */
export function loadMessages(db: Db, ref: Ref, numbers: number[] | undefined, onDamage: OnDamage): StoredMessage[] {
  const conversation = findStoredConversation(db, ref)
  if (conversation === undefined) return []
  const { id } = conversation
  const reportDamage = () => onDamage(ref)
  const rows = numbers
    ? rowsWithNumbers(db, conversation, numbers, reportDamage)
    : rowsOf(db, "message", conversation, reportDamage)
  const byChunk = Map.groupBy(rows, (row) => row.chunk)
  const messages: { position: number; message: StoredMessage }[] = []
  for (const [chunk, chunkRows] of byChunk) {
    const block = rowQuery(db, SELECT_BODY, TABLES.body).get(id, chunk)
    const isReadable = block !== undefined && isIntact(db, "body", block)
    const bodies = isReadable ? bodiesOf(block.data, chunkRows) : []
    if (bodies.length < chunkRows.length) reportDamage()
    for (const { row, body } of bodies)
      messages.push({ position: row.position ?? row.number, message: toMessage(row, body) })
  }
  return messages.sort((a, b) => a.position - b.position).map(({ message }) => message)
}

type MessageRow = RowIn<"message">

type Body = { n: number; model?: string; usage?: Usage; parts: Message["parts"]; effects?: Effect[] }

const SELECT_BODY = "select * from body where conversation_id = ? and chunk = ?"

const SELECT_MESSAGE = "select * from message where conversation_id = ? and number = ?"

function rowsWithNumbers(
  db: Db,
  conversation: StoredConversation,
  numbers: number[],
  onDamage: () => void,
): MessageRow[] {
  const query = rowQuery(db, SELECT_MESSAGE, TABLES.message)
  const numberSet = new Set(numbers)
  const rows = [...numberSet].flatMap((number) => query.get(conversation.id, number) ?? [])
  if (rows.length === numberSet.size && rows.every((row) => isIntact(db, "message", row))) return rows
  return rowsOf(db, "message", conversation, onDamage).filter((row) => numberSet.has(row.number))
}

/** Returns each row whose body can be read. A single body is looked up in its block; for several, the block is decoded. */
function bodiesOf(data: Buffer, rows: MessageRow[]): { row: MessageRow; body: Body }[] {
  const byNumber = new Map(rows.map((row) => [row.number, row]))
  const [first] = rows
  const lines = first && rows.length === 1 ? [lineOfMessage(data, first.number) ?? ""] : (readBlock(data) ?? [])
  return lines.flatMap((line) => {
    const row = byNumber.get(numberOfLine(line))
    const body = row && (tryParseJson(line) as Body | undefined)
    return body ? [{ row, body }] : []
  })
}

function toMessage(row: MessageRow, body: Body): StoredMessage {
  return {
    number: row.number,
    role: row.role,
    at: isValidTime(row.at) ? row.at : undefined,
    model: body.model,
    parts: body.parts,
    effects: body.effects ?? [],
    usage: body.usage,
    abandoned: (row.flags & MESSAGE_FLAGS.abandoned) !== 0,
    superseded: (row.flags & MESSAGE_FLAGS.superseded) !== 0,
    copied: (row.flags & MESSAGE_FLAGS.copied) !== 0,
  }
}

export function readVersions(db: Db, ref: Ref, onDamage: OnDamage): MessageVersion[] {
  const conversation = findStoredConversation(db, ref)
  const rows = conversation ? rowsOf(db, "message", conversation, () => onDamage(ref)) : []
  return rows
    .map(({ number, version, flags }) => ({ number, version, copied: (flags & MESSAGE_FLAGS.copied) !== 0 }))
    .sort((a, b) => a.number - b.number)
}
