import { parseDate } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import { searchAsTyped, type TypedRead } from "../../search/typing.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import { type FindQuestion, hasTerms } from "./asked.ts"
import { type Found, ROWS_AT_ONCE } from "./find-rows.ts"

/** What is typed into the field, and not to be taken as words. */
const MORE_THAN_WORDS = /["]|(?:^|\s)-\p{L}|\b[a-z]+:\S/u

/**
 * What is found before the next key: the newest that have these words, in no other order. Undefined where that would be
 * another question than the one asked, or where nothing is found: the full search knows what was meant.
 */
export async function quickRows(dex: Dex, asked: FindQuestion): Promise<Found | undefined> {
  const { words, narrowed } = asked
  const { source, project, from, ...others } = narrowed
  if (!hasTerms(asked) || MORE_THAN_WORDS.test(words) || Object.keys(others).length > 0) return undefined
  const typed = {
    text: words,
    ...(source !== undefined && { sources: [source] }),
    ...(project !== undefined && { project }),
    ...(from !== undefined && { after: parseDate(from, "from", dex.now()) }),
    inside: dex.project,
    limit: ROWS_AT_ONCE,
  }
  const store = await dex.store()
  const found = await searchAsTyped(store, await dex.index(), typed, await readBefore(store))
  if (found.length === 0) return undefined
  const rows = found.map(({ ref, time, project: path = "", snippet, ...row }) => ({
    ...{ ...row, id: formatRef(ref), date: time, project: path },
    ...(snippet !== undefined && { snippet }),
  }))
  return { rows, says: "Newest first, until you pause", notes: [], hasMore: false }
}

/** Of each history, what was read for the key before, as long as nothing was written. */
const readOf = new WeakMap<HistoryReader, { revision: string; read: TypedRead }>()

async function readBefore(store: HistoryReader): Promise<TypedRead> {
  const revision = await store.revision()
  const known = readOf.get(store)
  if (known?.revision === revision) return known.read
  const read: TypedRead = new Map()
  readOf.set(store, { revision, read })
  return read
}
