import { readFileSync } from "node:fs"
import { join } from "node:path"
import { checkCitations } from "../../src/answers/cited.ts"
import { createPassages, type Passage } from "../../src/answers/passages.ts"
import { findSpecifics } from "../../src/answers/specifics.ts"
import { parseRef } from "../../src/core/ref.ts"
import { openGenuineHome } from "../genuine-home.ts"
import { generator } from "../metrics.ts"
import { linesOf } from "./labels.ts"
import type { Project } from "./project.ts"

// Sentences of a model, checked against what they cite: sentences that are true of their passages, and the same with one thing
// changed.

export type Written = { id: string; sentence: string; cites: { ref?: string; document?: string; heading?: string }[] }

const CHANGED = 1_000

export async function sentenceFigures(project: Project) {
  const written = linesOf<Written>("sentences.jsonl")
  const cited = await passagesOf(project, written)
  const kept = written.filter(({ id, sentence }) => isKept(sentence, cited.get(id)!)).length
  const changed = changedSentences(written, cited)
  const through = changed.filter(({ id, sentence }) => isKept(sentence, cited.get(id)!)).length
  return {
    "true sentences that stay": { of: written.length, count: kept },
    "sentences with one thing changed that get through": { of: changed.length, count: through },
  }
}

/** Whether the check accepts a sentence that cites these passages. */
export function isKept(sentence: string, passages: Passage[]): boolean {
  const marks = passages.map((_, i) => `[${i + 1}]`).join("")
  const code = sentence.indexOf("\n```")
  const answer = code === -1 ? `${sentence} ${marks}` : `${sentence.slice(0, code)} ${marks}${sentence.slice(code)}`
  const { dropped } = checkCitations(answer, (n) => passages[n - 1])
  return Object.values(dropped).every((count) => count === 0)
}

export async function passagesOf(project: Project, written: Written[]): Promise<Map<string, Passage[]>> {
  const home = await openGenuineHome()
  const all = new Map<string, Passage[]>()
  for (const { id, cites } of written) {
    const passages = createPassages()
    for (const { ref, document, heading } of cites) {
      if (ref === undefined) {
        const text = readFileSync(join(project.clone, document!), "utf8")
        passages.addSection({ path: document!, line: 1, headings: heading === undefined ? [] : [heading], text, at: 0 })
        continue
      }
      const { source, prefix, number } = parseRef(ref)!
      const row = await home.store.conversation({ source: source!, id: prefix })
      const [message] = await home.store.messages({ source: source!, id: prefix }, [number!])
      passages.add(row!, message!)
    }
    all.set(
      id,
      cites.map((_, i) => passages.get(i + 1)!),
    )
  }
  home.close()
  return all
}

/** One command, code span, path, number or name, replaced by another of its kind that is not in the cited passages. */
function changedSentences(written: Written[], cited: Map<string, Passage[]>): { id: string; sentence: string }[] {
  const random = generator(11)
  const drawn = <T>(list: T[]): T => list[Math.floor(random() * list.length)]!
  const pool = Map.groupBy(
    written.flatMap(({ sentence }) =>
      findSpecifics(sentence).map(({ literal }) => ({ literal, kind: kindOf(literal, sentence) })),
    ),
    ({ kind }) => kind,
  )
  const changed: { id: string; sentence: string }[] = []
  while (changed.length < CHANGED) {
    const { id, sentence } = drawn(written)
    const specific = drawn(findSpecifics(sentence))
    if (specific === undefined) continue
    const { literal } = drawn(pool.get(kindOf(specific.literal, sentence))!)
    const texts = cited.get(id)!.map(({ text, title, ref }) => `${text} ${title} ${ref}`.toLowerCase())
    if (texts.some((text) => text.includes(literal.toLowerCase().replace(/s$/, "")))) continue
    changed.push({ id, sentence: sentence.replace(specific.literal, () => literal) })
  }
  return changed
}

function kindOf(literal: string, sentence: string): string {
  const isCode = sentence.includes(`\`${literal}`) || sentence.includes(`\n${literal}`)
  if (/^[\d.,:-]+\w{0,2}$/.test(literal)) return "number"
  if (/^[{}()[\];,]*$/.test(literal)) return "brackets"
  if (literal.includes("/") && !literal.includes(" ")) return "path"
  return isCode ? (literal.includes(" ") ? "command" : "code") : "name"
}
