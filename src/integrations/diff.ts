const CONTEXT = 3
/** Above this many pairs of lines the changed middle is shown as one piece. */
const MAX_PAIRS = 4_000_000

/** A unified diff; empty where nothing differs. `shown` may hide secrets. */
export function unifiedDiff(
  path: string,
  before: string | undefined,
  after: string | undefined,
  shown: (line: string) => string = (line) => line,
): string {
  if (before === after) return ""
  const steps = compare(linesOf(before), linesOf(after))
  const lines = [`--- ${before === undefined ? "/dev/null" : path}`, `+++ ${after === undefined ? "/dev/null" : path}`]
  for (const [from, to] of hunks(steps)) {
    const part = steps.slice(from, to)
    const start = (sign: Sign) => {
      const count = part.filter((step) => step.sign !== sign).length
      const first = steps.slice(0, from).filter((step) => step.sign !== sign).length + (count > 0 ? 1 : 0)
      return `${first},${count}`
    }
    lines.push(`@@ -${start("+")} +${start("-")} @@`)
    for (const { sign, line } of part) {
      const text = line.replace(/\r?\n$/, "")
      lines.push(sign + shown(text))
      if (!line.endsWith("\n")) lines.push("\\ No newline at end of file")
    }
  }
  return `${lines.join("\n")}\n`
}

type Sign = " " | "-" | "+"
type Step = { sign: Sign; line: string }

/** With their ends, so that a missing last one is a difference. */
function linesOf(text: string | undefined): string[] {
  return text?.match(/[^\n]*\n|[^\n]+$/g) ?? []
}

function compare(before: string[], after: string[]): Step[] {
  let head = 0
  while (head < before.length && head < after.length && before[head] === after[head]) head++
  let tail = 0
  const most = Math.min(before.length, after.length) - head
  while (tail < most && before.at(-1 - tail) === after.at(-1 - tail)) tail++
  const same = (lines: string[]): Step[] => lines.map((line) => ({ sign: " ", line }))
  return [
    ...same(before.slice(0, head)),
    ...middle(before.slice(head, before.length - tail), after.slice(head, after.length - tail)),
    ...same(before.slice(before.length - tail)),
  ]
}

function middle(before: string[], after: string[]): Step[] {
  const width = after.length + 1
  if (before.length * after.length > MAX_PAIRS || before.length === 0 || after.length === 0)
    return [
      ...before.map((line) => ({ sign: "-" as const, line })),
      ...after.map((line) => ({ sign: "+" as const, line })),
    ]
  // longest[i * width + j]: how many lines before[i…] and after[j…] share in order.
  const longest = new Uint32Array((before.length + 1) * width)
  for (let i = before.length - 1; i >= 0; i--)
    for (let j = after.length - 1; j >= 0; j--)
      longest[i * width + j] =
        before[i] === after[j]
          ? longest[(i + 1) * width + j + 1]! + 1
          : Math.max(longest[(i + 1) * width + j]!, longest[i * width + j + 1]!)
  const steps: Step[] = []
  let i = 0
  let j = 0
  while (i < before.length || j < after.length) {
    if (i < before.length && j < after.length && before[i] === after[j]) {
      steps.push({ sign: " ", line: before[i]! })
      i++
      j++
    } else if (i < before.length && (j >= after.length || longest[(i + 1) * width + j]! >= longest[i * width + j + 1]!))
      steps.push({ sign: "-", line: before[i++]! })
    else steps.push({ sign: "+", line: after[j++]! })
  }
  return steps
}

/** Where changes stand with their surroundings, joined where these touch. */
function hunks(steps: Step[]): [number, number][] {
  const found: [number, number][] = []
  for (const [i, { sign }] of steps.entries()) {
    if (sign === " ") continue
    const from = Math.max(0, i - CONTEXT)
    const to = Math.min(steps.length, i + CONTEXT + 1)
    const last = found.at(-1)
    if (last && from <= last[1]) last[1] = to
    else found.push([from, to])
  }
  return found
}
