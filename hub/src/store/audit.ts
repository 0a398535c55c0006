import type { Database, Query, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"
import { AUDIT_SCOPE, MEMBER } from "./scope.ts"

// The audit log shows auditors who did what. It contains no questions and no message text. Lines are only added, never changed.

export type AuditAction =
  | "read"
  | "forget"
  | "retention"
  | "grant"
  | "grant_end"
  | "request"
  | "approve"
  | "deny"
  | "rule"
  | "role"
  | "group_grant"
  | "group_role"
  | "identity_provider"
  | "consent"
  | "consent_end"
  | "login"
  | "token_add"
  | "token_revoke"
  | "invite"
  | "member_add"
  | "member_disable"
  | "member_export"
  | "break_glass"
  | "quota"
  | "keep"
  | "tenant_add"
  | "tenant_delete"
  | "tenant_keep"
  | "search"
  | "disk_gone"

/** `about` is the member who was affected. */
export type AuditEntry = { action: AuditAction; target?: string; about?: number; detail?: object }

/**
 * Runs in the same transaction as the action. If `member` is absent, the transaction's viewer acts, or else an operator or the hub
 * itself.
 */
export async function recordAudit(
  query: Query,
  { tenant, member }: { tenant: number; member?: number },
  { action, target, about, detail = {} }: AuditEntry,
): Promise<void> {
  await query(INSERT_ENTRY, [tenant, member ?? null, action, target ?? null, about ?? null, JSON.stringify(detail)])
}

/** `member` is null if the operator or the hub itself acted. */
export type StoredAuditEntry = { at: string; member: string | null; action: string; target?: string; detail: object }

/** `before` is the `next` of an earlier page. If absent, the page starts with the newest line. */
export type AuditPage = { before?: string; limit: number }

/** A page of the audit log, newest line first. */
export async function auditLines(
  db: Database,
  viewer: Viewer,
  { before, limit }: AuditPage,
): Promise<{ lines: StoredAuditEntry[]; next?: string }> {
  const [at, id] = placeIn(before)
  const rows = await db.as(viewer, (query) => query<AuditRow>(SELECT_PAGE, [at, id, limit]))
  const last = rows.length === limit ? rows.at(-1) : undefined
  return { lines: rows.map(entryOf), next: last && `${last.micros}-${last.id}` }
}

/** The lines of one tenant, or of one of its members, oldest first, for the operator. */
export async function auditForOperator(
  query: Query,
  { tenant, member, limit }: { tenant: number; member?: number; limit?: number },
): Promise<StoredAuditEntry[]> {
  return (await query<AuditRow>(SELECT_OF_TENANT, [tenant, member ?? null, limit ?? null])).map(entryOf).reverse()
}

/**
 * A page of the tenant's audit log in the order in which lines were committed. `after` is the `next` of an earlier page. A line
 * appears once everything that began before it has ended, so that no line is ever added before a page that was read.
 */
export async function auditAfter(query: Query, { after, limit }: { after: string | undefined; limit: number }) {
  const [, xact, lastId] = /^(\d{1,19})-(\d{1,15})$/.exec(after ?? "0-0") ?? []
  const [now] = await query<{ is_known: boolean }>(SELECT_IF_KNOWN, [xact ?? "0"])
  if (xact === undefined || !now!.is_known)
    throw new HubProblem(400, "invalid", "`after` is not from this log. Begin without it.")
  const rows = await query<
    AuditRow & { place: string } & Record<"operator" | "address", string | null> & Record<"token", number | null>
  >(SELECT_AFTER, [xact, lastId, limit])
  const lines = rows.map(({ id, operator, address, token, place: _, ...row }) => ({
    ...entryOf(row),
    id,
    member: row.member ?? undefined,
    operator: operator ?? undefined,
    address: address ?? undefined,
    token: token ?? undefined,
  }))
  return { lines, next: rows.at(-1)?.place ?? after }
}

/** Parses the `next` of a page. Returns nulls for anything else, with which the newest page is read. */
function placeIn(before: string | undefined): [number | null, number | null] {
  const [, micros, id] = /^(\d{1,17})-(\d{1,15})$/.exec(before ?? "") ?? []
  return micros === undefined ? [null, null] : [Number(micros), Number(id)]
}

type AuditRow = {
  id: number
  micros: number
  member: string | null
  action: string
  target: string | null
  detail: Record<string, unknown>
}

function entryOf({ micros, member, action, target, detail }: Omit<AuditRow, "id">) {
  return {
    at: new Date(Number(micros) / 1_000).toISOString(),
    member,
    action,
    target: target ?? undefined,
    detail,
  }
}

const INSERT_ENTRY = `insert into hub.audit (tenant, member, action, target, detail) values ($1, coalesce($2, ${MEMBER}), $3, $4, jsonb_strip_nulls(
  jsonb_build_object('about', (select name from hub.member where tenant = $1 and id = $5::int)) || $6::jsonb))`
const MICROS = "(extract(epoch from a.at) * 1000000)::bigint"
const COLUMNS = `a.id, ${MICROS} as micros, m.name as member, a.action, a.target, a.detail`
const FROM = "hub.audit a left join hub.member m on m.tenant = a.tenant and m.id = a.member"
const SELECT_PAGE = `select ${COLUMNS} from ${FROM} where ${AUDIT_SCOPE}
  and ($1::bigint is null or (a.at, a.id) < (timestamptz 'epoch' + $1 * interval '1 microsecond', $2)) order by a.at desc, a.id desc limit $3`
const XACT = "coalesce(a.xact, '0'::xid8)"
const SELECT_IF_KNOWN = "select $1::xid8 < pg_snapshot_xmax(pg_current_snapshot()) as is_known"
const SELECT_AFTER = `select ${COLUMNS}, a.operator, a.token, a.address, concat(${XACT}, '-', a.id) as place from ${FROM}
  where ${AUDIT_SCOPE} and (${XACT}, a.id) > ($1::xid8, $2::bigint) and ${XACT} < pg_snapshot_xmin(pg_current_snapshot())
  order by ${XACT}, a.id limit $3`
const SELECT_OF_TENANT = `select ${COLUMNS} from ${FROM} where a.tenant = $1 and ($2::int is null or a.member = $2)
  order by a.at desc, a.id desc limit $3`
