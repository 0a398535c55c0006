// The first wall: what the hub itself asks for. The second is row-level security, in migrations.ts, and neither relies on the
// other: with one of them taken away nothing foreign comes through.

/** The tenant and member of the transaction. In a subquery, so that it is worked out once and not for every row. */
export const TENANT = "(select nullif(current_setting('hub.tenant', true), '')::int)"
export const MEMBER = "(select nullif(current_setting('hub.member', true), '')::int)"
const ROLE = "(select current_setting('hub.role', true))"

/** What a member may read of `hub.conversation`. */
export const MEMBER_SCOPE = `tenant = ${TENANT} and rev > 0 and ${ROLE} <> 'auditor' and (author = ${MEMBER}
  or (quarantined_at is null and visibility = 'org' and ${ROLE} <> 'service')
  or (quarantined_at is null and visibility <> 'private' and project in (
    select id from hub.project where tenant = ${TENANT} and visibility = 'org' and ${ROLE} <> 'service'
    union all select project from hub.project_grant where tenant = ${TENANT} and member = ${MEMBER}))
  or (${ROLE} = 'admin' and quarantined_at is null and id in (
    select conversation from hub.break_glass where tenant = ${TENANT} and member = ${MEMBER} and until > now())))`

/** All that a member wrote, for an export of their data: also what is hidden from everybody else. */
export const AUTHOR_SCOPE = `tenant = ${TENANT} and rev > 0 and author = ${MEMBER}`

/** Of `hub.audit`: for auditors and admins only. */
export const AUDIT_SCOPE = `a.tenant = ${TENANT} and ${ROLE} in ('auditor', 'admin')`

/** Of `hub.break_glass`: what an admin opened that the member wrote. */
export const NOTICE_SCOPE = `b.tenant = ${TENANT} and b.author = ${MEMBER}`

/** Of `hub.token`: the member's own. */
export const TOKEN_SCOPE = `t.tenant = ${TENANT} and t.member = ${MEMBER}`

/** Of `hub.project`: those whose members the member decides about. */
export const OWNED_SCOPE = `p.tenant = ${TENANT} and ${ROLE} in ('member', 'admin') and p.id in (
  select project from hub.project_grant where tenant = ${TENANT} and member = ${MEMBER} and level = 'own')`

/** The same, and for an admin all of the tenant. */
export const DECIDED_SCOPE = `((p.tenant = ${TENANT} and ${ROLE} = 'admin') or (${OWNED_SCOPE}))`

/** Of `hub.access_request`, for those who decide. */
export const REQUEST_SCOPE = `r.tenant = ${TENANT} and r.project in (select p.id from hub.project p where ${DECIDED_SCOPE})`

/** All of a tenant, for its shards. */
export const TENANT_SCOPE = `tenant = ${TENANT} and rev > 0 and quarantined_at is null`

const SHARD = "(select nullif(current_setting('hub.shard', true), '')::int)"

/** Of a tenant what one of its shards has. */
export const SHARD_SCOPE = `${TENANT_SCOPE} and project in (select id from hub.project where tenant = ${TENANT} and shard = ${SHARD})`
