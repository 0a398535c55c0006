import type { SourceId } from "../core/conversation.ts"
import { grouped } from "../core/format.ts"
import { search } from "../search/search.ts"
import type { Dex } from "./context.ts"
import { conversationOf, dateRange } from "./fields.ts"
import { resolveSession } from "./resolve.ts"

export type SearchToolInput = {
  query: string
  project?: string
  source?: SourceId
  from?: string
  to?: string
  file?: string
  model?: string
  session?: string
  limit: number
  offset: number
}

/** On a machine where nothing was ever read, the first search reads the newest conversations for this long. */
const FIRST_READ_MS = 3_500
const STALE_MS = 3 * 86_400_000

export async function run(dex: Dex, input: SearchToolInput) {
  const first = !dex.hasHistory()
  if (first) {
    const { syncWithThreads } = await import("../ingest/sync-thread.ts")
    await syncWithThreads(await dex.syncDeps(), dex.home.index, {
      deadline: Date.now() + FIRST_READ_MS,
      ...(dex.onProgress && { onProgress: dex.onProgress }),
    })
  }
  const store = await dex.store()
  const conversation = await resolveSession(dex, input.session)
  const outcome = await search(store, await dex.index(), {
    query: input.query,
    ...(input.project !== undefined && { project: input.project }),
    ...(input.source !== undefined && { sources: [input.source] }),
    ...dateRange(input, dex.now()),
    ...(input.file !== undefined && { file: input.file }),
    ...(input.model !== undefined && { model: input.model }),
    ...(conversation && { conversation }),
    inside: dex.project,
    limit: input.limit,
    offset: input.offset,
  })
  const notes: string[] = []
  const progress = await store.progress()
  if (progress && progress.done < progress.total) {
    notes.push(
      `${count(progress.done)} of ${count(progress.total)} conversations read so far. \`dex sync\` reads the rest.`,
    )
  } else if (progress && dex.now() - progress.at > STALE_MS) {
    notes.push(
      `Last synced ${Math.floor((dex.now() - progress.at) / 86_400_000)} days ago. \`dex sync\` reads what is new.`,
    )
  }
  if (outcome.mode === "scan" && outcome.scanned) {
    notes.push(
      `There is no index yet: ${count(outcome.scanned.conversations)} of ${count(outcome.scanned.of)} conversations were read one by one. \`dex sync\` builds it.`,
    )
  } else if (!outcome.index_is_current)
    notes.push("The index is catching up: the newest messages may be missing. `dex sync` completes it.")
  if (outcome.matched === "some" && outcome.hits.length > 0)
    notes.push("No message holds all of these words; these hold some of them.")
  if (outcome.hidden_private > 0) notes.push(`${count(outcome.hidden_private)} hits in private projects, not shown.`)
  return {
    results: outcome.hits.map((hit) => ({
      ...conversationOf(hit.row),
      snippet: hit.snippet,
      message_index: hit.number,
      more_matches: hit.more,
    })),
    total: outcome.total,
    ...(outcome.total_is_at_least && { total_is_at_least: true }),
    matched: outcome.matched,
    mode: outcome.mode,
    notes,
  }
}

function count(n: number): string {
  return grouped(n)
}
