import { isDexError } from "../core/error.ts"
import type { EmbedSettings } from "../embed/embedder.ts"
import { embedQuery, matchingStoredId, openEmbedder } from "../embed/open-embedder.ts"
import type { IndexHit } from "../store/index/query.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { VectorFilter, VectorIndex } from "../store/index/vector-index.ts"
import type { VectorStats } from "../store/index/vectors.ts"
import {
  type CosineSpread,
  type FusedRanking,
  fuseRankings,
  minNearCosine,
  scoreByDistance,
  scoreByRank,
} from "./fuse.ts"
import type { Ranking } from "./rank.ts"

/** The settings for searching by meaning in addition to words. */
export type VectorSearch = {
  /** Throws a DexError if the settings are incomplete. */
  settings: () => EmbedSettings
  timeoutMs: number
  /** The question without filters, redacted because it may leave the machine. */
  text: string
}

export type HybridRanking = {
  /** Undefined if there was nothing to fuse; then `degraded` contains the reason. */
  fused?: FusedRanking
  /** True if the nearest message stands out from unrelated ones. */
  isNear: boolean
  degraded: string[]
}

/** The maximum number of messages that vectors contribute. */
const MAX_NEAREST = 200
/**
 * The models whose distances were measured. For these, a message's score depends on how far it stands out. For any other model,
 * it depends only on the message's rank, because search would get worse if a weak model counted as much as words. See
 * docs/embeddings.md.
 */
const MEASURED_MODELS = /all-minilm-l6-v2/i
/** If the best rows by words contain less than this share of the question, nearness counts far more. */
const MIN_COVERAGE = 0.5

/** The minimum number of messages from which a distribution can be estimated, and the smallest deviation that is plausible. */
const MIN_SAMPLE = 20
const MIN_DEVIATION = 0.02

/**
 * Combines words and vectors in one ranking. `readCoverage` returns how much of the question the best rows by words contain, from
 * 0 to 1; it is called only if needed. Problems with a server or a setting do not throw; `degraded` contains the reason.
 */
export async function addVectorResults(
  index: SearchIndex,
  lexical: Ranking,
  filter: VectorFilter,
  meaning: VectorSearch,
  readCoverage: () => Promise<number>,
): Promise<HybridRanking> {
  const vectorResults = await findNearest(index, filter, meaning)
  if ("why" in vectorResults) return { isNear: false, degraded: [vectorResults.why] }
  const { hits, embedder, spread, near, degraded } = vectorResults
  const isNear = hits.some((hit) => hit.score > near)
  if (!MEASURED_MODELS.test(embedder))
    return { fused: fuseRankings(lexical, { hits, minCosine: near, scoreOf: scoreByRank }), isNear, degraded }
  const isCovered = (await readCoverage()) >= MIN_COVERAGE
  const minCosine = isCovered || !Number.isFinite(near) ? near : Math.min(near, minNearCosine(spread))
  const scoreOf = scoreByDistance(spread, isCovered)
  // Single messages are found by nearness far less often than conversations are, so they never get the greater weight.
  const messageScoreOf = scoreByDistance(spread, true)
  return { fused: fuseRankings(lexical, { hits, minCosine, scoreOf, messageScoreOf }), isNear, degraded }
}

type VectorResults = { hits: IndexHit[]; spread: CosineSpread; near: number; embedder: string; degraded: string[] }

async function findNearest(
  index: SearchIndex,
  filter: VectorFilter,
  meaning: VectorSearch,
): Promise<VectorResults | { why: string }> {
  try {
    const settings = meaning.settings()
    const vectors = await index.vectors()
    const spaces = vectors.stats().filter((space) => space.vectors > 0)
    const storedIds = spaces.map((space) => space.embedder)
    const id = matchingStoredId(settings, storedIds)
    if (id === undefined) return { why: missingVectorsReason(settings, storedIds) }
    if (!vectors.isTrusted(id))
      return {
        why: `The model behind ${id} has changed since the vectors were made. Make them again: dex doctor reindex --vectors`,
      }
    const embedder = (await openEmbedder(settings, [id]))!
    const answer = await embedQuery(embedder, meaning.text, meaning.timeoutMs)
    if ("degraded" in answer) return { why: toSentence(answer.degraded) }
    const hits = vectors.scan(id, answer.vector, { limit: MAX_NEAREST, filter })
    const space = spaces.find((one) => one.embedder === id)!
    const { of: sampleSize, ...measured } = vectors.spread(id, answer.vector)
    const spread = { ...measured, deviation: Math.max(measured.deviation, MIN_DEVIATION) }
    const near = sampleSize < MIN_SAMPLE ? Number.POSITIVE_INFINITY : nearLimit(spread, space.vectors)
    return { hits, embedder: id, spread, near, degraded: embeddingProgressNotes(vectors, space) }
  } catch (error) {
    if (!isDexError(error)) throw error
    return { why: toSentence(error.message) }
  }
}

function missingVectorsReason(settings: EmbedSettings, storedIds: string[]): string {
  const isLocal = settings.provider === "local"
  const wantedModel = isLocal ? "the local model" : `${settings.provider}:${settings.model ?? "(no model)"}`
  if (!isLocal && !settings.model) return "No embedding model is chosen. Choose one: dex config set embed.model …"
  return storedIds.length === 0
    ? `No message has a vector from ${wantedModel} yet. \`dex sync\` makes them.`
    : `The stored vectors are from another model (${storedIds.join(", ")}), not from ${wantedModel}. \`dex sync\` makes new ones.`
}

/**
 * The cosine above which a message is near. It is higher than the largest cosine that this many unrelated messages are likely to
 * reach: the largest of n normally distributed values is almost always below √(2 ln n) deviations. This works for every model,
 * although 0.4 is a high cosine for some and 0.8 is a low one for others.
 */
function nearLimit({ centre, deviation }: CosineSpread, count: number): number {
  return centre + Math.sqrt(2 * Math.log(count)) * deviation
}

function embeddingProgressNotes(vectors: VectorIndex, space: VectorStats): string[] {
  const total = vectors.documents()
  const done = space.done
  if (done >= total) return []
  return [`${Math.floor((100 * done) / total)} % of the messages are embedded so far. \`dex sync\` embeds the rest.`]
}

function toSentence(text: string): string {
  return `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${text.endsWith(")") ? "." : ""}`
}
