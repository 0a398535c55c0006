// The conditions in this file are the first access check, in the hub's own queries. The second is row-level security, in
// migrations.ts. Each works without the other.

/**
 * The tenant and member of the transaction. Each is a subquery, so that PostgreSQL evaluates it once instead of for every row.
 */
export const TENANT = "(select nullif(current_setting('hub.tenant', true), '')::int)"
export const MEMBER = "(select nullif(current_setting('hub.member', true), '')::int)"
const ROLE = "(select current_setting('hub.role', true))"

/** Selects the projects that a member was granted, or that are open to the organisation. */
export const GRANTED_PROJECTS = `select id from hub.project where tenant = ${TENANT} and visibility = 'org' and ${ROLE} <> 'service'
    union all select project from hub.project_grant where tenant = ${TENANT} and member = ${MEMBER}`

/** Selects the conversations for which an admin broke the glass. */
export const OPENED_CONVERSATIONS = `select conversation from hub.break_glass where tenant = ${TENANT} and member = ${MEMBER}
    and until > now() and ${ROLE} = 'admin'`

/**
 * The rows of `hub.conversation` that a member may read. An index of words has the same condition: ACCESS_SQL in the laptop's
 * `index-scope.ts`, with the values of `member-access.ts`.
 */
export const MEMBER_SCOPE = `tenant = ${TENANT} and rev > 0 and ${ROLE} <> 'auditor' and (author = ${MEMBER}
  or (quarantined_at is null and visibility = 'org' and ${ROLE} <> 'service')
  or (quarantined_at is null and visibility <> 'private' and project in (${GRANTED_PROJECTS}))
  or (quarantined_at is null and id in (${OPENED_CONVERSATIONS})))`

/** All of a member's own conversations, for an export of their data. Quarantined ones are included. */
export const AUTHOR_SCOPE = `tenant = ${TENANT} and rev > 0 and author = ${MEMBER}`

/** Rows of `hub.audit`, for auditors and admins only. */
export const AUDIT_SCOPE = `a.tenant = ${TENANT} and ${ROLE} in ('auditor', 'admin')`

/** Rows of `hub.break_glass`: the member's conversations that an admin opened. */
export const NOTICE_SCOPE = `b.tenant = ${TENANT} and b.author = ${MEMBER}`

/** Rows of `hub.token`: the member's own. */
export const TOKEN_SCOPE = `t.tenant = ${TENANT} and t.member = ${MEMBER}`

/** Rows of `hub.project`: the projects that the viewer owns. */
export const OWNED_SCOPE = `p.tenant = ${TENANT} and ${ROLE} in ('member', 'admin') and p.id in (
  select project from hub.project_grant where tenant = ${TENANT} and member = ${MEMBER} and level = 'own')`

/** Rows of `hub.project`: the same as in OWNED_SCOPE, and for an admin all projects of the tenant. */
export const DECIDED_SCOPE = `((p.tenant = ${TENANT} and ${ROLE} = 'admin') or (${OWNED_SCOPE}))`

/** Rows of `hub.access_request`: the requests that the viewer can decide. */
export const REQUEST_SCOPE = `r.tenant = ${TENANT} and r.project in (select p.id from hub.project p where ${DECIDED_SCOPE})`

export const TENANT_SCOPE = `tenant = ${TENANT} and rev > 0 and quarantined_at is null`
