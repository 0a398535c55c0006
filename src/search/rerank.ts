import { isDexError } from "../core/error.ts"
import { messageText } from "../core/format.ts"
import { openReranker, type RerankSettings } from "../embed/rerank.ts"
import type { HistoryReader } from "../store/history/store.ts"
import type { RankedConversation } from "./rank.ts"

export type RerankOptions = {
  /** Throws a DexError if the settings are incomplete. */
  settings: () => RerankSettings
  timeoutMs: number
  /** The question, redacted, because it may leave the machine. */
  text: string
}

export type RerankedRows<Row> = { rows: Row[]; reranked: boolean; degraded?: string }

/** The number of best rows that a model reorders. */
const MAX_RERANKED = 20
const MAX_CHARS = 2_000

/**
 * Lets a model reorder the best rows. Each row takes the score of its new place, so that the other rows stay below and the parts
 * still add up. Problems with a server or a setting do not throw: the order stays, and `degraded` contains the reason.
 */
export async function rerankTop<Row extends RankedConversation>(
  store: HistoryReader,
  rows: Row[],
  { settings, timeoutMs, text }: RerankOptions,
): Promise<RerankedRows<Row>> {
  const top = rows.slice(0, MAX_RERANKED)
  if (top.length < 2) return { rows, reranked: false }
  const timeout = AbortSignal.timeout(timeoutMs)
  try {
    const reranker = openReranker(settings())
    const texts: string[] = []
    for (const row of top) texts.push(await bestMessageText(store, row))
    const judgements = await reranker.rerank(text, texts, { signal: timeout })
    // Sorting is stable: rows with equal judgements keep their order.
    const order = top.map((row, i) => ({ row, judgement: judgements[i]! })).sort((a, b) => b.judgement - a.judgement)
    const reordered = order.map(({ row }, place) => withScore(row, top[place]!.score))
    return { rows: [...reordered, ...rows.slice(MAX_RERANKED)], reranked: true }
  } catch (error) {
    if (!isDexError(error)) throw error
    const timeoutMessage = `The reranking server did not answer within ${timeoutMs} ms (rerank.timeout_ms).`
    return {
      rows,
      reranked: false,
      degraded: `${timeout.aborted ? timeoutMessage : error.message} The results keep their order.`,
    }
  }
}

function withScore<Row extends RankedConversation>(row: Row, score: number): Row {
  const parts = [...row.parts, { name: "rerank" as const, value: score - row.score }]
  return { ...row, score, parts }
}

async function bestMessageText(store: HistoryReader, { ref, best }: RankedConversation): Promise<string> {
  const [message] = await store.messages(ref, [Math.max(1, best.number)])
  return message ? messageText(message, "stripped").slice(0, MAX_CHARS).toWellFormed() : ""
}
