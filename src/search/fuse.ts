import { formatRef } from "../core/ref.ts"
import type { IndexHit } from "../store/index/query.ts"
import {
  compareByScore,
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
export type NearestMessages = {
  hits: IndexHit[]
  minCosine: number
  scoreOf: CosineScore
  /** Scores a message in the list of messages, if that differs from its score in the list of conversations. */
  messageScoreOf?: CosineScore
}
type CosineScore = (cosine: number, place: number) => number

/** The constant of reciprocal rank fusion, as in the original paper, and the score of the nearest message. */
const RRF_CONSTANT = 60
const NEAREST_SCORE = 0.2

/** Scores by rank, because cosines of different models are not comparable. */
export const scoreByRank: CosineScore = (_, place) => (NEAREST_SCORE * (RRF_CONSTANT + 1)) / (RRF_CONSTANT + place + 1)

/**
 * A cosine counts only from this many standard deviations above the centre. Each further deviation adds a share of the best score by
 * words: far more if words hardly found the question, because the best score is scaled to 1 however weak it is. Chosen on one half
 * of each evaluation set; see docs/embeddings.md.
 */
const MIN_DEVIATIONS = 1.5
const SCORE_PER_DEVIATION = { covered: 0.15, hardlyCovered: 0.6 }

/** Scores a message by how far its cosine stands out from those of unrelated messages. */
export function scoreByDistance({ centre, deviation }: CosineSpread, isCovered: boolean): CosineScore {
  const perDeviation = isCovered ? SCORE_PER_DEVIATION.covered : SCORE_PER_DEVIATION.hardlyCovered
  return (cosine) => perDeviation * Math.max(0, (cosine - centre) / deviation - MIN_DEVIATIONS)
}

export function minNearCosine({ centre, deviation }: CosineSpread): number {
  return centre + MIN_DEVIATIONS * deviation
}

/**
 * Merges what matches words with the nearest messages, once by message and once by conversation. A row keeps its score for words,
 * divided by the best one, and earns more by its nearest message: by that one only, because a long conversation has many messages
 * that are a little near. If both lists counted only by rank, many weak messages would outweigh a few good ones (measured, see
 * docs/embeddings.md). What matches no words is added only if it is near. Each score is the sum of its parts.
 */
export function fuseRankings({ messages, conversations, plan }: Ranking, nearest: NearestMessages): FusedRanking {
  const byMessage: Merging<RankedMessage> = { nameOf: messageRefText, rowOf: (message) => message }
  const byConversation: Merging<RankedConversation> = {
    nameOf: ({ ref }) => formatRef(ref),
    rowOf: (message) => ({ ...message, best: message, others: [] }),
    show: showIfNearest,
  }
  return {
    messages: fuseRows(messages, { ...nearest, scoreOf: nearest.messageScoreOf ?? nearest.scoreOf }, byMessage).sort(
      compareByScore,
    ),
    conversations: fuseRows(conversations, nearest, byConversation).sort((a, b) =>
      compareByScore({ ...a.best, score: a.score }, { ...b.best, score: b.score }),
    ),
    plan,
  }
}

type Merging<Row> = {
  nameOf: (row: Row | IndexHit) => string
  /** Makes a row of a message that vectors found. */
  rowOf: (message: RankedMessage) => Row
  /** Changes which message a row shows. Its score is still the one for words. */
  show?: (row: Row, message: RankedMessage) => Row
}

function fuseRows<Row extends { score: number; parts: ScorePart[] }>(
  lexical: Row[],
  { hits, minCosine, scoreOf }: NearestMessages,
  { nameOf, rowOf, show = (row) => row }: Merging<Row>,
): (Row & RankEvidence)[] {
  const best = lexical[0]?.score || 1
  const rows = new Map<string, Row & RankEvidence>()
  for (const row of lexical) {
    const parts = row.parts.map(({ name, value }) => ({ name, value: value / best }))
    rows.set(nameOf(row), { ...row, score: row.score / best, parts, rank_source: "lexical", score_lex: row.score })
  }
  const seen = new Set<string>()
  for (const [i, hit] of hits.entries()) {
    const name = nameOf(hit)
    if (seen.has(name)) continue
    seen.add(name)
    const value = scoreOf(hit.score, i)
    const row = rows.get(name)
    if (value === 0 || (!row && hit.score <= minCosine)) continue
    const message = { ...hit, score: value, parts: [{ name: "vector" as const, value }] }
    rows.set(
      name,
      row
        ? {
            ...row,
            ...show(row, message),
            score: row.score + value,
            parts: [...row.parts, ...message.parts],
            rank_source: "both",
            score_vec: hit.score,
          }
        : { ...rowOf(message), rank_source: "vector", score_vec: hit.score },
    )
  }
  return [...rows.values()]
}

/** Shows the nearest message if it counts more than all words. */
function showIfNearest(row: RankedConversation, message: RankedMessage): RankedConversation {
  if (message.score <= row.score) return row
  const others = [row.best, ...row.others].filter(({ number }) => number !== message.number)
  return { ...row, best: message, others }
}
