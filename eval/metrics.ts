/** The results for one question, compared with the expected ones. */
export type Scores = {
  any1: number
  any5: number
  any10: number
  all5: number
  all10: number
  recall5: number
  recall10: number
  ndcg10: number
  mrr: number
}

export const METRICS = [
  "any1",
  "any5",
  "any10",
  "all5",
  "all10",
  "recall5",
  "recall10",
  "ndcg10",
  "mrr",
] as const satisfies readonly (keyof Scores)[]

/** Recall is found gold divided by gold; nDCG is binary; the reciprocal rank uses the complete list. */
export function scoresOf(ranked: readonly string[], gold: ReadonlySet<string>): Scores {
  const found = (k: number) => ranked.slice(0, k).filter((id) => gold.has(id)).length
  const gain = (rank: number) => 1 / Math.log2(rank + 2)
  const got = ranked.slice(0, 10).reduce((sum, id, rank) => sum + (gold.has(id) ? gain(rank) : 0), 0)
  let ideal = 0
  for (let rank = 0; rank < Math.min(10, gold.size); rank++) ideal += gain(rank)
  const first = ranked.findIndex((id) => gold.has(id))
  return {
    any1: Number(found(1) > 0),
    any5: Number(found(5) > 0),
    any10: Number(found(10) > 0),
    all5: Number(found(5) === gold.size),
    all10: Number(found(10) === gold.size),
    recall5: found(5) / gold.size,
    recall10: found(10) / gold.size,
    ndcg10: got / ideal,
    mrr: first < 0 ? 0 : 1 / (first + 1),
  }
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length
}

/** The mean difference of pairs, and its 95 % interval from resampling the questions. */
export function pairedDifference(ours: readonly number[], theirs: readonly number[], draws = 2_000): Interval {
  const differences = ours.map((value, i) => value - theirs[i]!)
  const random = generator(20_260)
  const means: number[] = []
  for (let draw = 0; draw < draws; draw++) {
    let sum = 0
    for (let i = 0; i < differences.length; i++) sum += differences[Math.floor(random() * differences.length)]!
    means.push(sum / differences.length)
  }
  means.sort((a, b) => a - b)
  return { mean: mean(differences), low: means[Math.floor(draws * 0.025)]!, high: means[Math.floor(draws * 0.975)]! }
}

export type Interval = { mean: number; low: number; high: number }

/** The same draws on every machine. */
export function generator(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
