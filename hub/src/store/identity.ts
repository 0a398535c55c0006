import type { Database, MemberRole, Viewer } from "./connection.ts"
import { type Scope, tokenHash } from "./people.ts"

export type Identity = { viewer: Viewer; tenant: string; scopes: Scope[] }

const SELECT_HOLDER = `select t.tenant, t.member, t.scopes, m.role, m.name, tenant.slug,
    t.last_used_at is null or t.last_used_at < now() - interval '1 day' as is_first_today
  from hub.token t join hub.member m on m.tenant = t.tenant and m.id = t.member join hub.tenant on tenant.id = t.tenant
  where t.hash = $1 and t.revoked_at is null and (t.expires_at is null or t.expires_at > now()) and m.disabled_at is null`

/** The holder of a token. Undefined if it is unknown, expired or revoked, or if its member has left. */
export async function identify(db: Database, token: string): Promise<Identity | undefined> {
  const hash = tokenHash(token)
  return db.asNobody({ "hub.token": hash.toString("hex") }, async (query) => {
    const [row] = await query<{
      tenant: number
      member: number
      scopes: Scope[]
      role: MemberRole
      name: string
      slug: string
      is_first_today: boolean
    }>(SELECT_HOLDER, [hash])
    if (!row) return undefined
    // Written at most once a day, so that not every request costs a write.
    if (row.is_first_today) await query("update hub.token set last_used_at = now() where hash = $1", [hash])
    const { tenant, member, role, name, scopes, slug } = row
    return { viewer: { tenant, member, role, name }, tenant: slug, scopes }
  })
}
