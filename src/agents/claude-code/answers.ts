import type { RawRecord } from "../../core/record.ts"
import { record, records, string } from "../../core/record.ts"

/** One answer of the model. Claude Code writes a record for each of its blocks, all with the same message id. */
export type ModelAnswer = {
  key: string
  first: RawRecord
  message: RawRecord
  blocks: RawRecord[]
  uuids: string[]
  usage: RawRecord | undefined
  /** Past `end_turn` nothing grows any more: what follows is added. */
  over: boolean
}

export type TranscriptEntry = { answer: ModelAnswer } | { raw: RawRecord; index: number }

/** The records in their order, with those of one answer drawn together where the first of them stands. */
export function groupAnswers(
  all: readonly RawRecord[],
  keyOf: (raw: RawRecord, index: number) => string,
): TranscriptEntry[] {
  const answers = new Map<string, ModelAnswer>()
  const entries: TranscriptEntry[] = []
  for (const [index, raw] of all.entries()) {
    const message = raw.type === "assistant" ? record(raw.message) : undefined
    if (!message) {
      entries.push({ raw, index })
      continue
    }
    const key = string(message.id) ?? keyOf(raw, index)
    let answer = answers.get(key)
    if (!answer) {
      answer = { key, first: raw, message, blocks: [], uuids: [], usage: undefined, over: false }
      answers.set(key, answer)
      entries.push({ answer })
    }
    extend(answer, raw, message)
  }
  return entries
}

function extend(answer: ModelAnswer, raw: RawRecord, message: RawRecord): void {
  const uuid = string(raw.uuid)
  if (uuid !== undefined) answer.uuids.push(uuid)
  answer.usage = record(message.usage) ?? answer.usage // each record repeats it; the last one is the largest
  const content = message.content
  const blocks = typeof content === "string" ? [{ type: "text", text: content }] : records(content)
  if (!answer.over) answer.blocks.length = beginningOfSnapshot(answer.blocks, blocks)
  for (const block of blocks) answer.blocks.push(block)
  if (message.stop_reason === "end_turn") answer.over = true
}

/**
 * Older builds wrote the answer again and again while it grew. Where the new blocks begin as the last ones did they take
 * their place; the result is how many blocks stay.
 */
function beginningOfSnapshot(have: RawRecord[], next: RawRecord[]): number {
  for (let from = Math.max(0, have.length - next.length); from < have.length; from++) {
    let grows = true
    for (let i = from; grows && i < have.length; i++) grows = growsInto(have[i]!, next[i - from]!)
    if (grows) return from
  }
  return have.length
}

function growsInto(before: RawRecord, after: RawRecord): boolean {
  if (before.type !== after.type) return false
  if (before.id !== undefined || after.id !== undefined) return before.id === after.id
  const [old, now] = [before.text ?? before.thinking, after.text ?? after.thinking]
  return typeof old === "string" && typeof now === "string" && old !== "" && now.startsWith(old)
}
