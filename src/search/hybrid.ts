import { isDexError } from "../core/error.ts"
import { formatRef } from "../core/ref.ts"
import { embedQuery } from "../embed/embed-query.ts"
import type { EmbedSettings } from "../embed/embedder.ts"
import { keptId, openEmbedder } from "../embed/open-embedder.ts"
import type { IndexHit } from "../store/index/query.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import type { VectorFilter, VectorIndex } from "../store/index/vector-index.ts"
import type { VectorStats } from "../store/index/vectors.ts"
import {
  byScore,
  groupByConversation,
  messageRefText,
  type RankedConversation,
  type RankedMessage,
  type Ranking,
  type RankWeights,
} from "./rank.ts"

/** How to look for what was meant, beside what was written. */
export type Meaning = {
  /** Throws a DexError where the settings are not complete. */
  settings: () => EmbedSettings
  timeoutMs: number
  /** What was asked, without filters and redacted: it may leave the machine. */
  text: string
}

/** What found a row, and how strongly. */
export type RankEvidence = { rank_source: "lexical" | "vector" | "both"; score_lex?: number; score_vec?: number }
export type Fused = {
  messages: (RankedMessage & RankEvidence)[]
  conversations: (RankedConversation & RankEvidence)[]
  plan: Ranking["plan"]
}

export type Hybrid = {
  /** Undefined when there was nothing to fuse, and why in `degraded`. */
  fused?: Fused
  /** The nearest message stands out from those that have nothing to do with the question. */
  isNear: boolean
  degraded: string[]
}

/** Messages that the vectors put forward. */
const NEAREST = 100
/** The constant of reciprocal rank fusion, as in the paper that proposed it. */
const K = 60

/**
 * How much the nearest message is worth beside the best by words, by embedder: the weight that did best on
 * the tune halves. A weak model that counts as much as words do makes search worse, so a model that
 * nobody has measured counts as the weakest that somebody has. See docs/embeddings.md.
 */
const WEIGHTS: [RegExp, number][] = [[/glove/, 0.2]]
const UNMEASURED = 0.2

/** Of fewer messages nothing can be said about what is usual, nor is a smaller deviation to be believed. */
const LEAST_SAMPLE = 20
const LEAST_DEVIATION = 0.02

/** Words and vectors in one ranking. Never throws for what a server or a setting does: then `degraded` says why not. */
export async function addMeaning(
  index: SearchIndex,
  lexical: Ranking,
  filter: VectorFilter,
  meaning: Meaning,
  weights: RankWeights,
): Promise<Hybrid> {
  const found = await nearest(index, filter, meaning)
  if ("why" in found) return { isNear: false, degraded: [found.why] }
  const { hits, embedder, near, degraded } = found
  const isNear = hits.some((hit) => hit.score > near)
  return { fused: fuse(lexical, { hits, near }, weightOf(embedder), weights), isNear, degraded }
}

function weightOf(embedder: string): number {
  return WEIGHTS.find(([name]) => name.test(embedder))?.[1] ?? UNMEASURED
}

/** The nearest messages, best first. There always are some: those with a greater cosine than `near` are near. */
type Nearest = { hits: IndexHit[]; near: number }
type Found = Nearest & { embedder: string; degraded: string[] }

async function nearest(index: SearchIndex, filter: VectorFilter, meaning: Meaning): Promise<Found | { why: string }> {
  try {
    const settings = meaning.settings()
    const vectors = await index.vectors()
    const spaces = vectors.stats().filter((space) => space.vectors > 0)
    const known = spaces.map((space) => space.embedder)
    const id = keptId(settings, known)
    if (id === undefined) return { why: whyNone(settings, known) }
    if (!vectors.isTrusted(id))
      return {
        why: `The model behind ${id} has changed since the vectors were made. Make them again: dex reindex --vectors`,
      }
    const embedder = (await openEmbedder(settings, [id]))!
    const answer = await embedQuery(embedder, meaning.text, meaning.timeoutMs)
    if ("degraded" in answer) return { why: sentence(answer.degraded) }
    const hits = vectors.scan(id, answer.vector, { limit: NEAREST, filter })
    const space = spaces.find((one) => one.embedder === id)!
    return { hits, embedder: id, near: nearFrom(vectors, space, answer.vector), degraded: unfinished(vectors, space) }
  } catch (error) {
    if (!isDexError(error)) throw error
    return { why: sentence(error.message) }
  }
}

function whyNone(settings: EmbedSettings, known: string[]): string {
  const isLocal = settings.provider === "local"
  const wanted = isLocal ? "the local model" : `${settings.provider}:${settings.model ?? "(no model)"}`
  if (!isLocal && !settings.model) return "No embedding model is chosen: dex config set embed.model …"
  return known.length === 0
    ? `No message has a vector from ${wanted} yet. \`dex sync\` makes them.`
    : `The stored vectors are from another model (${known.join(", ")}), not from ${wanted}. \`dex sync\` makes new ones.`
}

/**
 * A message is near when it is nearer than the nearest of so many unrelated ones would be by chance: the greatest of n
 * normally distributed values stays below √(2 ln n) deviations, nearly always. No model's own idea of a high cosine is
 * needed: for some, 0.4 is much, for others 0.8 is nothing.
 */
function nearFrom(vectors: VectorIndex, { embedder, vectors: count }: VectorStats, query: Float32Array): number {
  const { centre, deviation, of } = vectors.spread(embedder, query)
  if (of < LEAST_SAMPLE) return Number.POSITIVE_INFINITY
  return centre + Math.sqrt(2 * Math.log(count)) * Math.max(deviation, LEAST_DEVIATION)
}

function unfinished(vectors: VectorIndex, space: VectorStats): string[] {
  const all = vectors.documents()
  const done = space.vectors + space.empty
  if (done >= all) return []
  return [`${Math.floor((100 * done) / all)} % of the messages are embedded so far. \`dex sync\` embeds the rest.`]
}

function sentence(text: string): string {
  return `${text[0]?.toUpperCase() ?? ""}${text.slice(1)}${text.endsWith(")") ? "." : ""}`
}

/**
 * Messages of both lists in one, then the same grouping by conversation as without vectors. A message keeps what its
 * words are worth, in shares of the best one, and earns by its place among the nearest: reciprocal rank, since cosines of
 * different models mean different things. By rank alone on both sides, a conversation's few good messages would no longer
 * outweigh its many weak ones: measured, see docs/embeddings.md. What is not near orders what words found, and adds
 * nothing to it. The parts of every score add up to it.
 */
export function fuse(
  { messages, conversations, plan }: Ranking,
  { hits, near }: Nearest,
  weight: number,
  weights: RankWeights,
): Fused {
  const best = messages[0]?.score || 1
  const fused = new Map<string, RankedMessage & RankEvidence>()
  for (const message of messages) {
    const parts = message.parts.map(({ name, value }) => ({ name, value: value / best }))
    const score = message.score / best
    fused.set(messageRefText(message), { ...message, score, parts, rank_source: "lexical", score_lex: message.score })
  }
  const vector = new Map<string, number>()
  for (const [i, hit] of hits.entries()) {
    const value = (weight * (K + 1)) / (K + i + 1)
    const part = { name: "vector" as const, value }
    const known = fused.get(messageRefText(hit))
    if (!known && hit.score <= near) continue
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
  const ordered = [...fused.values()].sort(byScore)
  const lexical = new Map(conversations.map((one) => [formatRef(one.ref), one.score]))
  return {
    messages: ordered,
    conversations: groupByConversation(ordered, weights).map((one) => ({
      ...one,
      ...evidenceOf(lexical.get(formatRef(one.ref)), vector.get(formatRef(one.ref))),
    })),
    plan,
  }
}

function evidenceOf(lex: number | undefined, vec: number | undefined): RankEvidence {
  return {
    rank_source: lex === undefined ? "vector" : vec === undefined ? "lexical" : "both",
    ...(lex !== undefined && { score_lex: lex }),
    ...(vec !== undefined && { score_vec: vec }),
  }
}
