/** Logistic regression by Newton's method, with weighted rows. Returns weights for the unscaled features. */
export function fitLogistic(
  rows: { features: Record<string, number>; used: boolean; weight: number }[],
  penalty: number,
): Record<string, number> {
  const names = Object.keys(rows[0]?.features ?? {})
  const total = rows.reduce((sum, { weight }) => sum + weight, 0)
  const mean = names.map((name) => rows.reduce((sum, row) => sum + row.weight * row.features[name]!, 0) / total)
  const deviation = names.map((name, i) =>
    Math.sqrt(rows.reduce((sum, row) => sum + row.weight * (row.features[name]! - mean[i]!) ** 2, 0) / total),
  )
  const points = rows.map(({ features }) => [
    ...names.map((name, i) => (deviation[i]! < 1e-9 ? 0 : (features[name]! - mean[i]!) / deviation[i]!)),
    1,
  ])
  const size = names.length + 1
  let weights = new Array<number>(size).fill(0)
  for (let round = 0; round < 100; round++) {
    const gradient = weights.map((weight, i) => (i < names.length ? penalty * weight : 0))
    const hessian = weights.map((_, i) => weights.map((_, j) => (i === j ? (i < names.length ? penalty : 1e-6) : 0)))
    for (const [r, point] of points.entries()) {
      const odds = point.reduce((sum, value, i) => sum + value * weights[i]!, 0)
      const chance = 1 / (1 + Math.exp(-odds))
      const { weight, used } = rows[r]!
      for (let i = 0; i < size; i++) {
        gradient[i]! += weight * (chance - Number(used)) * point[i]!
        for (let j = 0; j < size; j++) hessian[i]![j]! += weight * chance * (1 - chance) * point[i]! * point[j]!
      }
    }
    const step = solve(hessian, gradient)
    weights = weights.map((weight, i) => weight - step[i]!)
    if (Math.max(...step.map(Math.abs)) < 1e-7) break
  }
  const own: Record<string, number> = { bias: weights[names.length]! }
  for (const [i, name] of names.entries()) {
    if (deviation[i]! < 1e-9) continue
    own[name] = weights[i]! / deviation[i]!
    own.bias! -= own[name]! * mean[i]!
  }
  return Object.fromEntries(Object.entries(own).map(([name, value]) => [name, Number(value.toFixed(3))]))
}

/** By elimination with the largest pivot first. */
function solve(matrix: number[][], right: number[]): number[] {
  const rows = matrix.map((row, i) => [...row, right[i]!])
  for (let i = 0; i < rows.length; i++) {
    const pivot = rows
      .slice(i)
      .reduce((best, row, k) => (Math.abs(row[i]!) > Math.abs(rows[best]![i]!) ? i + k : best), i)
    ;[rows[i], rows[pivot]] = [rows[pivot]!, rows[i]!]
    for (let k = i + 1; k < rows.length; k++) {
      const factor = rows[k]![i]! / rows[i]![i]!
      for (let j = i; j <= rows.length; j++) rows[k]![j]! -= factor * rows[i]![j]!
    }
  }
  const found = new Array<number>(rows.length).fill(0)
  for (let i = rows.length - 1; i >= 0; i--) {
    const known = rows[i]!.slice(i + 1, -1).reduce((sum, value, k) => sum + value * found[i + 1 + k]!, 0)
    found[i] = (rows[i]!.at(-1)! - known) / rows[i]![i]!
  }
  return found
}
