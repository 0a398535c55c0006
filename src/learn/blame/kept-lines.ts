import { formatRef } from "../../core/ref.ts"
import type { AttributedLine, Reason } from "./attribute-commit.ts"
import type { Worker } from "./facts.ts"

// What was found about the lines that a commit added to a file, as a text to be kept, and back.

/** A line's number, its key and, where somebody is known, what of `whats` it is and the number of the message that wrote it. */
type KeptLine = [line: number, key: number, what?: number, message?: number]
type What = [level: "proved" | "likely", reason: Reason, worker: string, wroteIn?: string]

export function keptText(lines: readonly AttributedLine[]): string {
  const whats = new Map<string, number>()
  const kept = lines.map((one): KeptLine => {
    if (one.level === "unknown") return [one.line, one.key]
    const { level, reason, worker, ref } = one
    const what: What = [level, reason, formatRef(worker.ref)]
    if (ref) what.push(ref.id)
    const text = JSON.stringify(what)
    if (!whats.has(text)) whats.set(text, whats.size)
    const line: KeptLine = [one.line, one.key, whats.get(text)!]
    if (ref) line.push(ref.number)
    return line
  })
  return `{"whats":[${[...whats.keys()].join(",")}],"lines":${JSON.stringify(kept)}}`
}

/** Undefined where it names a conversation that is not known: then it must be found anew. */
export function linesKeptIn(text: string, workers: ReadonlyMap<string, Worker>): AttributedLine[] | undefined {
  const { whats, lines } = JSON.parse(text) as { whats: What[]; lines: KeptLine[] }
  if (whats.some(([, , worker]) => !workers.has(worker))) return undefined
  return lines.map(([line, key, what, message]): AttributedLine => {
    if (what === undefined) return { line, key, level: "unknown" }
    const [level, reason, name, id] = whats[what]!
    const worker = workers.get(name)!
    const wrote = id !== undefined && message !== undefined && { ref: { ...worker.ref, id, number: message } }
    return { line, key, level, reason, worker, ...wrote }
  })
}
