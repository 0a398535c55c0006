import { recordAudit } from "./audit.ts"
import type { Query } from "./connection.ts"
import { makeProject } from "./people.ts"
import { HubProblem } from "./problem.ts"

// The operator's rules for an identity provider: who may log in to a tenant, and what access their groups have. A change
// to a group's access or role applies at once to everybody who was in the group at their last login.

export type ProviderRules = { issuer: string; domain?: string; group?: string }

export async function setProvider(query: Query, tenant: number, rules: ProviderRules | undefined): Promise<void> {
  await query("delete from hub.identity_provider where tenant = $1", [tenant])
  if (rules) {
    const { issuer, domain = null, group = null } = rules
    const [added] = await query(ADD_PROVIDER, [tenant, issuer, domain, group])
    if (!added)
      throw new HubProblem(
        409,
        "issuer",
        `${issuer} belongs to another tenant. An identity provider can serve only one tenant.`,
      )
  }
  await recordAudit(query, { tenant }, { action: "identity_provider", target: rules?.issuer ?? "none" })
}

export async function grantToGroup(
  query: Query,
  { tenant, group, key, level }: { tenant: number; group: string; key: string; level: string },
): Promise<void> {
  await makeProject(query, tenant, key)
  await query(ADD_GRANT, [tenant, group, level, key])
  await recordAudit(query, { tenant }, { action: "group_grant", target: key, detail: { group, level } })
  await applyGroupRules(query, group)
}

export async function revokeFromGroup(
  query: Query,
  { tenant, group, key }: { tenant: number; group: string; key: string },
): Promise<void> {
  const revoked = await query(REMOVE_GRANT, [tenant, group, key])
  if (revoked.length === 0)
    throw new HubProblem(
      404,
      "not_found",
      `${group} has no access to that project. \`dex hub admin group list\` lists the access of groups.`,
    )
  await recordAudit(query, { tenant }, { action: "group_grant", target: key, detail: { group, level: "none" } })
  await applyGroupRules(query, group)
}

export async function setGroupRole(
  query: Query,
  { tenant, group, role }: { tenant: number; group: string; role: "auditor" | "admin" | "member" },
): Promise<void> {
  if (role === "member")
    await query("delete from hub.group_role where tenant = $1 and group_name = $2", [tenant, group])
  else await query(SET_ROLE, [tenant, group, role])
  await recordAudit(query, { tenant }, { action: "group_role", target: group, detail: { role } })
  await applyGroupRules(query, group)
}

export type GroupRight = { group: string; project?: string; level?: string; role?: string }

export async function groupRights(query: Query, tenant: number): Promise<GroupRight[]> {
  return [
    ...(await query<GroupRight>(SELECT_GRANTS, [tenant])),
    ...(await query<GroupRight>('select group_name as "group", role from hub.group_role where tenant = $1 order by 1', [
      tenant,
    ])),
  ]
}

async function applyGroupRules(query: Query, group: string): Promise<void> {
  await query("select hub.apply_group($1)", [group])
}

const ADD_PROVIDER = `insert into hub.identity_provider (tenant, issuer, email_domain, required_group) values ($1, $2, $3, $4)
  on conflict do nothing returning tenant`
const ADD_GRANT = `insert into hub.group_grant (tenant, group_name, project, level)
  select $1, $2, id, $3 from hub.project where tenant = $1 and key = $4
  on conflict (tenant, group_name, project) do update set level = excluded.level`
const REMOVE_GRANT = `delete from hub.group_grant r using hub.project p
  where r.tenant = $1 and r.group_name = $2 and p.tenant = r.tenant and p.id = r.project and p.key = $3 returning r.project`
const SET_ROLE = `insert into hub.group_role (tenant, group_name, role) values ($1, $2, $3)
  on conflict (tenant, group_name) do update set role = excluded.role`
const SELECT_GRANTS = `select r.group_name as "group", p.key as project, r.level from hub.group_grant r
  join hub.project p on p.tenant = r.tenant and p.id = r.project where r.tenant = $1 order by 1, 2`
