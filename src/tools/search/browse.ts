import { LISTED_KINDS } from "../../core/conversation.ts"
import type { Ref } from "../../core/ref.ts"
import type { QueryFilters } from "../../search/query.ts"
import { intersectRefs } from "../../search/scope.ts"
import type { HistoryReader } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { conversationOf, dateRange } from "../fields.ts"
import { describeOtherKinds } from "../kinds.ts"

/** The filters that a listing supports. The others are about single messages, which only a search finds. */
const LISTING_FILTERS: readonly string[] = ["project", "source", "file", "from", "to", "model", "tag"]

const MAX_FILES = 3

/** Returns true if no words are needed to search with these filters, because a listing supports all of them. */
export function canBrowse(filters: QueryFilters, archived: boolean | undefined): boolean {
  const names = Object.keys(filters)
  return (names.length > 0 || archived === true) && names.every((name) => LISTING_FILTERS.includes(name))
}

/** A search without words: the conversations that match the filters, newest first, as `dex list` shows them. */
export async function browse(
  dex: Dex,
  filters: QueryFilters,
  { archived, limit, offset }: { archived?: boolean; limit: number; offset: number },
) {
  const store = await dex.store()
  const { project, source, file, model, tag, from, to } = filters
  const refSets = [
    ...(file === undefined ? [] : [await store.touching(file)]),
    ...(model === undefined ? [] : [await store.usingModel(model)]),
    ...(tag === undefined ? [] : [await store.tagged(tag)]),
    ...(archived ? [await store.keptOnlyHere()] : []),
  ]
  const { rows, total, left_out } = await store.list({
    project,
    source,
    ...dateRange({ from, to }, dex.now()),
    among: refSets.length > 0 ? intersectRefs(refSets) : undefined,
    kinds: LISTED_KINDS,
    inside: dex.project,
    limit,
    offset,
  })
  const results = []
  for (const row of rows)
    results.push({
      ...conversationOf(row),
      snippet: file === undefined ? "" : await touchedFilesText(store, row.ref, file),
      message_index: 1,
      more_matches: 0,
      score_final: 0,
    })
  const others = describeOtherKinds(left_out)
  const notes = others === "" ? [] : [`Not shown: ${others}. \`dex list --all\` with the same filters shows them.`]
  return { results, total, notes }
}

async function touchedFilesText(store: HistoryReader, ref: Ref, file: string): Promise<string> {
  const pathPart = file.toLowerCase().replaceAll("\\", "/")
  const files = (await store.filesOf(ref)).filter((path) => path.toLowerCase().includes(pathPart))
  const moreText = files.length > MAX_FILES ? ` and ${files.length - MAX_FILES} more` : ""
  return files.length === 0 ? "" : `Touched ${files.slice(0, MAX_FILES).join(", ")}${moreText}`
}
