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
 * The nearest messages, best first. Some always exist; only those with a cosine above `near` are really related. `worth` computes
 * a message's score from its cosine and its place (0 is the nearest). The best message by words has 1.
 */
export type NearestMessages = { hits: IndexHit[]; near: number; worth: Worth }
type Worth = (cosine: number, place: number) => number

/** The constant of reciprocal rank fusion, as in the original paper, and the score of the nearest message. */
const K = 60
const NEAREST_SCORE = 0.2

/** Scores by rank, because cosines of different models are not comparable. */
export const scoreByRank: Worth = (_, place) => (NEAREST_SCORE * (K + 1)) / (K + place + 1)

/**
 * Nearness counts only from this many standard deviations above the mean. Each further deviation adds WORTH_PER_DEVIATION to the
 * score. Chosen on the tune halves.
 */
const MIN_DEVIATIONS = 3
const WORTH_PER_DEVIATION = 0.1

/** Scores a message by how far its cosine stands out from those of unrelated messages. */
export function scoreByDistance({ centre, deviation }: CosineSpread): Worth {
  return (cosine) => WORTH_PER_DEVIATION * Math.max(0, (cosine - centre) / deviation - MIN_DEVIATIONS)
}

export function minNearCosine({ centre, deviation }: CosineSpread): number {
  return centre + MIN_DEVIATIONS * deviation
}

/**
 * Merges the messages of both lists, then groups them by conversation as without vectors. A message keeps its score by words,
 * relative to the best one, and gains by its nearness. If both sides counted only ranks, a conversation's few good messages would
 * no longer outweigh many weak ones (measured, see docs/embeddings.md). A message that words did not find is added only if it is
 * near. The parts of every score add up to it.
 */
export function fuseRankings(
  { messages, conversations, plan }: Ranking,
  { hits, near, worth }: NearestMessages,
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
    const value = worth(hit.score, i)
    const part = { name: "vector" as const, value }
    const known = fused.get(messageRefText(hit))
    if (value === 0 || (!known && hit.score <= near)) continue
    if (!vector.has(formatRef(hit.ref))) vector.set(formatRef(hit.ref), hit.score)
    if (known) {
      known.score += value
      known.parts.push(part)
      known.rank_source = "both"
      known.score_vec = hit.score
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

function evidenceOf(lex: number | undefined, vec: number | undefined): RankEvidence {
  return {
    rank_source: lex === undefined ? "vector" : vec === undefined ? "lexical" : "both",
    score_lex: lex,
    score_vec: vec,
  }
}

/** The number of first rows that keep their places, and the number of rows that are moved up to follow them. */
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
