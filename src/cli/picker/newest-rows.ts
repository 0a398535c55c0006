import { LISTED_KINDS } from "../../core/conversation.ts"
import { DAY_MS, isoDate } from "../../core/dates.ts"
import { isSamePath } from "../../core/path-key.ts"
import { formatRef } from "../../core/ref.ts"
import { pathBelow } from "../../learn/paths.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../../tools/context.ts"
import type { PickerFilter, PickerRow } from "./state.ts"

export type FoundRows = { rows: PickerRow[]; hasMore: boolean; note: string }

/** The newest conversations, in the order of `dex list`. */
export async function newestRows(dex: Dex, filter: PickerFilter, limit: number): Promise<FoundRows> {
  const isFolder = filter.scope === "folder"
  const { rows: listed, total } = await (await dex.store()).list({
    source: filter.source,
    in_project: filter.scope === "all" ? undefined : dex.project,
    from: filter.days === undefined ? undefined : dex.now() - filter.days * DAY_MS,
    kinds: LISTED_KINDS,
    inside: dex.project,
    limit: isFolder ? MAX_ROWS_OF_PROJECT : limit,
    offset: 0,
  })
  const isHere = (cwd: string) => isSamePath(cwd, dex.cwd) || pathBelow(dex.cwd, cwd) !== undefined
  const rows = isFolder ? listed.filter(({ cwds }) => cwds.some(isHere)) : listed
  return { rows: rows.slice(0, limit).map(rowOf), hasMore: (isFolder ? rows.length : total) > limit, note: "" }
}

/** The conversations of the current project in which the rows of this folder are looked for. */
const MAX_ROWS_OF_PROJECT = 10_000

function rowOf({ ref, title, tags, ended_at, project }: ConversationRow): PickerRow {
  return {
    ref: formatRef(ref),
    title: title?.text ?? "(no title)",
    time: ended_at === undefined ? "" : isoDate(ended_at),
    source: ref.source,
    project: project ?? "",
    tags,
  }
}
