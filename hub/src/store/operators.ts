import { randomBytes } from "node:crypto"
import type { AuditPage } from "./audit.ts"
import type { Database, Query } from "./connection.ts"
import { tokenHash } from "./people.ts"
import { HubProblem } from "./problem.ts"

/** Somebody who runs the hub. They belong to no tenant. `token` is the number of the token that they sent. */
export type Operator = { id: number; name: string; token: number }

const TOKEN_PREFIX = "dexo_"
const CODE_HOURS = 24
const TOKEN_DAYS = 90

/** A code for one token, which is shown once. Only its hash is stored. */
export type OneTimeCode = { code: string; expires_at: string }

/** True if the token looks like an operator's. */
export function isOperatorToken(token: string): boolean {
  return token.startsWith(TOKEN_PREFIX)
}

export async function identifyOperator(db: Database, token: string): Promise<Operator | undefined> {
  const [row] = await db.asOperator(undefined, (query) =>
    query<Operator>("select id, name, token from hub.operator_with($1)", [tokenHash(token)]),
  )
  return row
}

/** Exchanges a code for an operator's token. If several clients send the same code at once, only one of them gets a token. */
export async function redeemOperatorCode(db: Database, code: string): Promise<{ token: string; name: string }> {
  const token = `${TOKEN_PREFIX}${randomBytes(32).toString("base64url")}`
  const [row] = await db.asOperator(undefined, (query) =>
    query<{ name: string | null }>("select hub.redeem_operator_code($1, $2, $3) as name", [
      ...[tokenHash(code), tokenHash(token), TOKEN_DAYS],
    ]),
  )
  if (row!.name === null)
    throw new HubProblem(
      403,
      "code",
      "This code was already used, has expired or is unknown. Ask another operator for a new one, or run `dex-hub init`.",
    )
  return { token, name: row!.name }
}

/** Invites an operator on behalf of another one. */
export async function inviteOperator(query: Query, name: string): Promise<OneTimeCode> {
  return addCode(query, "select hub.operator_code($1, $2, $3)", name)
}

/**
 * Creates the first operator's code. `query` runs as the owner of the tables. If somebody can log in already, returns their names
 * instead, unless `isLockedOut`: then the tokens of all operators end.
 */
export async function firstOperator(
  query: Query,
  name: string,
  isLockedOut: boolean,
): Promise<OneTimeCode | { operators: string[] }> {
  const operators = (await query<{ name: string }>(SELECT_ABLE)).map((row) => row.name)
  if (operators.length > 0 && !isLockedOut) return { operators }
  if (isLockedOut) {
    await query("update hub.operator_token set revoked_at = now() where revoked_at is null")
    await query("update hub.operator_code set used_at = now() where used_at is null")
    await query("insert into hub.operator_audit (action, target) values ('locked_out', $1)", [name])
  }
  return addCode(query, "select hub.add_operator_code($1, $2, $3)", name)
}

async function addCode(query: Query, statement: string, name: string): Promise<OneTimeCode> {
  const code = `dexc_${randomBytes(32).toString("base64url")}`
  await query(statement, [name, tokenHash(code), CODE_HOURS])
  return { code, expires_at: new Date(Date.now() + CODE_HOURS * 3_600_000).toISOString() }
}

export async function removeOperator(query: Query, name: string): Promise<void> {
  const [row] = await query<{ outcome: "unknown" | "last" | "ended" }>("select hub.operator_end($1) as outcome", [name])
  if (row!.outcome === "unknown") throw new HubProblem(404, "not_found", `There is no operator ${name}.`)
  if (row!.outcome === "last")
    throw new HubProblem(409, "last_operator", `Nobody but ${name} could log in. Add another operator first.`)
}

export async function operators(query: Query) {
  const rows = await query<Record<"name", string> & Record<"created_at", Date> & Record<OperatorTime, Date | null>>(
    SELECT_OPERATORS,
  )
  return rows.map(({ name, created_at, disabled_at, last_used_at, expires_at }) => ({
    name,
    created_at: created_at.toISOString(),
    disabled_at: disabled_at?.toISOString(),
    last_used_at: last_used_at?.toISOString(),
    expires_at: expires_at?.toISOString(),
  }))
}
type OperatorTime = "disabled_at" | "last_used_at" | "expires_at"

/** The log of operators, oldest line first. `after` is the `next` of an earlier page. */
export async function operatorAudit(query: Query, { after, limit }: { after: number; limit: AuditPage["limit"] }) {
  const rows = await query<OperatorLine>(SELECT_AUDIT, [after, limit])
  const lines = rows.map(({ at, operator, tenant, target, action, detail }) => ({
    ...{ at: at.toISOString(), action, detail },
    operator: operator ?? undefined,
    tenant: tenant ?? undefined,
    target: target ?? undefined,
  }))
  return { lines, next: rows.length === limit ? String(rows.at(-1)!.id) : undefined }
}
type OperatorLine = Record<"operator" | "tenant" | "target", string | null> & {
  id: number
  at: Date
  action: string
  detail: Record<string, unknown>
}

const SELECT_ABLE = `select distinct o.name from hub.operator o join hub.operator_token t on t.operator = o.id
  where o.disabled_at is null and t.revoked_at is null and t.expires_at > now() order by o.name`
const SELECT_OPERATORS = `select o.name, o.created_at, o.disabled_at, max(t.last_used_at) as last_used_at,
    max(t.expires_at) filter (where t.revoked_at is null) as expires_at
  from hub.operator o left join hub.operator_token t on t.operator = o.id group by o.id, o.name, o.created_at, o.disabled_at order by o.name`
const SELECT_AUDIT = `select id, at, operator, action, tenant, target, detail from hub.operator_audit where id > $1 order by id limit $2`
