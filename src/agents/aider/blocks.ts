/** A stretch of a run: what the person typed, what Aider reported, or what the model answered. */
export type RunBlock = { by: "person" | "aider" | "model"; lines: string[] }

const PROMPT = /^####(?: |$)/
const REPORT = /^>(?: |$)/
/** What only Aider writes: after it no code of an answer is open. */
const SURELY_REPORT = /^> (?:Tokens: |Applied edit to |Commit [0-9a-f]{7,40} |Aider v|Main model: |Model: )/
const FENCE = /^\s*(?:`{3,}|~{3,})/

/**
 * Divides a run by how its lines begin. Aider ends what a person typed with two blanks, and a model's own heading does not: where
 * a run has such lines, only those are the person's. In the code of an answer no line is anybody else's.
 */
export function blocksIn(text: string): RunBlock[] {
  const lines = text.split("\n")
  const marked = lines.some((line) => PROMPT.test(line) && line.endsWith("  "))
  const blocks: RunBlock[] = []
  let inCode = false
  for (const [index, line] of lines.entries()) {
    const isPrompt = PROMPT.test(line) && (marked ? endsMarked(lines, index) : !inCode)
    const isReport = REPORT.test(line) && (!inCode || SURELY_REPORT.test(line))
    if (isPrompt || isReport) inCode = false
    else if (FENCE.test(line)) inCode = !inCode
    const by = isPrompt ? "person" : isReport ? "aider" : "model"
    const last = blocks.at(-1)
    if (last?.by === by) last.lines.push(line)
    else if (by !== "model" || line.trim() !== "") blocks.push({ by, lines: [line] })
  }
  return blocks.map(({ by, lines: own }) => ({ by, lines: by === "model" ? own : own.map(withoutMark) }))
}

/** Of a prompt of several lines only the last one is marked. */
function endsMarked(lines: readonly string[], from: number): boolean {
  let at = from
  while (PROMPT.test(lines[at + 1] ?? "") && !lines[at]!.endsWith("  ")) at++
  return lines[at]!.endsWith("  ")
}

function withoutMark(line: string): string {
  return line.replace(/^(?:####|>) ?/, "").trimEnd()
}
