const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"]
const HEIGHTS = "▁▂▃▄▅▆▇█"

/** A bar of at most `columns` columns, exact to an eighth of a column. A value above zero is always visible. */
export function bar(share: number, columns: number): string {
  const eighths = Math.round(share * columns * 8)
  const visibleEighths = share > 0 ? Math.max(1, eighths) : 0
  return "█".repeat(Math.floor(visibleEighths / 8)) + EIGHTHS[visibleEighths % 8]!
}

/** One character per value, or per group of neighbours if there are more values than columns. Zero is a space. */
export function sparkline(values: number[], columns: number): string {
  const width = Math.ceil(values.length / Math.max(1, columns))
  const sums: number[] = []
  for (let i = 0; i < values.length; i += width)
    sums.push(values.slice(i, i + width).reduce((sum, value) => sum + value, 0))
  const largest = Math.max(...sums)
  return sums.map((sum) => (sum <= 0 ? " " : HEIGHTS[Math.min(7, Math.floor((sum / largest) * 8))]!)).join("")
}
