import { PERSONS_KINDS } from "../../core/conversation.ts"
import { DAY_MS, isoDate } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

export type RowQuery = { text: string; filter: PickerFilter; limit: number }
export type FoundRows = { rows: PickerRow[]; hasMore: boolean; note: string }

/** The newest conversations, as `dex list` has them; with words, those whose titles contain every one. */
export async function rowsAsTyped(dex: Dex, { text, filter, limit }: RowQuery): Promise<FoundRows> {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  const { rows, total } = await (await dex.store()).list({
    ...(filter.source !== undefined && { source: filter.source }),
    ...(filter.here && { in_project: dex.project }),
    ...(filter.days !== undefined && { from: dex.now() - filter.days * DAY_MS }),
    kinds: PERSONS_KINDS,
    inside: dex.project,
    limit: words.length === 0 ? limit : MOST_TITLES,
    offset: 0,
  })
  const found = rows.filter(({ title }) => words.every((word) => title?.text.toLowerCase().includes(word)))
  return { rows: found.slice(0, limit).map(rowOf), hasMore: total > rows.length || found.length > limit, note: "" }
}

const MOST_TITLES = 1_000

function rowOf({ ref, title, ended_at, project }: ConversationRow): PickerRow {
  return {
    ref: formatRef(ref),
    title: title?.text ?? "(no title)",
    time: ended_at === undefined ? "" : isoDate(ended_at),
    source: ref.source,
    project: project ?? "",
  }
}
