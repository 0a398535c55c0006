import { formatRef } from "../../core/ref.ts"
import { tokensForChars } from "../../core/tokens.ts"
import { hashOf, hashOfPiece, type MeasuredConversation, type Piece, pieceLength } from "./data.ts"

/** Batches with the same `hash` have the same text. */
export type Batch = { pieces: Piece[]; chars: number; hash: string }

/** The stored form of a batch: its pieces. */
export type StoredBatch = { pieces: { ref: string; from: number; count: number }[] }

/** A batch counts as full if at most this share of it is empty. */
export const MAX_EMPTY_SHARE = 0.05
/** How many of the oldest conversations are tried to find one that fits completely. */
const CANDIDATE_WINDOW = 20

/** The maximum number of characters of a unit. A longer unit could leave a batch too empty. */
export function maxUnitChars(budget: number): number {
  return Math.floor(budget * MAX_EMPTY_SHARE)
}

/**
 * Divides the conversations into batches of at most `budget` characters. Each unit goes into exactly one batch. A batch of an
 * earlier run is reused if it is full or answered, so that no answer is paid for twice. The rest is packed oldest first. A
 * conversation is split only if a batch would otherwise be too empty.
 */
export function planBatches(
  conversations: MeasuredConversation[],
  budget: number,
  stored: StoredBatch[] = [],
  isDone: (hash: string) => boolean = () => false,
): Batch[] {
  const byRef = new Map(conversations.map((one) => [formatRef(one.ref), one]))
  const taken = new Map(conversations.map((one) => [one, new Uint8Array(one.units.length)]))
  const reused = stored.flatMap((batch) => {
    const pieces = batch.pieces.flatMap(({ ref, from, count }): UnitRun[] => {
      const conversation = byRef.get(ref)
      const exists = conversation && from >= 0 && count > 0 && from + count <= conversation.units.length
      const isFree =
        exists &&
        !taken
          .get(conversation)!
          .subarray(from, from + count)
          .includes(1)
      return isFree ? [{ conversation, from, count }] : []
    })
    if (pieces.length === 0 || pieces.length < batch.pieces.length) return []
    const packed = batchOf(pieces)
    if (packed.chars > budget || (packed.chars < budget * (1 - MAX_EMPTY_SHARE) && !isDone(packed.hash))) return []
    for (const { conversation, from, count } of pieces) taken.get(conversation)!.fill(1, from, from + count)
    return [packed]
  })
  return [
    ...reused,
    ...packRuns(
      conversations.toSorted(compareAge).flatMap((conversation) => freeRuns(conversation, taken.get(conversation)!)),
      budget,
    ),
  ]
}

export function storedBatch({ pieces }: Batch): StoredBatch {
  return { pieces: pieces.map(({ ref, from, count }) => ({ ref: formatRef(ref), from, count })) }
}

function isPiece(piece: Partial<StoredBatch["pieces"][number]> | null): boolean {
  return typeof piece?.ref === "string" && Number.isInteger(piece.from) && Number.isInteger(piece.count)
}

/** The batches that an earlier run stored. Entries that cannot be read are ignored. */
export function storedBatches(value: unknown): StoredBatch[] {
  if (!Array.isArray(value)) return []
  return (value as (Partial<StoredBatch> | null)[]).flatMap((batch) =>
    Array.isArray(batch?.pieces) ? [{ pieces: batch.pieces.filter(isPiece) }] : [],
  )
}

/** The number of batches that are too empty, not counting the last one. */
export function countUnderfilledBatches(batches: Batch[], budget: number): number {
  return batches.slice(0, -1).filter(({ chars }) => chars < budget * (1 - MAX_EMPTY_SHARE)).length
}

export function tokensOfBatch({ chars }: Batch): number {
  return tokensForChars(chars)
}

/** Consecutive units of a conversation that go into one batch. */
type UnitRun = { conversation: MeasuredConversation; from: number; count: number }

function packRuns(runs: UnitRun[], budget: number): Batch[] {
  const queue = [...runs]
  const batches: Batch[] = []
  while (queue.length > 0) {
    const pieces: UnitRun[] = []
    let chars = 0
    const take = (run: UnitRun) => {
      pieces.push(run)
      chars += pieceLength(run.conversation, run.from, run.count)
    }
    for (;;) {
      const fittingIndex = queue
        .slice(0, CANDIDATE_WINDOW)
        .findIndex(({ conversation, from, count }) => chars + pieceLength(conversation, from, count) <= budget)
      if (fittingIndex === -1) break
      take(queue.splice(fittingIndex, 1)[0]!)
    }
    const [next] = queue
    if (next && chars < budget * (1 - MAX_EMPTY_SHARE)) {
      let count = 1
      while (count + 1 < next.count && chars + pieceLength(next.conversation, next.from, count + 1) <= budget) count++
      take({ ...next, count })
      if (count === next.count) queue.shift()
      else queue[0] = { ...next, from: next.from + count, count: next.count - count }
    }
    batches.push(batchOf(pieces))
  }
  return batches
}

function batchOf(runs: UnitRun[]): Batch {
  const sorted = [...runs].sort((a, b) => compareAge(a.conversation, b.conversation) || a.from - b.from)
  return {
    pieces: sorted.map(({ conversation, from, count }) => ({ ref: conversation.ref, from, count })),
    chars: sorted.reduce((sum, { conversation, from, count }) => sum + pieceLength(conversation, from, count), 0),
    hash: hashOf(sorted.map(({ conversation, from, count }) => hashOfPiece(conversation, from, count)).join("\n")),
  }
}

function freeRuns(conversation: MeasuredConversation, taken: Uint8Array): UnitRun[] {
  const runs: UnitRun[] = []
  for (let from = 0; from < taken.length; ) {
    let end = from
    while (end < taken.length && taken[end] === 0) end++
    if (end > from) runs.push({ conversation, from, count: end - from })
    from = end + 1
  }
  return runs
}

/** Compares by start time, then by ref. Neither changes, so every run packs conversations in the same order. */
function compareAge(a: MeasuredConversation, b: MeasuredConversation): number {
  const [refA, refB] = [formatRef(a.ref), formatRef(b.ref)]
  return a.at - b.at || (refA < refB ? -1 : refA > refB ? 1 : 0)
}
