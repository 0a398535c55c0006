import { createHash, randomBytes } from "node:crypto"
import { nearestNames } from "../../../src/core/nearest.ts"
import { type Level, setLevel } from "./access.ts"
import { recordAudit } from "./audit.ts"
import type { MemberRole, Query } from "./connection.ts"
import type { Keyring } from "./keyring.ts"
import { HubProblem } from "./problem.ts"

/** Adds a tenant and returns its id. `query` runs as the owner of the tables. */
export async function addTenant(query: Query, keys: Keyring, slug: string): Promise<number> {
  const [row] = await query<{ id: number }>(
    "insert into hub.tenant (slug, wrapped_key) values ($1, $2) on conflict do nothing returning id",
    [slug, keys.newTenantKey(slug)],
  )
  if (!row) throw new Error(`There is already a tenant ${JSON.stringify(slug)}. Choose another name.`)
  await query("insert into hub.feed (tenant) values ($1)", [row.id])
  return row.id
}

export async function addMember(
  query: Query,
  member: { tenant: number; name: string; role: string; email?: string },
): Promise<number> {
  const [row] = await query<{ id: number }>(
    "insert into hub.member (tenant, name, role, email) values ($1, $2, $3, $4) on conflict do nothing returning id",
    [member.tenant, member.name, member.role, member.email ?? null],
  )
  const { tenant, name, role } = member
  if (!row)
    throw new HubProblem(
      409,
      "exists",
      `There is already a member ${name}. \`dex hub admin member invite\` prints another code for them.`,
    )
  await recordAudit(query, { tenant }, { action: "member_add", target: name, detail: { role } })
  return row.id
}

export const SCOPES = ["push", "read", "admin"] as const
export type Scope = (typeof SCOPES)[number]

/** The default scopes of a role's token. Breaking the glass needs the scope `admin`. */
export function defaultScopes(role: string): Scope[] {
  if (role === "admin") return ["push", "read", "admin"]
  return role === "member" ? ["push", "read"] : ["read"]
}

export type NewToken = {
  tenant: number
  member: number
  kind: "personal" | "device" | "service"
  scopes: Scope[]
  name: string
  expires_at?: Date
}

/**
 * Adds a token and returns it. The hub stores only its hash, so it is never shown again. `by` is the member who requested it;
 * absent if the operator did.
 */
export async function addToken(query: Query, token: NewToken, by?: number): Promise<string> {
  const text = newToken()
  await query(
    "insert into hub.token (hash, tenant, member, kind, scopes, name, expires_at) values ($1, $2, $3, $4, $5, $6, $7)",
    [tokenHash(text), token.tenant, token.member, token.kind, token.scopes, token.name, token.expires_at ?? null],
  )
  const { tenant, member, kind, scopes, name } = token
  await recordAudit(
    query,
    { tenant, member: by },
    { action: "token_add", target: name, about: member, detail: { kind, scopes } },
  )
  return text
}

const TOKEN_PREFIX = "dexh_"

export function newToken(): string {
  return `${TOKEN_PREFIX}${randomBytes(32).toString("base64url")}`
}

/** True if the token looks like one that a hub issued, and not like an access token of an identity provider. */
export function isOwnToken(token: string): boolean {
  return token.startsWith(TOKEN_PREFIX)
}

export function tokenHash(token: string): Buffer {
  return createHash("sha256").update(token).digest()
}

export async function tenantNamed(query: Query, slug: string): Promise<number> {
  const [row] = await query<{ id: number }>("select id from hub.tenant where slug = $1", [slug])
  if (!row)
    throw new HubProblem(404, "not_found", `There is no tenant ${slug}. \`dex hub admin tenant list\` lists them.`)
  return row.id
}

export async function memberNamed(
  query: Query,
  tenant: number,
  name: string,
): Promise<{ id: number; role: MemberRole }> {
  const [row] = await query<{ id: number; role: MemberRole }>(
    "select id, role from hub.member where tenant = $1 and name = $2",
    [tenant, name],
  )
  if (!row)
    throw new HubProblem(404, "not_found", `There is no member ${name}. \`dex hub admin member list\` lists them.`)
  return row
}

/** Ends a member's access with their next request. What they shared stays, under their name. */
export async function disableMember(query: Query, tenant: number, name: string): Promise<void> {
  const { id } = await memberNamed(query, tenant, name)
  await query("update hub.member set disabled_at = now() where tenant = $1 and id = $2 and disabled_at is null", [
    tenant,
    id,
  ])
  await recordAudit(query, { tenant }, { action: "member_disable", target: name })
}

/** Finds the member with this name, or adds one. Throws if the member has left. */
export async function memberOrNew(
  query: Query,
  member: { tenant: number; name: string; role: MemberRole; email?: string },
): Promise<{ id: number; role: MemberRole }> {
  const [known] = await query<{ id: number; role: MemberRole; disabled_at: Date | null }>(
    "select id, role, disabled_at from hub.member where tenant = $1 and name = $2",
    [member.tenant, member.name],
  )
  if (known?.disabled_at) throw new HubProblem(409, "left", `${member.name} has left. Choose another name.`)
  return known ?? { id: await addMember(query, member), role: member.role }
}

/** Sets a member's access to a project, which is created if there is none with this key. */
export async function grantProject(
  query: Query,
  { tenant, member, key, level }: { tenant: number; member: number; key: string; level: Level },
): Promise<void> {
  await makeProject(query, tenant, key)
  await changeGrant(query, { tenant, member, key, level })
}

/**
 * Makes a member the owner of a project. Earlier owners keep write access, except those whom a group makes owners, who stay.
 * Returns the names of the owners who were replaced.
 */
export async function giveProject(
  query: Query,
  { tenant, key, member }: { tenant: number; key: string; member: number },
): Promise<string[]> {
  await requireProject(query, tenant, key)
  const owners = await query<{ member: number; name: string }>(SELECT_OTHER_OWNERS, [tenant, key, member])
  for (const owner of owners) await changeGrant(query, { tenant, member: owner.member, key, level: "write" })
  await changeGrant(query, { tenant, member, key, level: "own" })
  return owners.map(({ name }) => name)
}

const SELECT_OTHER_OWNERS = `select g.member, m.name from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member
  join hub.project p on p.tenant = g.tenant and p.id = g.project
  where g.tenant = $1 and p.key = $2 and g.member <> $3 and g.level = 'own' and g.group_level is distinct from 'own' order by m.name`

async function changeGrant(
  query: Query,
  { tenant, member, key, level }: { tenant: number; member: number; key: string; level: Level },
): Promise<void> {
  const [project] = await query<{ id: number }>("select id from hub.project where tenant = $1 and key = $2", [
    tenant,
    key,
  ])
  const outcome = await setLevel(query, { tenant, project: project!.id, member, level })
  if (outcome === "group")
    throw new HubProblem(409, "group", "That access comes from a group. `dex hub admin group revoke` revokes it.")
  if (outcome === "nothing")
    throw new HubProblem(404, "not_found", `This member has no access to ${key}, so there is nothing to revoke.`)
  const detail = level === "none" ? {} : { level }
  await recordAudit(
    query,
    { tenant },
    { action: level === "none" ? "grant_end" : "grant", target: key, about: member, detail },
  )
}

/** Throws if there is no project with this key, and suggests the most similar ones, because an operator may see all. */
export async function requireProject(query: Query, tenant: number, key: string): Promise<void> {
  const rows = await query<{ key: string }>("select key from hub.project where tenant = $1", [tenant])
  const keys = rows.map((row) => row.key)
  if (keys.includes(key)) return
  const [tenantRow] = await query<{ slug: string }>("select slug from hub.tenant where id = $1", [tenant])
  const suggestions = nearestNames(key, keys)
  const hint =
    suggestions.length === 0
      ? " The first member who shares it creates it; to grant it before that, add `--new`."
      : ` Did you mean ${suggestions.join(" or ")}?`
  throw new HubProblem(404, "not_found", `${tenantRow!.slug} has no project ${key}.${hint}`)
}

/** Creates the project unless there is one with this key. */
export async function makeProject(query: Query, tenant: number, key: string): Promise<void> {
  await query("insert into hub.project (tenant, key) values ($1, $2) on conflict do nothing", [tenant, key])
}
