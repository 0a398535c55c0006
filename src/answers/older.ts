import { isoDate } from "../core/dates.ts"
import { formatRef } from "../core/ref.ts"
import type { PassageLibrary } from "./library.ts"
import { newestFirst, type Passage } from "./passages.ts"

export type Older = { n: number; newer: number; note: string }

/** Which cited passages are older than another one on the same document or the same edited file. */
export async function olderOnTheSame(library: PassageLibrary, cited: Passage[]): Promise<Older[]> {
  const isDocument = ({ conversation }: Passage) => conversation.source === "docs"
  const said = cited.filter((passage) => !isDocument(passage))
  const edited = said.length === 0 ? [] : await library.editedBy(said.map(({ conversation }) => conversation))
  const subjects = new Map([
    ...cited.filter(isDocument).map(({ n, conversation }) => [n, new Set([formatRef(conversation)])] as const),
    ...said.map(({ n }, i) => [n, new Set(edited[i])] as const),
  ])
  const found: Older[] = []
  const sorted = newestFirst(cited)
  for (const [i, old] of sorted.entries()) {
    const newer = sorted
      .slice(0, i)
      .find((one) => dayOf(one) !== dayOf(old) && shared(subjects, one, old) !== undefined)
    if (!newer || newer.at === undefined || old.at === undefined) continue
    const on = shared(subjects, newer, old)
    found.push({
      n: old.n,
      newer: newer.n,
      note: `[${old.n}] of ${isoDate(old.at).slice(0, 10)} is older than [${newer.n}] on ${on}.`,
    })
  }
  return found
}

function dayOf({ at }: Passage): string | undefined {
  return at === undefined ? undefined : isoDate(at).slice(0, 10)
}

function shared(subjects: Map<number, Set<string>>, a: Passage, b: Passage): string | undefined {
  return [...(subjects.get(a.n) ?? [])].find((subject) => subjects.get(b.n)?.has(subject))
}
