import { LISTED_KINDS } from "../../core/conversation.ts"
import { DAY_MS, isoDate } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

export type FoundRows = { rows: PickerRow[]; hasMore: boolean; note: string }

/** The newest conversations, in the order of `dex list`. */
export async function newestRows(dex: Dex, filter: PickerFilter, limit: number): Promise<FoundRows> {
  const { rows, total } = await (await dex.store()).list({
    source: filter.source,
    in_project: filter.here ? dex.project : undefined,
    from: filter.days === undefined ? undefined : dex.now() - filter.days * DAY_MS,
    kinds: LISTED_KINDS,
    inside: dex.project,
    limit,
    offset: 0,
  })
  return { rows: rows.map(rowOf), hasMore: total > rows.length, note: "" }
}

function rowOf({ ref, title, ended_at, project }: ConversationRow): PickerRow {
  return {
    ref: formatRef(ref),
    title: title?.text ?? "(no title)",
    time: ended_at === undefined ? "" : isoDate(ended_at),
    source: ref.source,
    project: project ?? "",
  }
}
