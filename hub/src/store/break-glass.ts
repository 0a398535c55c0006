import { formatRef, parseCompleteRef } from "../../../src/core/ref.ts"
import type { WireNotice } from "../../../src/hub-client/wire.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"
import { NOTICE_SCOPE } from "./scope.ts"

const MAX_HOURS = 24
const MAX_REASON_LENGTH = 500
const CONTROL_CHARACTER = /[\p{Cc}\p{Cf}]/u

/** Lets an admin read one conversation for a few hours. The audit log records it, and the author is notified. */
export async function breakGlass(
  db: Database,
  viewer: Viewer,
  request: { ref?: unknown; reason?: unknown; hours?: unknown },
): Promise<{ ref: string; until: string }> {
  if (viewer.role !== "admin")
    throw new HubProblem(403, "forbidden", "Only an admin can break the glass. Ask an admin of your team.")
  const { ref, reason, hours } = checkRequest(request)
  const rows = await db.asIndex(viewer.tenant, (query) =>
    query<{ id: number; author: number }>(SELECT_CONVERSATION, [viewer.tenant, ref.owner, ref.source, ref.id]),
  )
  const name = formatRef(ref)
  if (!rows[0]) throw new HubProblem(404, "not_found", `There is no conversation ${name} here.`)
  const { id, author } = rows[0]
  return db.as(viewer, async (query) => {
    const [row] = await query<{ until: Date }>(INSERT_BREAK_GLASS, [
      ...[viewer.tenant, id, viewer.member, author, name, reason, hours],
    ])
    await recordAudit(query, viewer, { action: "break_glass", target: name, detail: { reason, hours } })
    return { ref: name, until: row!.until.toISOString() }
  })
}

/** Notices about admins who broke the glass for the member's conversations in the last three months, newest first. */
export async function noticesFor(db: Database, viewer: Viewer): Promise<WireNotice[]> {
  const rows = await db.as(viewer, (query) =>
    query<{ by: string; ref: string; reason: string; at: Date; until: Date }>(SELECT_NOTICES),
  )
  return rows.map(({ at, until, ...row }) => ({
    type: "break_glass",
    ...row,
    at: at.toISOString(),
    until: until.toISOString(),
  }))
}

function checkRequest({ ref, reason, hours = 1 }: { ref?: unknown; reason?: unknown; hours?: unknown }) {
  const parsedRef = typeof ref === "string" ? parseCompleteRef(ref) : undefined
  if (parsedRef?.owner === undefined)
    throw new HubProblem(400, "invalid", "Give a conversation with its owner: ann/claude_code:1f3c…")
  if (
    typeof reason !== "string" ||
    reason.trim() === "" ||
    reason.length > MAX_REASON_LENGTH ||
    CONTROL_CHARACTER.test(reason)
  )
    throw new HubProblem(400, "invalid", `Give a reason, in one line of up to ${MAX_REASON_LENGTH} characters.`)
  if (!Number.isInteger(hours) || (hours as number) < 1 || (hours as number) > MAX_HOURS)
    throw new HubProblem(400, "invalid", `hours must be a number from 1 to ${MAX_HOURS}.`)
  const { owner, source, id } = parsedRef
  return { ref: { owner, source, id }, reason: reason.trim(), hours: hours as number }
}

const SELECT_CONVERSATION = `select c.id, c.author from hub.conversation c join hub.member m on m.tenant = c.tenant and m.id = c.author
  where c.tenant = $1 and m.name = $2 and c.source = $3 and c.native_id = $4`
const INSERT_BREAK_GLASS = `insert into hub.break_glass (tenant, conversation, member, author, ref, reason, until)
  values ($1, $2, $3, $4, $5, $6, now() + make_interval(hours => $7)) returning until`
const SELECT_NOTICES = `select m.name as by, b.ref, b.reason, b.at, b.until from hub.break_glass b
  join hub.member m on m.tenant = b.tenant and m.id = b.member
  where ${NOTICE_SCOPE} and b.at > now() - interval '90 days' order by b.at desc limit 20`
