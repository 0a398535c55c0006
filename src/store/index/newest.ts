import { type Ref, refFrom } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { rowQuery, tupleQuery } from "../sqlite/typed-query.ts"
import { indexDamage } from "./blocks.ts"
import { CARD_TAG, roleTag } from "./fields.ts"
import { BOUNDS_SQL, type IndexFilter, prepareFilter, TEXT_FILTER } from "./query.ts"
import { anyOf, type Term } from "./terms.ts"
import { checkDocs } from "./twins.ts"

// Finds the newest conversations that contain all terms, for search as you type: nothing is scored, and reading stops as soon as
// there are enough results. Unlike a search, it does not check the blocks of words, because that would take longer than the rest.

export type NewestQuery = Omit<IndexFilter, "match" | "required" | "newest"> & {
  /** At least one term of each list must match. */
  all: Term[][]
  /** Searches only what people wrote themselves, and the titles of conversations. */
  inPrompts?: true
  /** The number of conversations to return. */
  limit: number
}

/** A conversation and its newest matching message; the number 0 is its card. */
export type NewestHit = { ref: Ref; number: number }

/** The maximum number of messages to read. If many of them are in the same conversations, the result may be incomplete. */
const MAX_MESSAGES_READ = 20_000

export function findNewest(db: Db, { all, inPrompts, limit, ...filter }: NewestQuery): NewestHit[] {
  const prepared = prepareFilter(db, filter)
  if (!prepared || all.length === 0) return []
  const column = inPrompts ? "said" : TEXT_FILTER
  const mustMatch = [
    ...all.map((terms) => `${column} : (${anyOf(terms)})`),
    ...(inPrompts ? [PROMPT_FILTER] : []),
    ...(prepared.match === undefined ? [] : [`(${prepared.match})`]),
  ].join(" AND ")
  const match = prepared.not === undefined ? mustMatch : `(${mustMatch}) NOT (${prepared.not})`
  const hits = new Map<number, { doc: number; number: number }>()
  const rows = tupleQuery(db, SELECT_NEWEST, ["integer", "integer", "integer"])
  for (const [doc, conversation, number] of rows.iterate({
    match,
    ...NO_HIGHEST_ID,
    ...prepared.values,
    most: MAX_MESSAGES_READ,
  })) {
    if (!hits.has(conversation)) hits.set(conversation, { doc, number })
    if (hits.size === limit) break
  }
  checkDocs(
    db,
    [...hits.values()].map(({ doc }) => doc),
  )
  return [...hits].map(([conversation, { number }]) => ({ ref: refOf(db, conversation), number }))
}

/** Matches people's messages and the cards of conversations. */
export const PROMPT_FILTER = `tags : (${anyOf([{ words: roleTag("user") }, { words: CARD_TAG }])})`
const NO_HIGHEST_ID = { highest: Number.MAX_SAFE_INTEGER }
const SELECT_NEWEST = `select d.id, d.conversation_id, d.number from words join doc d on d.id = words.rowid
  where words match @match and ${BOUNDS_SQL} order by words.rowid limit @most`

function refOf(db: Db, conversation: number): Ref {
  const row = rowQuery(db, "select source, native_id from conversation where id = ?", {
    source: "text",
    native_id: "text",
  }).get(conversation)
  if (!row) throw indexDamage("a row is missing")
  return refFrom(row.source, row.native_id)
}
