import { type Ref, sourceWithOwner } from "../../core/ref.ts"
import type { Db } from "../sqlite/database.ts"
import { type RowOf, rowQuery } from "../sqlite/typed-query.ts"
import { MESSAGE_FLAGS } from "./flags.ts"

type NumberedRef = Ref & { number: number }
type Anchor = RowOf<typeof ANCHOR>
const ANCHOR = { id: "integer", project_id: "integer?", number: "integer", at: "integer?" } as const
/** `edge` is the end of a conversation that is searched for earlier messages, or the start of one that is searched for later ones. */
const SPAN = { id: "integer", source: "text", native_id: "text", edge: "integer?" } as const
type NearbyMessage = NumberedRef & { at: number; conversation: number }

const SPANS_BEFORE = `select id, source, native_id, ended_at as edge from conversation
  where (project_id = @project_id or id = @id) and ifnull(started_at, @at) <= @at order by ended_at desc nulls first`
const SPANS_AFTER = `select id, source, native_id, started_at as edge from conversation
  where (project_id = @project_id or id = @id) and ifnull(ended_at, @at) >= @at order by started_at nulls first`
// If messages have the same time, those of the older conversation come first.
const BEFORE = `select number, at from message where conversation_id = @of and not flags & @uncounted
  and (at < @at or (at = @at and (conversation_id, number) < (@id, @number))) order by at desc, number desc limit @most`
const AFTER = `select number, at from message where conversation_id = @of and not flags & @uncounted
  and (at > @at or (at = @at and (conversation_id, number) > (@id, @number))) order by at, number limit @most`

/** Returns the messages of a project's conversations just before and after one message, in order of time. */
export function messagesAround(db: Db, ref: NumberedRef, before: number, after: number): NumberedRef[] {
  const anchor = rowQuery(
    db,
    `select c.id, c.project_id, m.number, m.at from conversation c join message m on m.conversation_id = c.id
       where c.source = ? and c.native_id = ? and m.number = ?`,
    ANCHOR,
  ).get(sourceWithOwner(ref), ref.id, ref.number)
  if (anchor === undefined) return []
  if (anchor.at === null) return [ref]
  const earlier = nearest(db, anchor, before, { spans: SPANS_BEFORE, messages: BEFORE, direction: -1 })
  const later = nearest(db, anchor, after, { spans: SPANS_AFTER, messages: AFTER, direction: 1 })
  return [...earlier.reverse(), ref, ...later].map(({ source, id, number }) => ({ source, id, number }))
}

/** Returns the nearest messages first. Opens a conversation only if it may contain a message nearer than those already found. */
function nearest(
  db: Db,
  anchor: Anchor,
  limit: number,
  side: { spans: string; messages: string; direction: 1 | -1 },
): NearbyMessage[] {
  if (limit === 0) return []
  const { id, number, at, project_id } = anchor
  const messages = rowQuery(db, side.messages, { number: "integer", at: "integer" })
  const uncounted = MESSAGE_FLAGS.superseded | MESSAGE_FLAGS.copied
  const order = (a: NearbyMessage, b: NearbyMessage) =>
    side.direction * (a.at - b.at || a.conversation - b.conversation || a.number - b.number)
  let nearestSoFar: NearbyMessage[] = []
  for (const span of rowQuery(db, side.spans, SPAN).all({ id, project_id, at })) {
    const farthest = nearestSoFar.length === limit ? nearestSoFar.at(-1)! : undefined
    if (farthest && span.edge !== null && side.direction * (span.edge - farthest.at) > 0) break
    const rows = messages.all({ of: span.id, id, number, at, most: limit, uncounted })
    const hits = rows.map((row) => ({ ...row, source: span.source, id: span.native_id, conversation: span.id }))
    nearestSoFar = [...nearestSoFar, ...hits].sort(order).slice(0, limit)
  }
  return nearestSoFar
}
