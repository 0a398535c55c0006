// The first wall: what the hub itself asks for. The second is row-level security, in migrations.ts, and neither relies on the
// other: with one of them taken away nothing foreign comes through.

/** The tenant and member of the transaction. In a subquery, so that it is worked out once and not for every row. */
export const TENANT = "(select nullif(current_setting('hub.tenant', true), '')::int)"
const MEMBER = "(select nullif(current_setting('hub.member', true), '')::int)"

/** What a member may read of `hub.conversation`. */
export const MEMBER_SCOPE = `tenant = ${TENANT} and rev > 0 and (author = ${MEMBER}
  or (quarantined_at is null and visibility = 'org')
  or (quarantined_at is null and visibility = 'project' and project in (
    select id from hub.project where tenant = ${TENANT} and visibility = 'org'
    union all select project from hub.project_grant where tenant = ${TENANT} and member = ${MEMBER}))
  or id in (select conversation from hub.break_glass where tenant = ${TENANT} and member = ${MEMBER} and until > now()))`

/** All of a tenant, for its shards. */
export const TENANT_SCOPE = `tenant = ${TENANT} and rev > 0`
