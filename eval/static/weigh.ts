/** The frequency above which a word counts less. */
const RARE = 3e-4
/** Directions that nearly all words share, and that distinguish nothing. */
const COMMON = 1
const TURNS = 20

/**
 * Each word's vector, with its weight as its length: common words count little (smooth inverse frequency), and the direction that
 * all words share is removed.
 */
export function weigh(vectors: Float32Array, dims: number, counts: Float64Array): Float32Array {
  const size = counts.length
  const all = counts.reduce((sum, count) => sum + count, 0)
  const result = new Float32Array(vectors.length)
  for (let w = 0; w < size; w++) {
    const row = vectors.subarray(w * dims, (w + 1) * dims)
    const weight = RARE / (RARE + counts[w]! / all) / (Math.hypot(...row) || 1)
    for (let d = 0; d < dims; d++) result[w * dims + d] = row[d]! * weight
  }
  for (let time = 0; time < COMMON; time++) removeStrongest(result, dims, counts)
  return result
}

/** Weighted by the frequency of words, because that is how often texts contain them. */
function removeStrongest(vectors: Float32Array, dims: number, counts: Float64Array): void {
  let direction = new Float64Array(dims).fill(1)
  for (let turn = 0; turn < TURNS; turn++) {
    const next = new Float64Array(dims)
    for (let w = 0; w < counts.length; w++) {
      const along = dot(vectors, w * dims, direction) * counts[w]!
      for (let d = 0; d < dims; d++) next[d]! += along * vectors[w * dims + d]!
    }
    const length = Math.hypot(...next)
    direction = next.map((value) => value / length)
  }
  for (let w = 0; w < counts.length; w++) {
    const along = dot(vectors, w * dims, direction)
    for (let d = 0; d < dims; d++) vectors[w * dims + d]! -= along * direction[d]!
  }
}

function dot(vectors: Float32Array, at: number, direction: Float64Array): number {
  let sum = 0
  for (let d = 0; d < direction.length; d++) sum += vectors[at + d]! * direction[d]!
  return sum
}
