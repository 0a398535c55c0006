import { formatRef } from "../core/ref.ts"
import type { IndexHit } from "../store/index/query.ts"
import {
  compareByScore,
  groupByConversation,
  messageRefText,
  type RankedConversation,
  type RankedMessage,
  type Ranking,
  type ScorePart,
} from "./rank.ts"

/** How a row was found: by words, by vectors or both, with the scores. */
export type RankEvidence = { rank_source: "lexical" | "vector" | "both"; score_lex?: number; score_vec?: number }
export type FusedRanking = {
  messages: (RankedMessage & RankEvidence)[]
  conversations: (RankedConversation & RankEvidence)[]
  plan: Ranking["plan"]
}

/** The distribution of the cosines between a question and unrelated messages. */
export type CosineSpread = { centre: number; deviation: number }

/**
 * The messages with the most similar vectors, best first. Some always exist; only those with a cosine above `minCosine` are
 * really related. `scoreOf` computes a message's score from its cosine and its position in this list (0 is the nearest). On the
 * same scale, the best message by words has the score 1.
 */
export type NearestMessages = { hits: IndexHit[]; minCosine: number; scoreOf: CosineScore }
type CosineScore = (cosine: number, place: number) => number

/** The constant of reciprocal rank fusion, as in the original paper, and the score of the nearest message. */
const RRF_CONSTANT = 60
const NEAREST_SCORE = 0.2

/** Scores by rank, because cosines of different models are not comparable. */
export const scoreByRank: CosineScore = (_, place) => (NEAREST_SCORE * (RRF_CONSTANT + 1)) / (RRF_CONSTANT + place + 1)

/**
 * A cosine counts only from this many standard deviations above the mean. Each further deviation adds SCORE_PER_DEVIATION to the
 * score. Both were chosen on one half of each evaluation set.
 */
const MIN_DEVIATIONS = 3
const SCORE_PER_DEVIATION = 0.1

/** Scores a message by how far its cosine stands out from those of unrelated messages. */
export function scoreByDistance({ centre, deviation }: CosineSpread): CosineScore {
  return (cosine) => SCORE_PER_DEVIATION * Math.max(0, (cosine - centre) / deviation - MIN_DEVIATIONS)
}

export function minNearCosine({ centre, deviation }: CosineSpread): number {
  return centre + MIN_DEVIATIONS * deviation
}

/**
 * Merges the messages that match words with the nearest ones, then groups them by conversation, as a search without vectors does.
 * A message keeps its score for words, divided by the best one, and a near message gets a bonus. If both lists counted only by
 * rank, a conversation's many weak messages would outweigh the few good ones of another (measured, see docs/embeddings.md). A
 * message that matches no words is added only if it is near. Each score is the sum of its parts.
 */
export function fuseRankings(
  { messages, conversations, plan }: Ranking,
  { hits, minCosine, scoreOf }: NearestMessages,
): FusedRanking {
  const best = messages[0]?.score || 1
  const fused = new Map<string, RankedMessage & RankEvidence>()
  for (const message of messages) {
    const parts = message.parts.map(({ name, value }) => ({ name, value: value / best }))
    const score = message.score / best
    fused.set(messageRefText(message), { ...message, score, parts, rank_source: "lexical", score_lex: message.score })
  }
  const vector = new Map<string, number>()
  for (const [i, hit] of hits.entries()) {
    const value = scoreOf(hit.score, i)
    const part = { name: "vector" as const, value }
    const existing = fused.get(messageRefText(hit))
    if (value === 0 || (!existing && hit.score <= minCosine)) continue
    if (!vector.has(formatRef(hit.ref))) vector.set(formatRef(hit.ref), hit.score)
    if (existing) {
      existing.score += value
      existing.parts.push(part)
      existing.rank_source = "both"
      existing.score_vec = hit.score
    } else
      fused.set(messageRefText(hit), {
        ...hit,
        score: value,
        parts: [part],
        rank_source: "vector",
        score_vec: hit.score,
      })
  }
  const ordered = [...fused.values()].sort(compareByScore)
  const lexical = new Map(conversations.map((one) => [formatRef(one.ref), one.score]))
  return {
    messages: ordered,
    conversations: groupByConversation(ordered).map((one) => ({
      ...one,
      ...evidenceOf(lexical.get(formatRef(one.ref)), vector.get(formatRef(one.ref))),
    })),
    plan,
  }
}

function evidenceOf(lexicalScore: number | undefined, vectorScore: number | undefined): RankEvidence {
  return {
    rank_source: lexicalScore === undefined ? "vector" : vectorScore === undefined ? "lexical" : "both",
    score_lex: lexicalScore,
    score_vec: vectorScore,
  }
}

/** The number of first rows that keep their positions, and the number of rows that are moved up to follow them. */
const FIXED_ROWS = 3
const PROMOTED_ROWS = 2

/**
 * Moves the nearest messages up, for a question that shares few words with any message. Scores by words are scaled to 1 however
 * weak they are, so the nearest messages would rank below all of them. Each row that is moved up gets at least the score of the
 * row below it.
 */
export function promoteNearest(fused: FusedRanking, hits: IndexHit[]): FusedRanking {
  const messages = hits.filter(({ number }) => number > 0)
  return {
    ...fused,
    messages: promoteRows(fused.messages, messageRefText, messages.map(messageRefText)),
    conversations: promoteRows(
      fused.conversations,
      ({ ref }) => formatRef(ref),
      messages.map(({ ref }) => formatRef(ref)),
    ),
  }
}

function promoteRows<Row extends { score: number; parts: ScorePart[] }>(
  rows: Row[],
  nameOf: (row: Row) => string,
  nearest: string[],
): Row[] {
  const byName = new Map(rows.map((row) => [nameOf(row), row]))
  const fixed = rows.slice(0, FIXED_ROWS)
  const promoted = new Set<Row>()
  for (const name of nearest) {
    const row = byName.get(name)
    if (row && !fixed.includes(row) && promoted.size < PROMOTED_ROWS) promoted.add(row)
  }
  const rest = rows.slice(FIXED_ROWS).filter((row) => !promoted.has(row))
  const minScore = rest[0]?.score ?? 0
  const raisedRows = [...promoted].map((row) => raiseScore(row, minScore)).sort((a, b) => b.score - a.score)
  return [...fixed, ...raisedRows, ...rest]
}

function raiseScore<Row extends { score: number; parts: ScorePart[] }>(row: Row, minScore: number): Row {
  if (row.score >= minScore) return row
  return { ...row, score: minScore, parts: [...row.parts, { name: "vector", value: minScore - row.score }] }
}
