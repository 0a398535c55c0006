import type { Corpus } from "./corpus.ts"

export type Contrast = {
  steps: number
  /** How many pairs must be distinguished at once. */
  batch: number
  rate: number
  temperature: number
  random: () => number
  say: (text: string) => void
}

/** Moves words so that the two sides of a pair come closer to each other than to the sides of other pairs. In place. */
export function contrast(vectors: Float32Array, dims: number, { pairs }: Corpus, options: Contrast): void {
  const { steps, batch, temperature, random } = options
  const squares = new Float32Array(vectors.length / dims)
  let right = 0
  for (let step = 1; step <= steps; step++) {
    const rate = options.rate * Math.min(1, step / 50) * (1 - step / (steps + 1))
    const some = Array.from({ length: batch }, () => pairs[Math.floor(random() * pairs.length)]!)
    const a = toUnits(
      vectors,
      dims,
      some.map(({ short }) => short),
    )
    const b = toUnits(
      vectors,
      dims,
      some.map(({ long }) => long),
    )
    const likeness = new Float32Array(batch * batch)
    for (let i = 0; i < batch; i++)
      for (let j = 0; j < batch; j++) {
        let sum = 0
        for (let d = 0; d < dims; d++) sum += a.units[i * dims + d]! * b.units[j * dims + d]!
        likeness[i * batch + j] = sum / temperature
      }
    const { slopes, correct } = slopesOf(likeness, batch)
    right += correct / batch
    const ga = new Float32Array(batch * dims)
    const gb = new Float32Array(batch * dims)
    for (let i = 0; i < batch; i++)
      for (let j = 0; j < batch; j++) {
        const slope = slopes[i * batch + j]! / temperature
        if (Math.abs(slope) < 1e-6) continue
        for (let d = 0; d < dims; d++) {
          ga[i * dims + d]! += slope * b.units[j * dims + d]!
          gb[j * dims + d]! += slope * a.units[i * dims + d]!
        }
      }
    for (let i = 0; i < batch; i++) {
      move(vectors, dims, squares, some[i]!.short, a, ga, i, rate)
      move(vectors, dims, squares, some[i]!.long, b, gb, i, rate)
    }
    if (step % 250 === 0) {
      options.say(`step ${step}: ${((100 * right) / 250).toFixed(1)} % of pairs found in their batch`)
      right = 0
    }
  }
}

type Units = { units: Float32Array; lengths: Float32Array }

function toUnits(vectors: Float32Array, dims: number, texts: readonly Int32Array[]): Units {
  const units = new Float32Array(texts.length * dims)
  const lengths = new Float32Array(texts.length)
  for (const [i, terms] of texts.entries()) {
    for (const term of terms) for (let d = 0; d < dims; d++) units[i * dims + d]! += vectors[term * dims + d]!
    let square = 1e-12
    for (let d = 0; d < dims; d++) square += units[i * dims + d]! ** 2
    lengths[i] = Math.sqrt(square)
    for (let d = 0; d < dims; d++) units[i * dims + d]! /= lengths[i]!
  }
  return { units, lengths }
}

/** The gradient of the cross entropy by rows and by columns, and how many rows have their own column first. */
function slopesOf(likeness: Float32Array, batch: number): { slopes: Float32Array; correct: number } {
  const slopes = new Float32Array(batch * batch)
  let correct = 0
  for (const [across, along] of [
    [batch, 1],
    [1, batch],
  ] as const)
    for (let i = 0; i < batch; i++) {
      let most = Number.NEGATIVE_INFINITY
      for (let j = 0; j < batch; j++) most = Math.max(most, likeness[i * across + j * along]!)
      let sum = 0
      for (let j = 0; j < batch; j++) sum += Math.exp(likeness[i * across + j * along]! - most)
      for (let j = 0; j < batch; j++) {
        const share = Math.exp(likeness[i * across + j * along]! - most) / sum
        slopes[i * across + j * along]! += (share - Number(i === j)) / (2 * batch)
      }
      if (along === 1 && likeness[i * across + i]! === most) correct++
    }
  return { slopes, correct }
}

/** Moves one text's words along its gradient: one step each, smaller for words that have already moved much (Adagrad). */
function move(
  vectors: Float32Array,
  dims: number,
  squares: Float32Array,
  terms: Int32Array,
  { units, lengths }: Units,
  slopes: Float32Array,
  i: number,
  rate: number,
): void {
  let along = 0
  for (let d = 0; d < dims; d++) along += slopes[i * dims + d]! * units[i * dims + d]!
  const step = new Float32Array(dims)
  let square = 0
  for (let d = 0; d < dims; d++) {
    step[d] = (slopes[i * dims + d]! - along * units[i * dims + d]!) / lengths[i]!
    square += step[d]! ** 2
  }
  for (const term of terms) {
    squares[term]! += square
    const size = rate / (Math.sqrt(squares[term]!) + 1e-8)
    for (let d = 0; d < dims; d++) vectors[term * dims + d]! -= size * step[d]!
  }
}
