import { nearestNames } from "../../../src/core/nearest.ts"
import type { HubMemberLevel, HubRequest } from "../../../src/hub-client/wire.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"
import { DECIDED_SCOPE, OWNED_SCOPE, REQUEST_SCOPE } from "./scope.ts"

// The owners of a project and admins decide who has access to it. Everybody else gets the same answer as if the project did not
// exist.

/** The levels of access to a project. `none` revokes it. */
export const LEVELS = ["read", "write", "own", "none"] as const
export type Level = (typeof LEVELS)[number]

export type AccessDecision = { member: string; project: string; level?: Level }

/** A person who decides about access. If `isAdmin` and their role is admin, they also decide about projects of others. */
export type Decider = { viewer: Viewer; isAdmin: boolean }

const MAX_LISTED = 200
/** The maximum number of requests that a member can make in 30 days, not counting those that were approved. */
const MAX_REQUESTS = 20

/** The requests that the viewer can decide, oldest first. */
export async function requestsFor(
  db: Database,
  viewer: Viewer,
  isAdmin = viewer.role === "admin",
): Promise<HubRequest[]> {
  const rows = await db.as(viewer, (query) =>
    query<{ project: string; member: string; at: Date }>(SELECT_REQUESTS, [isAdmin, MAX_LISTED]),
  )
  return rows.map((row) => ({ ...row, at: row.at.toISOString() }))
}

export async function membersOf(db: Database, { viewer, isAdmin }: Decider, key: string): Promise<HubMemberLevel[]> {
  return db.as(viewer, async (query) => {
    const { id } = await decidedProject(query, key, isAdmin)
    const rows = await query<{ name: string; level: string; group_level: string | null }>(SELECT_MEMBERS, [
      viewer.tenant,
      id,
    ])
    return rows.map(({ group_level, ...row }) => ({ ...row, group_level: group_level ?? undefined }))
  })
}

/** Sets the level that a person grants to a member. Levels from groups stay. */
export async function grantAccess(
  db: Database,
  { viewer, isAdmin }: Decider,
  { key, name, level }: { key: string; name: string; level: Level },
): Promise<AccessDecision> {
  return db.as(viewer, async (query) => {
    const project = await lockedProject(query, viewer, key, isAdmin)
    const member = await memberToGrant(query, viewer, name)
    await changeLevel(query, { by: viewer, project, member, level })
    const action = level === "none" ? "grant_end" : "grant"
    await recordAudit(query, viewer, {
      action,
      target: key,
      about: member.id,
      detail: level === "none" ? undefined : { level },
    })
    return { member: name, project: key, level }
  })
}

export async function decideRequest(
  db: Database,
  { viewer, isAdmin }: Decider,
  { key, name, decision }: { key: string; name: string; decision: "approve" | "deny" },
): Promise<AccessDecision> {
  return db.as(viewer, async (query) => {
    const project = await lockedProject(query, viewer, key, isAdmin)
    const [requester] = await query<{ id: number }>(SELECT_REQUESTER, [viewer.tenant, project.id, name])
    if (!requester)
      throw new HubProblem(404, "not_found", `${name} has no request for ${key}. \`dex hub requests\` lists them.`)
    const about = requester.id
    if (decision === "deny") {
      await query(DENY_REQUEST, [viewer.tenant, project.id, about])
      await recordAudit(query, viewer, { action: "deny", target: key, about })
      return { member: name, project: key }
    }
    await changeLevel(query, { by: viewer, project, member: { id: about, name }, level: "write" })
    await recordAudit(query, viewer, { action: "approve", target: key, about, detail: { level: "write" } })
    return { member: name, project: key, level: "write" }
  })
}

/**
 * Grants the project if a rule of the tenant allows it, and returns undefined. Otherwise sends its owners a request, and returns
 * the refusal for the member.
 */
export async function grantOrRequest(
  query: Query,
  viewer: Viewer,
  project: { id: number; key: string },
): Promise<HubProblem | undefined> {
  const [joined] = await query<{ rule: string | null }>("select hub.join_by_rule($1) as rule", [project.id])
  if (joined!.rule !== null) {
    const detail = { level: "write", origin: "rule", rule: joined!.rule }
    await recordAudit(query, viewer, { action: "grant", target: project.key, about: viewer.member, detail })
    return undefined
  }
  const [request] = await query<{ state: string }>("select hub.request_access($1, $2) as state", [
    project.id,
    MAX_REQUESTS,
  ])
  if (request!.state === "asked") await recordAudit(query, viewer, { action: "request", target: project.key })
  if (request!.state === "too_many")
    return new HubProblem(
      403,
      "too_many_requests",
      `${MAX_REQUESTS} of your requests in the last 30 days have not been approved. Contact the projects' owners yourself.`,
    )
  return new HubProblem(
    403,
    "refused",
    `${project.key} is not shared with you yet. dex has sent its owners a request. Run \`dex hub share\` again when one of them has approved it.`,
  )
}

/** Sets or removes the level that a person granted. Returns "group" if the member's only level is from a group, which stays. */
export async function setLevel(
  query: Query,
  { tenant, project, member, level }: { tenant: number; project: number; member: number; level: Level },
): Promise<"changed" | "nothing" | "group"> {
  if (level !== "none") {
    await query(SET_LEVEL, [tenant, project, member, level])
    return "changed"
  }
  const [grant] = await query<{ by_group: boolean }>(SELECT_IF_BY_GROUP, [tenant, project, member])
  if (!grant) return "nothing"
  if (grant.by_group) return "group"
  await query(KEEP_GROUP_LEVEL, [tenant, project, member])
  await query(REMOVE_LEVEL, [tenant, project, member])
  return "changed"
}

type DecidedProject = { id: number; key: string; is_owner: boolean }

/** The project, if the viewer decides about it. Otherwise throws a HubProblem (404), as if the project did not exist. */
async function decidedProject(query: Query, key: string, isAdmin: boolean): Promise<DecidedProject> {
  const [row] = await query<{ id: number; is_owner: boolean }>(SELECT_DECIDED_PROJECT, [key, isAdmin])
  if (row) return { ...row, key }
  const ownedProjects = await query<{ key: string }>(SELECT_OWNED_KEYS)
  const suggestions = nearestNames(
    key,
    ownedProjects.map((one) => one.key),
  )
  const hint = suggestions.length === 0 ? "" : ` Did you mean ${suggestions.join(" or ")}?`
  throw new HubProblem(404, "not_found", `There is no project ${key} that you own.${hint}`)
}

/** Locks the project, so that of two concurrent decisions the second sees the result of the first. */
async function lockedProject(query: Query, viewer: Viewer, key: string, isAdmin: boolean): Promise<DecidedProject> {
  const { id } = await decidedProject(query, key, isAdmin)
  await query("select pg_advisory_xact_lock($1, $2)", [viewer.tenant, id])
  return decidedProject(query, key, isAdmin)
}

async function memberToGrant(query: Query, { tenant }: Viewer, name: string): Promise<{ id: number; name: string }> {
  const [row] = await query<{ id: number }>(SELECT_MEMBER_TO_GRANT, [tenant, name])
  if (!row) throw new HubProblem(404, "not_found", `There is no member ${name} who could be given access.`)
  return { id: row.id, name }
}

async function changeLevel(
  query: Query,
  change: { by: Viewer; project: DecidedProject; member: { id: number; name: string }; level: Level },
): Promise<void> {
  const { by, project, member, level } = change
  if (member.id === by.member && !project.is_owner)
    throw new HubProblem(403, "refused", "Admins cannot grant themselves access to a project. Ask one of its owners.")
  const grantKey = { tenant: by.tenant, project: project.id, member: member.id }
  if (level !== "own" && (await isLastOwner(query, grantKey)))
    throw new HubProblem(
      409,
      "last_owner",
      `${project.key} would have no owner. Make somebody else its owner first: dex hub grant NAME ${project.key} --level own`,
    )
  const outcome = await setLevel(query, { ...grantKey, level })
  if (outcome === "nothing")
    throw new HubProblem(
      404,
      "not_found",
      `${member.name} has no access to ${project.key}, so there is nothing to revoke.`,
    )
  if (outcome === "group")
    throw new HubProblem(
      409,
      "group",
      `${member.name} has access to ${project.key} through a group. Only the hub's operator can change the access of groups.`,
    )
  if (level !== "none") await query(DELETE_REQUEST, [grantKey.tenant, grantKey.project, grantKey.member])
}

async function isLastOwner(
  query: Query,
  { tenant, project, member }: { tenant: number; project: number; member: number },
): Promise<boolean> {
  const owners = await query<{ member: number }>(SELECT_OWNERS, [tenant, project])
  return owners.some((one) => one.member === member) && owners.every((one) => one.member === member)
}

const OF_MEMBER = "m.tenant = r.tenant and m.id = r.member and m.disabled_at is null"
const IS_WAITING = "r.denied_at is null and r.at > now() - interval '30 days'"
const SELECT_REQUESTS = `select p.key as project, m.name as member, r.at from hub.access_request r
  join hub.project p on p.tenant = r.tenant and p.id = r.project join hub.member m on ${OF_MEMBER}
  where ${REQUEST_SCOPE} and ${IS_WAITING} and ($1 or (${OWNED_SCOPE})) order by r.at, m.name limit $2`
const SELECT_DECIDED_PROJECT = `select p.id, (${OWNED_SCOPE}) as is_owner from hub.project p
  where p.key = $1 and ${DECIDED_SCOPE} and ($2 or (${OWNED_SCOPE}))`
const SELECT_OWNED_KEYS = `select p.key from hub.project p where ${OWNED_SCOPE} order by p.key`
const SELECT_MEMBERS = `select m.name, g.level, g.group_level from hub.project_grant g
  join hub.member m on m.tenant = g.tenant and m.id = g.member
  where g.tenant = $1 and g.project = $2 and m.disabled_at is null order by m.name`
const SELECT_MEMBER_TO_GRANT = `select id from hub.member where tenant = $1 and name = $2 and disabled_at is null
  and role in ('member', 'admin')`
const SELECT_REQUESTER = `select m.id from hub.access_request r join hub.member m on ${OF_MEMBER}
  where r.tenant = $1 and r.project = $2 and m.name = $3 and ${IS_WAITING}`
const DENY_REQUEST =
  "update hub.access_request set denied_at = now() where tenant = $1 and project = $2 and member = $3"
const DELETE_REQUEST = "delete from hub.access_request where tenant = $1 and project = $2 and member = $3"
const SELECT_OWNERS = `select g.member from hub.project_grant g join hub.member m on m.tenant = g.tenant and m.id = g.member
  where g.tenant = $1 and g.project = $2 and g.level = 'own' and m.disabled_at is null`
const SET_LEVEL = `insert into hub.project_grant (tenant, project, member, level) values ($1, $2, $3, $4)
  on conflict (tenant, project, member) do update
    set person_level = excluded.level, level = hub.higher_level(excluded.level, project_grant.group_level)`
const OF_GRANT = "tenant = $1 and project = $2 and member = $3"
const SELECT_IF_BY_GROUP = `select group_level is not null and person_level is null as by_group from hub.project_grant where ${OF_GRANT}`
const KEEP_GROUP_LEVEL = `update hub.project_grant set level = group_level, person_level = null where ${OF_GRANT} and group_level is not null`
const REMOVE_LEVEL = `delete from hub.project_grant where ${OF_GRANT} and group_level is null`
