import { withoutUndefined } from "../../../src/core/defined.ts"
import type { Database, Query, Viewer } from "./connection.ts"

// Every deletion leaves a receipt, which says whose conversations were deleted, when, how many and why, but nothing of the
// content.

/** Why something was deleted. */
export type DeletionReason = "person" | "retention" | "admin" | "quarantine"

export type Receipt = {
  id: number
  at: string
  conversations: number
  why: DeletionReason
  /** Who deleted it; absent if the hub did. */
  by?: string
  /** When the key was removed from PostgreSQL's files; absent while they may still contain it. */
  key_gone_at?: string
  /** When no node of OpenSearch had the words on its disk any more, or the nodes that may still have them. Both absent without OpenSearch. */
  words_gone_at?: string
  words_wait_for?: string[]
}

const RECEIPT_COLUMNS = `r.id, r.at, r.conversations, r.why, m.name as by, r.key_gone_at, r.words_gone_at,
  array(select w.name from hub.word_copy w where w.tenant = r.tenant and w.clean < r.seq and r.words_gone_at is null order by w.name) as waiting
  from hub.receipt r left join hub.member m on m.tenant = r.tenant and m.id = r.by_member`

/**
 * Records a deletion. `of` is the author. The receipt says who deleted the conversations only if it was the author. `seq` is the
 * number of the last removal in the feed.
 */
export async function writeReceipt(
  query: Query,
  { of, conversations, why, seq }: { of: Viewer; conversations: number; why: DeletionReason; seq?: number },
): Promise<Receipt> {
  const [written] = await query<{ id: number }>(
    "insert into hub.receipt (tenant, member, by_member, conversations, why, seq) values ($1, $2, $3, $4, $5, $6) returning id",
    [of.tenant, of.member, why === "person" ? of.member : null, conversations, why, seq ?? null],
  )
  const [row] = await query<ReceiptRow>(`select ${RECEIPT_COLUMNS} where r.tenant = $1 and r.id = $2`, [
    of.tenant,
    written!.id,
  ])
  return toReceipt(row!)
}

/** The receipts for the member's own conversations, newest first. */
export async function receiptsOf(db: Database, viewer: Viewer, limit = 20): Promise<Receipt[]> {
  const rows = await db.as(viewer, (query) =>
    query<ReceiptRow>(`select ${RECEIPT_COLUMNS} where r.tenant = $1 and r.member = $2 order by r.id desc limit $3`, [
      ...[viewer.tenant, viewer.member, limit],
    ]),
  )
  return rows.map(toReceipt)
}

type ReceiptRow = {
  id: number
  at: Date
  conversations: number
  why: DeletionReason
  by: string | null
  key_gone_at: Date | null
  words_gone_at: Date | null
  waiting: string[]
}

function toReceipt({ id, at, conversations, why, by, key_gone_at, words_gone_at, waiting }: ReceiptRow): Receipt {
  return {
    id,
    at: at.toISOString(),
    conversations,
    why,
    ...withoutUndefined({
      by: by ?? undefined,
      key_gone_at: key_gone_at?.toISOString(),
      words_gone_at: words_gone_at?.toISOString(),
      words_wait_for: waiting.length > 0 ? waiting : undefined,
    }),
  }
}
