import type { Corpus } from "./corpus.ts"

/** A symmetric matrix, row by row: row `i` is columns[starts[i] … starts[i + 1]]. */
export type Sparse = { size: number; starts: Float64Array; columns: Int32Array; values: Float32Array }

/** A pair of words seen less than this (near counts 1, far a fraction) is chance. */
const LEAST = 1
/** Rare contexts are worth less than their rarity suggests. */
const SMOOTHING = 0.75

/** How much more often than by chance two words are near each other: positive pointwise mutual information. */
export function mutualInformation({ words, passages }: Corpus, window: number): Sparse {
  const size = words.length
  const seen = new PairCounts(26)
  for (const terms of passages)
    for (let i = 0; i < terms.length; i++)
      for (let j = i + 1; j <= i + window && j < terms.length; j++) {
        const [a, b] = terms[i]! < terms[j]! ? [terms[i]!, terms[j]!] : [terms[j]!, terms[i]!]
        if (a !== b) seen.add(a * size + b, 1 / (j - i))
      }
  const sums = new Float64Array(size)
  seen.each((key, count) => {
    sums[Math.floor(key / size)]! += count
    sums[key % size]! += count
  })
  const smoothed = sums.map((sum) => sum ** SMOOTHING)
  const allSmoothed = smoothed.reduce((sum, value) => sum + value, 0)
  const information = (key: number, count: number) => {
    if (count < LEAST) return 0
    const [a, b] = [Math.floor(key / size), key % size]
    const byChance = Math.max(sums[a]! * smoothed[b]!, sums[b]! * smoothed[a]!) / allSmoothed
    return Math.max(0, Math.log(count / byChance))
  }
  const starts = new Float64Array(size + 1)
  seen.each((key, count) => {
    if (information(key, count) === 0) return
    starts[Math.floor(key / size) + 1]!++
    starts[(key % size) + 1]!++
  })
  for (let i = 0; i < size; i++) starts[i + 1]! += starts[i]!
  const columns = new Int32Array(starts[size]!)
  const values = new Float32Array(starts[size]!)
  const next = starts.slice()
  seen.each((key, count) => {
    const value = information(key, count)
    if (value === 0) return
    const [a, b] = [Math.floor(key / size), key % size]
    for (const [row, column] of [
      [a, b],
      [b, a],
    ] as const) {
      const at = next[row]!++
      columns[at] = column
      values[at] = value
    }
  })
  return { size, starts, columns, values }
}

/** Sums by an integer below 2^32: a Map takes ten times the memory. */
class PairCounts {
  readonly #keys: Uint32Array
  readonly #sums: Float32Array
  readonly #shift: number
  #used = 0

  constructor(bits: number) {
    this.#keys = new Uint32Array(2 ** bits)
    this.#sums = new Float32Array(2 ** bits)
    this.#shift = 32 - bits
  }

  add(key: number, value: number): void {
    const mask = this.#keys.length - 1
    let at = Math.imul(key, 0x9e3779b1) >>> this.#shift
    while (this.#sums[at] !== 0 && this.#keys[at] !== key) at = (at + 1) & mask
    if (this.#sums[at] === 0) {
      if (++this.#used > mask * 0.9) throw new Error("Too many pairs of words: take fewer words or a smaller window.")
      this.#keys[at] = key
    }
    this.#sums[at]! += value
  }

  each(visit: (key: number, sum: number) => void): void {
    for (let at = 0; at < this.#keys.length; at++) if (this.#sums[at] !== 0) visit(this.#keys[at]!, this.#sums[at]!)
  }
}
