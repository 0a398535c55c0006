import type { Sparse } from "./cooccurrence.ts"

const MORE = 16
const ROUNDS = 3

/**
 * The matrix in this many dimensions, one row per word: its strongest eigenvectors by a randomised search, each weighted by the
 * square root of its eigenvalue.
 */
export function factorize(matrix: Sparse, dims: number, random: () => number): Float32Array {
  const { size } = matrix
  const width = dims + MORE
  let basis: Float32Array = Float32Array.from({ length: size * width }, () => random() - 0.5)
  for (let round = 0; round < ROUNDS; round++) {
    basis = multiply(matrix, basis, width)
    orthonormalize(basis, size, width)
  }
  const image = multiply(matrix, basis, width)
  const small = new Float64Array(width * width)
  for (let row = 0; row < size; row++)
    for (let i = 0; i < width; i++) {
      const left = basis[row * width + i]!
      for (let j = 0; j < width; j++) small[i * width + j]! += left * image[row * width + j]!
    }
  const { values, vectors } = eigen(small, width)
  const order = [...values.keys()].sort((a, b) => Math.abs(values[b]!) - Math.abs(values[a]!)).slice(0, dims)
  const turn = new Float32Array(width * dims)
  for (let i = 0; i < width; i++)
    for (const [to, from] of order.entries())
      turn[i * dims + to] = vectors[i * width + from]! * Math.sqrt(Math.abs(values[from]!))
  const result = new Float32Array(size * dims)
  for (let row = 0; row < size; row++)
    for (let i = 0; i < width; i++) {
      const left = basis[row * width + i]!
      for (let d = 0; d < dims; d++) result[row * dims + d]! += left * turn[i * dims + d]!
    }
  return result
}

function multiply({ size, starts, columns, values }: Sparse, by: Float32Array, width: number): Float32Array {
  const result = new Float32Array(size * width)
  for (let row = 0; row < size; row++)
    for (let at = starts[row]!; at < starts[row + 1]!; at++) {
      const value = values[at]!
      const from = columns[at]! * width
      const to = row * width
      for (let i = 0; i < width; i++) result[to + i]! += value * by[from + i]!
    }
  return result
}

/** Makes columns perpendicular and of length 1, by the Cholesky factor of their products; twice, for exactness. */
function orthonormalize(rows: Float32Array, size: number, width: number): void {
  for (let time = 0; time < 2; time++) {
    const products = new Float64Array(width * width)
    for (let row = 0; row < size; row++)
      for (let i = 0; i < width; i++) {
        const left = rows[row * width + i]!
        for (let j = 0; j <= i; j++) products[i * width + j]! += left * rows[row * width + j]!
      }
    for (let i = 0; i < width; i++)
      for (let j = 0; j <= i; j++) {
        let sum = products[i * width + j]!
        for (let k = 0; k < j; k++) sum -= products[i * width + k]! * products[j * width + k]!
        products[i * width + j] = i === j ? Math.sqrt(Math.max(sum, 1e-20)) : sum / products[j * width + j]!
      }
    for (let row = 0; row < size; row++)
      for (let i = 0; i < width; i++) {
        let value = rows[row * width + i]!
        for (let k = 0; k < i; k++) value -= products[i * width + k]! * rows[row * width + k]!
        rows[row * width + i] = value / products[i * width + i]!
      }
  }
}

/** The eigenvalues of a small symmetric matrix, by Jacobi rotations. Vectors are columns. */
function eigen(matrix: Float64Array, size: number): { values: Float64Array; vectors: Float64Array } {
  const a = matrix.slice()
  const vectors = new Float64Array(size * size)
  for (let i = 0; i < size; i++) vectors[i * size + i] = 1
  for (let sweep = 0; sweep < 12; sweep++)
    for (let p = 0; p < size - 1; p++)
      for (let q = p + 1; q < size; q++) {
        const off = a[p * size + q]!
        if (Math.abs(off) < 1e-9 * Math.sqrt(Math.abs(a[p * size + p]! * a[q * size + q]!))) continue
        const theta = (a[q * size + q]! - a[p * size + p]!) / (2 * off)
        const t = Math.sign(theta || 1) / (Math.abs(theta) + Math.sqrt(theta * theta + 1))
        const c = 1 / Math.sqrt(t * t + 1)
        const s = t * c
        for (let k = 0; k < size; k++) {
          const [kp, kq] = [a[k * size + p]!, a[k * size + q]!]
          a[k * size + p] = c * kp - s * kq
          a[k * size + q] = s * kp + c * kq
        }
        for (let k = 0; k < size; k++) {
          const [pk, qk] = [a[p * size + k]!, a[q * size + k]!]
          a[p * size + k] = c * pk - s * qk
          a[q * size + k] = s * pk + c * qk
          const [vp, vq] = [vectors[k * size + p]!, vectors[k * size + q]!]
          vectors[k * size + p] = c * vp - s * vq
          vectors[k * size + q] = s * vp + c * vq
        }
      }
  return { values: Float64Array.from({ length: size }, (_, i) => a[i * size + i]!), vectors }
}
