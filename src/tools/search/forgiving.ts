import { isDexError } from "../../core/error.ts"
import { grouped } from "../../core/format.ts"
import type { ReplacedWord } from "../../search/forgive.ts"
import type { Query, QueryFilters } from "../../search/query.ts"
import { indexWithout, projectsHiddenFrom } from "../../search/scope.ts"
import { type SearchInput, type SearchOutcome, searchHistory } from "../../search/search.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { SearchIndex } from "../../store/index/search-index.ts"

/** If this many messages match, or fewer, the person may have meant another word. */
const FEW_MESSAGES = 10

/** Searches. If few messages match, searches again with similar words for words that are unknown or may be incomplete. */
export async function searchWithCorrections(store: HistoryReader, index: SearchIndex | undefined, input: SearchInput) {
  const firstOutcome = await searchHistory(store, index, input)
  if (!index || firstOutcome.mode === "scan") return { found: firstOutcome }
  try {
    const corrected = (await isEnough(index, firstOutcome, input.query))
      ? undefined
      : await correctedQuery(store, index, input)
    const secondOutcome = corrected && (await searchHistory(store, index, { ...input, query: corrected.query }))
    return secondOutcome && secondOutcome.hits.length > 0
      ? { found: secondOutcome, meant: corrected.replaced }
      : { found: firstOutcome }
  } catch (error) {
    if (!isDexError(error) || error.code !== "index_damaged") throw error
    return { found: firstOutcome } // The first search succeeded, so its result is returned. The next sync rebuilds the index.
  }
}

async function correctedQuery(store: HistoryReader, index: SearchIndex, { query, inside }: SearchInput) {
  const { correctWords } = await import("../../search/forgive.ts")
  const hidden = projectsHiddenFrom(await store.projects("private"), inside)
  const visible = await indexWithout(store, index, hidden)
  return correctWords({ store, index: visible, hidden, maxMessages: FEW_MESSAGES }, query)
}

async function isEnough(index: SearchIndex, { hits, matched, total }: SearchOutcome, query: Query): Promise<boolean> {
  if (hits.length === 0 || matched === "some") return false
  return total > FEW_MESSAGES || !(await isPrefix(index, query))
}

/** Returns true if other words start with the last word of the query. */
async function isPrefix(index: SearchIndex, { words }: Query): Promise<boolean> {
  const last = words.at(-1) ?? ""
  return last !== "" && (await index.words(last)).some(({ word }) => word !== last)
}

export function correctionNote({ typed, by, why }: ReplacedWord): string {
  const [first, ...others] = by.map((word) => `"${word}"`)
  if (why === "prefix")
    return `Few or no messages contain "${typed}" alone. Also searched for words that start with it: ${by.join(", ")}.`
  const similarWords = others.length > 0 ? ` Similar words: ${others.join(", ")}.` : ""
  return `No message contains "${typed}". Showing results for ${first}.${similarWords}`
}

/** Notes for a search whose filters leave nothing: how many messages would match without each filter. */
export async function filterNotes(
  store: HistoryReader,
  index: SearchIndex | undefined,
  input: SearchInput,
  filters: QueryFilters & { archived?: string },
): Promise<string[]> {
  const unknownProjectNote =
    filters.project &&
    (await (await import("../unknown-project.ts")).unknownProject(store, filters.project, input.inside))
  const notes = unknownProjectNote === undefined ? [] : [unknownProjectNote]
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
      notes.push(
        `${count} ${total === 1 ? "message matches" : "messages match"} without ${name === "archived" ? "--archived" : `${name}:${value}`}.`,
      )
  }
  return notes
}
