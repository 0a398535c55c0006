import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { many } from "../../render/words.ts"
import { isOneTerm, parseQuery } from "../../search/query.ts"
import type { Dex } from "../../tools/context.ts"
import { otherKinds } from "../../tools/kinds.ts"
import { list } from "../../tools/list/list.ts"
import { search } from "../../tools/search/search.ts"
import { askTool } from "../page.ts"
import { type FindQuestion, hasTerms } from "./asked.ts"
import type { ResultRow } from "./rows.ts"

/** How many rows are one page. */
export const ROWS_AT_ONCE = 20

export type Found = {
  rows: readonly ResultRow[]
  /** How many of how many, and in which order. */
  says: string
  notes: readonly string[]
  /** Whether there may be rows after these. */
  hasMore: boolean
}

/** What the tools answer: without a question the newest conversations, else what the search finds. */
export async function findRows(dex: Dex, asked: FindQuestion): Promise<Found> {
  const { words, narrowed, offset } = asked
  const limit = ROWS_AT_ONCE
  const isOpen = words === "" && Object.keys(narrowed).every((name) => name === "in")
  if (isOpen && narrowed.in === "docs") return collections(dex)
  if (isOpen) return newest(await askTool(dex, list, { limit, offset }), offset)
  if (!hasTerms(asked) && narrowed.tool !== undefined)
    return nothing(["A tool is used in messages, and messages are found by words: type some as well."])
  const { in: where, ...filters } = narrowed
  const among: { in?: "history" | "docs" } = where === "history" || where === "docs" ? { in: where } : {}
  const query = words === "" ? {} : { query: words }
  const output = await askTool(dex, search, { ...query, ...filters, ...among, explain: true, limit, offset })
  return searched(output, asked)
}

function nothing(notes: string[]): Found {
  return { rows: [], says: "", notes, hasMore: false }
}

function newest({ conversations, total, left_out, note }: OutputOf<typeof list>, offset: number): Found {
  const others = otherKinds(left_out)
  return {
    rows: conversations,
    says: range(conversations.length, offset, total),
    notes: [...(note === undefined ? [] : [note]), ...(others === "" ? [] : [`Not shown: ${others}.`])],
    hasMore: offset + conversations.length < total,
  }
}

function searched(output: OutputOf<typeof search>, { words, offset }: FindQuestion): Found {
  const { results, total, total_is_at_least, conversations, kinds = {}, degraded = [] } = output
  const notes = [...output.notes, ...degraded]
  const shown = results.length
  if (output.mode === "list")
    return { rows: results, says: range(shown, offset, total), notes, hasMore: offset + shown < total }
  // Of several words, the count is of messages with any of them, which nobody asked for.
  const isCounted = isOneTerm(parseQuery(words)) && !total_is_at_least && conversations !== undefined
  // With subagents or other kinds among what was counted, the number of rows is another one.
  const isAll = isCounted && conversations >= offset + shown && Object.keys(kinds).length === 1
  const rows = offset === 0 ? many(shown, "result") : `Results ${grouped(offset + 1)} to ${grouped(offset + shown)}`
  return {
    rows: results,
    says: shown === 0 ? "" : isAll ? range(shown, offset, conversations, "best") : `${rows}, best first`,
    notes,
    hasMore: shown === ROWS_AT_ONCE && !(isAll && offset + shown >= conversations),
  }
}

function range(shown: number, offset: number, total: number, order = "newest"): string {
  if (shown === 0) return ""
  const all = many(total, "conversation")
  const part = shown === total ? all : `${grouped(offset + 1)} to ${grouped(offset + shown)} of ${all}`
  return `${part}, ${order} first`
}

/** Documents have no date to list them by. */
async function collections(dex: Dex): Promise<Found> {
  const { collections = [] } = await askTool(dex, list, { in: "docs" })
  if (collections.length === 0) return nothing(["There are no documents yet: `dex docs add <folder>` adds some."])
  const names = collections.map(({ name }) => name).join(", ")
  return nothing([`Type words to search these documents: ${names}.`])
}
