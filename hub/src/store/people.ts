import { createHash, randomBytes } from "node:crypto"
import type { Query } from "./connection.ts"
import type { Keyring } from "./keyring.ts"

// What an operator does, as the tables' owner: tenants, members, tokens. What members do themselves is in other files.

export async function addTenant(query: Query, keys: Keyring, slug: string): Promise<number> {
  const [row] = await query<{ id: number }>("insert into hub.tenant (slug, wrapped_key) values ($1, $2) returning id", [
    slug,
    keys.newTenantKey(slug),
  ])
  await query("insert into hub.feed (tenant) values ($1)", [row!.id])
  return row!.id
}

export async function addMember(
  query: Query,
  member: { tenant: number; name: string; role: string; email?: string; subject?: string },
): Promise<number> {
  const [row] = await query<{ id: number }>(
    "insert into hub.member (tenant, name, role, email, subject) values ($1, $2, $3, $4, $5) returning id",
    [member.tenant, member.name, member.role, member.email ?? null, member.subject ?? null],
  )
  return row!.id
}

export const SCOPES = ["push", "read", "admin"] as const
export type Scope = (typeof SCOPES)[number]

/** The token itself is shown once: only its hash is kept. */
export async function addToken(
  query: Query,
  token: { tenant: number; member: number; kind: string; scopes: Scope[]; name: string; expires_at?: Date },
): Promise<string> {
  const text = `dexh_${randomBytes(32).toString("base64url")}`
  await query(
    "insert into hub.token (hash, tenant, member, kind, scopes, name, expires_at) values ($1, $2, $3, $4, $5, $6, $7)",
    [tokenHash(text), token.tenant, token.member, token.kind, token.scopes, token.name, token.expires_at ?? null],
  )
  return text
}

export function tokenHash(token: string): Buffer {
  return createHash("sha256").update(token).digest()
}
