import { grantOrRequest } from "./access.ts"
import { recordAudit } from "./audit.ts"
import type { Database, Query, Viewer } from "./connection.ts"
import { HubProblem } from "./problem.ts"

export type ProjectOnHub = {
  key: string
  title: string | null
  level: "read" | "write" | "own" | null
  shared: boolean
}

/** The projects to which the member has access. `shared` is true if the member shares conversations of the project. */
export async function projectsOf(db: Database, viewer: Viewer): Promise<ProjectOnHub[]> {
  return db.as(viewer, (query) =>
    query<ProjectOnHub>(
      `select p.key, p.title, g.level,
         exists (select from hub.consent c where c.project = p.id and c.member = $1 and c.until is null) as shared
       from hub.project p left join hub.project_grant g on g.project = p.id and g.member = $1
       where g.level is not null or p.visibility = 'org' order by p.key`,
      [viewer.member],
    ),
  )
}

/** Matches a key: a repository's address without the parts that differ between machines, or a name that the team chose. */
const VALID_KEY = /^[\p{L}\p{N}][\p{L}\p{N}._~/:@+-]{0,199}$/u

/**
 * Records that the member shares this project from now on. If nobody owns or has shared a project with this key, the member
 * becomes its owner. If the member has no access and no rule grants it, the owners get a request, and this throws a HubProblem
 * (403).
 */
export async function consentTo(db: Database, viewer: Viewer, key: string, what: string[]): Promise<void> {
  if (!VALID_KEY.test(key))
    throw new HubProblem(
      400,
      "invalid",
      `${JSON.stringify(key)} is not a valid project key. It should look like github.com/acme/api.`,
    )
  const refusal = await db.as(viewer, async (query) => {
    const id = (await projectId(query, key)) ?? (await newProject(query, viewer, key))
    await makeOwnerIfFirst(query, viewer, id, key)
    const why = (await mayPush(query, viewer, id)) ? undefined : await grantOrRequest(query, viewer, { id, key })
    // Throwing here would roll back the request to the owners.
    if (why) return why
    await query(END_CONSENT, [viewer.tenant, viewer.member, key])
    await query("insert into hub.consent (tenant, member, project, what) values ($1, $2, $3, $4)", [
      ...[viewer.tenant, viewer.member, id, what],
    ])
    await recordAudit(query, viewer, { action: "consent", target: key, detail: { what } })
    return undefined
  })
  if (refusal) throw refusal
}

async function mayPush(query: Query, viewer: Viewer, project: number): Promise<boolean> {
  const granted = await query(
    "select from hub.project_grant where project = $1 and member = $2 and level in ('write', 'own')",
    [project, viewer.member],
  )
  return granted.length > 0
}

/** Ends a consent. What was pushed stays. Without a consent nothing happens, whether or not the project exists. */
export async function withdrawConsent(db: Database, viewer: Viewer, key: string): Promise<void> {
  await db.as(viewer, async (query) => {
    const ended = await query(END_CONSENT, [viewer.tenant, viewer.member, key])
    if (ended.length > 0) await recordAudit(query, viewer, { action: "consent_end", target: key })
  })
}

const END_CONSENT = `update hub.consent c set until = now() from hub.project p
  where c.tenant = $1 and c.member = $2 and c.until is null and p.tenant = c.tenant and p.id = c.project and p.key = $3
  returning c.project`

async function projectId(query: Query, key: string): Promise<number | undefined> {
  return (await query<{ id: number }>("select id from hub.project where key = $1", [key]))[0]?.id
}

async function newProject(query: Query, viewer: Viewer, key: string): Promise<number> {
  const [added] = await query<{ id: number }>(
    "insert into hub.project (tenant, key) values ($1, $2) on conflict do nothing returning id",
    [viewer.tenant, key],
  )
  return added?.id ?? (await projectId(query, key))!
}

/**
 * Makes the member the owner if nobody owns or has shared the project, even if an operator has granted others access to it. If
 * two members share it at once, only the first becomes its owner.
 */
async function makeOwnerIfFirst(query: Query, viewer: Viewer, project: number, key: string): Promise<void> {
  await query("select pg_advisory_xact_lock($1, $2)", [viewer.tenant, project])
  const granted = await query(
    `insert into hub.project_grant (tenant, project, member, level) select $1, $2, $3, 'own'
     where not hub.is_taken($2)
     on conflict (tenant, project, member) do update set level = 'own', person_level = 'own' returning project`,
    [viewer.tenant, project, viewer.member],
  )
  if (granted.length > 0)
    await recordAudit(query, viewer, { action: "grant", target: key, about: viewer.member, detail: { level: "own" } })
}
