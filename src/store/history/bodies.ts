import type { Db } from "../sqlite/database.ts"
import { rowQuery } from "../sqlite/typed-query.ts"
import { numberOfLine, packBlock, readBlock } from "./codec.ts"
import { isIntact, rowSum } from "./rot/sums.ts"
import type { MessageWrite } from "./store.ts"

const CHUNK_CHARS = 128 << 10

/** A message and the number of the chunk that contains its body; -1 until a chunk is assigned. */
export type PlacedMessage = { number: number; line: string; chunk: number; old?: { line: string } }

export function bodyLine(number: number, { model, usage, parts, effects }: MessageWrite): string {
  return JSON.stringify({ n: number, model, usage, parts, effects: effects?.length ? effects : undefined })
}
const BODY_ROW = { conversation_id: "integer", chunk: "integer", data: "blob", sum: "integer?" } as const

/** Returns a conversation's body lines by message number, without those in damaged blocks. */
export function loadLines(db: Db, id: number): Map<number, string> {
  const lines = new Map<number, string>()
  const blocks = rowQuery(db, "select * from body where conversation_id = ?", BODY_ROW).iterate(id)
  for (const block of blocks) {
    // In a damaged table, the query may also return blocks of other conversations, so check the id too.
    if (block.conversation_id !== id || !isIntact(db, "body", block)) continue
    for (const line of readBlock(block.data) ?? []) lines.set(numberOfLine(line), line)
  }
  return lines
}

/** Rewrites the chunks with new, changed or deleted messages. New messages are added to the last chunk until it is full. */
export function saveBodies(db: Db, id: number, messages: PlacedMessage[], deleted: { chunk: number }[]): void {
  const byChunk = Map.groupBy(
    messages.filter((message) => message.chunk >= 0),
    (message) => message.chunk,
  )
  const changedChunks = new Set(deleted.map((row) => row.chunk))
  for (const message of messages) if (message.old && message.old.line !== message.line) changedChunks.add(message.chunk)

  const newMessages = messages.filter((message) => message.chunk < 0).sort((a, b) => a.number - b.number)
  let chunk = [...byChunk.keys(), ...changedChunks].reduce((last, number) => Math.max(last, number), 0)
  let chars = (byChunk.get(chunk) ?? []).reduce((sum, message) => sum + message.line.length, 0)
  for (const message of newMessages) {
    if (chars >= CHUNK_CHARS) {
      chunk++
      chars = 0
    }
    message.chunk = chunk
    chars += message.line.length
    changedChunks.add(chunk)
    const chunkMessages = byChunk.get(chunk)
    if (chunkMessages) chunkMessages.push(message)
    else byChunk.set(chunk, [message])
  }
  const save = db.prepare("insert or replace into body (conversation_id, chunk, data, sum) values (?, ?, ?, ?)")
  for (const number of changedChunks) {
    const chunkMessages = byChunk.get(number)
    if (!chunkMessages || chunkMessages.length === 0)
      db.prepare("delete from body where conversation_id = ? and chunk = ?").run(id, number)
    else {
      const { data } = packBlock(chunkMessages.sort((a, b) => a.number - b.number).map((message) => message.line))
      save.run(id, number, data, rowSum("body", [id, number, data]))
    }
  }
}
