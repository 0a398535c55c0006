import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"
import { MESSAGE_FLAGS } from "./flags.ts"

type NumberedRef = Ref & { number: number }
type Anchor = RowOf<typeof ANCHOR_ROW>
const ANCHOR_ROW = { id: "integer", project_id: "integer?", number: "integer", at: "integer?" } as const
/** One end of a conversation's time span (`edge`): the later one in a search for earlier messages, otherwise the earlier one. */
const SPAN_ROW = { id: "integer", source: "text", native_id: "text", edge: "integer?" } as const
type NearbyMessage = NumberedRef & { at: number; conversation: number }

const SELECT_SPANS_BEFORE = `select id, source, native_id, ended_at as edge from conversation
  where (project_id = @project_id or id = @id) and ifnull(started_at, @at) <= @at order by ended_at desc nulls first`
const SELECT_SPANS_AFTER = `select id, source, native_id, started_at as edge from conversation
  where (project_id = @project_id or id = @id) and ifnull(ended_at, @at) >= @at order by started_at nulls first`
// Messages with the same time are sorted by the conversation's row id, then by number.
const SELECT_BEFORE = `select number, at from message where conversation_id = @of and not flags & @uncounted
  and (at < @at or (at = @at and (conversation_id, number) < (@id, @number))) order by at desc, number desc limit @most`
const SELECT_AFTER = `select number, at from message where conversation_id = @of and not flags & @uncounted
  and (at > @at or (at = @at and (conversation_id, number) > (@id, @number))) order by at, number limit @most`

/** Returns one message, together with the messages just before and after it in its project, in order of time. */
export function messagesAround(db: Db, ref: NumberedRef, before: number, after: number): NumberedRef[] {
  const anchor = rowQuery(
    db,
    `select c.id, c.project_id, m.number, m.at from conversation c join message m on m.conversation_id = c.id
       where c.source = ? and c.native_id = ? and m.number = ?`,
    ANCHOR_ROW,
  ).get(sourceWithOwner(ref), ref.id, ref.number)
  if (anchor === undefined) return []
  if (anchor.at === null) return [ref]
  const earlier = nearestMessages(db, anchor, before, {
    spans: SELECT_SPANS_BEFORE,
    messages: SELECT_BEFORE,
    direction: -1,
  })
  const later = nearestMessages(db, anchor, after, { spans: SELECT_SPANS_AFTER, messages: SELECT_AFTER, direction: 1 })
  return [...earlier.reverse(), ref, ...later].map(({ source, id, number }) => ({ source, id, number }))
}

/** Returns messages, nearest first. Opens a conversation only if it may contain a message nearer than those already found. */
function nearestMessages(
  db: Db,
  anchor: Anchor,
  limit: number,
  search: { spans: string; messages: string; direction: 1 | -1 },
): NearbyMessage[] {
  if (limit === 0) return []
  const { id, number, at, project_id } = anchor
  const selectMessages = rowQuery(db, search.messages, { number: "integer", at: "integer" })
  const uncounted = MESSAGE_FLAGS.superseded | MESSAGE_FLAGS.copied
  const compare = (a: NearbyMessage, b: NearbyMessage) =>
    search.direction * (a.at - b.at || a.conversation - b.conversation || a.number - b.number)
  let nearestSoFar: NearbyMessage[] = []
  for (const span of rowQuery(db, search.spans, SPAN_ROW).all({ id, project_id, at })) {
    const farthest = nearestSoFar.length === limit ? nearestSoFar.at(-1)! : undefined
    if (farthest && span.edge !== null && search.direction * (span.edge - farthest.at) > 0) break
    const rows = selectMessages.all({ of: span.id, id, number, at, most: limit, uncounted })
    const found = rows.map((row) => ({ ...row, source: span.source, id: span.native_id, conversation: span.id }))
    nearestSoFar = [...nearestSoFar, ...found].sort(compare).slice(0, limit)
  }
  return nearestSoFar
}
