import { isDexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import type { ReplacedWord } from "../../search/forgive.ts"
import type { Query, QueryFilters } from "../../search/query.ts"
import { indexWithout, projectsHiddenFrom } from "../../search/scope.ts"
import { type SearchInput, type SearchOutcome, searchHistory, unsearchedShards } from "../../search/search.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { SearchIndex } from "../../store/index/search-index.ts"
import { unknownProject } from "../unknown-project.ts"

/** At this number of matching messages or fewer, the person may have meant something else. */
const FEW_MESSAGES = 10

/** Replaces words that occur nowhere with similar words that do. Costs nothing if the query has no mistake. */
export async function searchWithCorrections(store: HistoryReader, index: SearchIndex | undefined, input: SearchInput) {
  const found = await searchHistory(store, index, input)
  if (!index || found.mode === "scan") return { found }
  try {
    const forgiven = (await isEnough(index, found, input.query)) ? undefined : await correctedQuery(store, index, input)
    const again = forgiven && (await searchHistory(store, index, { ...input, query: forgiven.query }))
    return again && again.hits.length > 0
      ? { found: again, meant: forgiven.replaced }
      : { found: { ...found, ...unsearchedShards(index) } }
  } catch (error) {
    if (!isDexError(error) || error.code !== "index_damaged") throw error
    return { found } // the result is valid, and the next sync rebuilds the index
  }
}

async function correctedQuery(store: HistoryReader, index: SearchIndex, { query, inside }: SearchInput) {
  const { correctWords } = await import("../../search/forgive.ts")
  const hidden = projectsHiddenFrom(await store.projects(), inside)
  const visible = await indexWithout(store, index, hidden)
  return correctWords({ store, index: visible, hidden, few: FEW_MESSAGES }, query)
}

async function isEnough(index: SearchIndex, { hits, matched, total }: SearchOutcome, query: Query): Promise<boolean> {
  if (hits.length === 0 || matched === "some") return false
  return total > FEW_MESSAGES || !(await isPrefix(index, query))
}

/** True if other words start with the last one. */
async function isPrefix(index: SearchIndex, { words }: Query): Promise<boolean> {
  const last = words.at(-1) ?? ""
  return last !== "" && (await index.words(last)).some(({ word }) => word !== last)
}

export function correctionNote({ typed, by, why }: ReplacedWord): string {
  const [first, ...others] = by.map((word) => `"${word}"`)
  if (why === "prefix")
    return `Few or no messages contain "${typed}" alone. Also searched for words that start with it: ${by.join(", ")}.`
  const also = others.length > 0 ? ` Similar words: ${others.join(", ")}.` : ""
  return `No message contains "${typed}". Showing results for ${first}.${also}`
}

/** If the filters leave nothing: the number of matches without each of them. */
export async function filterNotes(
  store: HistoryReader,
  index: SearchIndex | undefined,
  input: SearchInput,
  filters: QueryFilters,
): Promise<string[]> {
  const unknown = filters.project === undefined ? undefined : await unknownProject(store, filters.project, input.inside)
  const notes = unknown === undefined ? [] : [unknown]
  const fields = { source: "sources", tool: "tools", role: "roles" } as Record<string, string>
  for (const [name, value] of Object.entries(filters)) {
    const { [fields[name] ?? name]: _, ...rest } = input as Record<string, unknown>
    const { total, total_is_at_least } = await searchHistory(store, index, {
      ...(rest as SearchInput),
      limit: 1,
      offset: 0,
    })
    const count = `${total_is_at_least ? "more than " : ""}${grouped(total)}`
    if (total > 0)
      notes.push(`${count} ${total === 1 ? "message matches" : "messages match"} without ${name}:${value}.`)
  }
  return notes
}
