import { randomBytes } from "node:crypto"
import { recordAudit } from "./audit.ts"
import type { Database, Query } from "./connection.ts"
import type { OneTimeCode } from "./operators.ts"
import { tokenHash } from "./people.ts"
import { HubProblem } from "./problem.ts"

// The lists and changes of operators and admins, in transactions that see no text. Row-level security has the same limits.

const INVITATION_DAYS = 7

export type TenantRow = {
  id: number
  name: string
  created_at: Date
  members: number
  admins: number
  conversations: number
  stored_bytes: number
  quota_bytes: number | null
  issuer: string | null
  in_files: boolean | null
  delete_at: Date | null
}

export async function tenantsFor(query: Query) {
  return (await query<TenantRow>(SELECT_TENANTS)).map((row) => ({
    name: row.name,
    created_at: row.created_at.toISOString(),
    members: row.members,
    admins: row.admins,
    conversations: row.conversations,
    stored_bytes: row.stored_bytes,
    quota_bytes: row.quota_bytes ?? undefined,
    login: row.issuer ?? undefined,
    search: searchOf(row.in_files),
    delete_at: row.delete_at?.toISOString(),
  }))
}

function searchOf(inFiles: boolean | null): "files" | "moving" | "opensearch" {
  if (inFiles === null) return "files"
  return inFiles ? "moving" : "opensearch"
}

/** Adds a tenant on behalf of an operator. */
export async function addTenantAs(query: Query, { keys }: Pick<Database, "keys">, slug: string): Promise<void> {
  const [row] = await query<{ id: number | null }>("select hub.add_tenant($1, $2) as id", [
    slug,
    keys.newTenantKey(slug),
  ])
  if (row!.id === null) throw new HubProblem(409, "exists", `There is already a tenant ${slug}. Choose another name.`)
  await recordAudit(query, { tenant: row!.id }, { action: "tenant_add", target: slug })
}

const DELETE_AFTER_DAYS = 7

/** Deletes a tenant in a week, unless an operator takes it back. */
export async function deleteLater(query: Query, tenant: number, slug: string): Promise<string> {
  const [row] = await query<{ delete_at: Date }>(
    `update hub.tenant set delete_at = coalesce(delete_at, now() + make_interval(days => $2)) where id = $1 and (delete_at is null or delete_at > now())
     returning delete_at`,
    [tenant, DELETE_AFTER_DAYS],
  )
  if (!row) throw tooLate(slug)
  const delete_at = row.delete_at.toISOString()
  await recordAudit(query, { tenant }, { action: "tenant_delete", target: slug, detail: { delete_at } })
  return delete_at
}

/** Takes the deletion of a tenant back. */
export async function keepTenant(query: Query, tenant: number, slug: string): Promise<void> {
  const kept = await query(
    "update hub.tenant set delete_at = null where id = $1 and (delete_at is null or delete_at > now()) returning id",
    [tenant],
  )
  if (kept.length === 0) throw tooLate(slug)
  await recordAudit(query, { tenant }, { action: "tenant_keep", target: slug })
}

function tooLate(slug: string): HubProblem {
  return new HubProblem(409, "deleted", `${slug} is being deleted, and its keys may be gone already.`)
}

/** Rows per transaction, so that nobody waits for long. */
const ROWS_PER_TRANSACTION = 2_000

/** Deletes a part of a tenant whose time has come. False if there is none. */
export async function deleteTenantPart(db: Database): Promise<boolean> {
  const [row] = await db.asIndex(0, (query) =>
    query<{ more: boolean }>("select hub.delete_tenant_part($1) as more", [ROWS_PER_TRANSACTION]),
  )
  return row!.more
}

export async function tenantReceipts(query: Query) {
  const rows = await query<
    { name: string; at: Date } & Record<"members" | "conversations", number> &
      Record<"rows_gone_at" | "key_gone_at", Date | null>
  >(
    "select name, at, members, conversations, rows_gone_at, key_gone_at from hub.tenant_receipt order by id desc limit 1000",
  )
  return rows.map((row) => ({
    ...row,
    at: row.at.toISOString(),
    rows_gone_at: row.rows_gone_at?.toISOString(),
    key_gone_at: row.key_gone_at?.toISOString(),
  }))
}

/** Invites an admin to a tenant in which no admin can log in. */
export async function inviteAdmin(query: Query, tenant: number, name: string): Promise<OneTimeCode> {
  const { code, expires_at } = newInvitation()
  const [row] = await query<{ outcome: "has_admin" | "taken" | "invited" }>(
    "select hub.invite_admin($1, $2, $3, $4) as outcome",
    [tenant, name, tokenHash(code), INVITATION_DAYS],
  )
  const { outcome } = row!
  if (outcome === "has_admin")
    throw new HubProblem(
      409,
      "has_admin",
      "The tenant has an admin who can log in, and who adds others with `dex hub admin member add NAME --role admin`.",
    )
  if (outcome === "taken")
    throw new HubProblem(409, "exists", `There is already a member ${name}. Choose another name.`)
  return { code, expires_at }
}

/** Invites a person who does not log in with an identity provider. Only they see their token. */
export async function inviteMember(query: Query, tenant: number, name: string): Promise<OneTimeCode> {
  const { code, expires_at } = newInvitation()
  const [member] = await query<{ id: number; role: string; subject: string | null; disabled_at: Date | null }>(
    "select id, role, subject, disabled_at from hub.member where tenant = $1 and name = $2",
    [tenant, name],
  )
  if (!member) throw noMember(name)
  if (member.disabled_at !== null) throw new HubProblem(409, "left", `${name} has left. Choose another name.`)
  if (member.role === "service")
    throw new HubProblem(409, "service", `${name} is a service. \`dex hub admin service add\` prints a token for it.`)
  if (member.subject !== null)
    throw new HubProblem(409, "login", `${name} logs in with the identity provider, and needs no code.`)
  await query(
    "insert into hub.invitation (hash, tenant, member, expires_at) values ($1, $2, $3, now() + make_interval(days => $4))",
    [tokenHash(code), tenant, member.id, INVITATION_DAYS],
  )
  await recordAudit(query, { tenant }, { action: "invite", about: member.id })
  return { code, expires_at }
}

function newInvitation(): OneTimeCode {
  return {
    code: `dexi_${randomBytes(32).toString("base64url")}`,
    expires_at: new Date(Date.now() + INVITATION_DAYS * 86_400_000).toISOString(),
  }
}

/** Changes a person's role, and ends their tokens, which have the scopes of the old one. */
export async function setRole(query: Query, tenant: number, name: string, role: string): Promise<void> {
  const member = await changeableMember(query, tenant, name)
  if (member.role === "service") throw new HubProblem(409, "service", `${name} is a service, not a person.`)
  await query("update hub.member set role = $3, role_by_group = false where tenant = $1 and id = $2", [
    ...[tenant, member.id, role],
  ])
  await endTokens(query, tenant, member.id)
  await recordAudit(query, { tenant }, { action: "role", target: name, detail: { role } })
}

/** Ends a member's access with their next request. What they shared stays, under their name. */
export async function endMember(query: Query, tenant: number, name: string): Promise<void> {
  const member = await changeableMember(query, tenant, name)
  await query("update hub.member set disabled_at = now() where tenant = $1 and id = $2 and disabled_at is null", [
    tenant,
    member.id,
  ])
  await endTokens(query, tenant, member.id)
  await recordAudit(query, { tenant }, { action: "member_disable", target: name })
}

async function endTokens(query: Query, tenant: number, member: number): Promise<void> {
  await query("update hub.token set revoked_at = now() where tenant = $1 and member = $2 and revoked_at is null", [
    tenant,
    member,
  ])
}

/** Another member, so that a tenant keeps the admin who acts. */
async function changeableMember(query: Query, tenant: number, name: string): Promise<{ id: number; role: string }> {
  const [row] = await query<{ id: number; role: string; is_oneself: boolean }>(SELECT_OTHER, [tenant, name])
  if (!row) throw noMember(name)
  if (row.is_oneself)
    throw new HubProblem(
      409,
      "oneself",
      "Admins cannot change their own role or end their own access. Ask another admin.",
    )
  return row
}

function noMember(name: string): HubProblem {
  return new HubProblem(404, "not_found", `There is no member ${name}. \`dex hub admin member list\` lists them.`)
}

type MemberRow = {
  name: string
  role: string
  email: string | null
  subject: string | null
  created_at: Date
  disabled_at: Date | null
  quota_bytes: number | null
}

export async function membersFor(query: Query) {
  return (await query<MemberRow>(SELECT_MEMBERS)).map(({ subject, ...row }) => ({
    ...row,
    email: row.email ?? undefined,
    created_at: row.created_at.toISOString(),
    disabled_at: row.disabled_at?.toISOString(),
    login: subject !== null,
    quota_bytes: row.quota_bytes ?? undefined,
  }))
}

export async function projectsFor(query: Query) {
  const rows = await query<{ key: string; owners: string[]; members: number; keep_days: number | null }>(
    SELECT_PROJECTS,
  )
  return rows.map((row) => ({ ...row, keep_days: row.keep_days ?? undefined }))
}

export async function receiptsFor(query: Query) {
  const rows = await query<
    Record<"member" | "why", string> &
      Record<"id" | "conversations", number> & { at: Date } & Record<"key_gone_at" | "words_gone_at", Date | null>
  >(SELECT_RECEIPTS)
  return rows.map((row) => ({
    ...row,
    at: row.at.toISOString(),
    key_gone_at: row.key_gone_at?.toISOString(),
    words_gone_at: row.words_gone_at?.toISOString(),
  }))
}

export async function brokenGlass(query: Query) {
  const rows = await query<Record<"by" | "ref" | "reason", string> & Record<"at" | "until", Date>>(SELECT_BROKEN)
  return rows.map((row) => ({ ...row, at: row.at.toISOString(), until: row.until.toISOString() }))
}

const SELECT_TENANTS = `select t.id, t.slug as name, t.created_at, n.members, n.admins, n.conversations, n.stored_bytes,
    (t.settings ->> 'quota_bytes')::bigint as quota_bytes, p.issuer, w.in_files, t.delete_at
  from hub.tenant t join hub.tenant_counts() n on n.tenant = t.id left join hub.identity_provider p on p.tenant = t.id
  left join hub.word_index w on w.tenant = t.id order by t.slug`
const IS_ONESELF = "id = nullif(current_setting('hub.member', true), '')::int"
const SELECT_OTHER = `select id, role, ${IS_ONESELF} as is_oneself from hub.member where tenant = $1 and name = $2`
const SELECT_MEMBERS = `select name, role, email, subject, created_at, disabled_at, quota_bytes from hub.member order by name`
const SELECT_PROJECTS = `select p.key, p.retention_days as keep_days,
    array(select m.name from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member
      where g.tenant = p.tenant and g.project = p.id and g.level = 'own' order by m.name) as owners,
    (select count(*)::int from hub.project_grant g where g.tenant = p.tenant and g.project = p.id) as members
  from hub.project p order by p.key`
const SELECT_RECEIPTS = `select r.id, r.at, m.name as member, r.conversations, r.why, r.key_gone_at, r.words_gone_at
  from hub.receipt r join hub.member m on m.tenant = r.tenant and m.id = r.member order by r.id desc limit 1000`
const SELECT_BROKEN = `select m.name as by, b.ref, b.reason, b.at, b.until from hub.break_glass b
  join hub.member m on m.tenant = b.tenant and m.id = b.member order by b.at desc limit 1000`
