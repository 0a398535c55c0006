import type { MemberAccess } from "../../../src/store/index/index-scope.ts"
import type { Database, Viewer } from "./connection.ts"
import { GRANTED_PROJECTS, MEMBER_SCOPE, OPENED_CONVERSATIONS, TENANT } from "./scope.ts"

/** `isComplete` is false if too many conversations have changed since to name those that were withdrawn. */
export type AccessNow = { access: MemberAccess; isBehind: boolean; isComplete: boolean }

/** The maximum number of changed conversations that are checked for each question. */
export const MAX_CHANGED = 2_000

const SELECT_PROJECTS = `select id from (${GRANTED_PROJECTS}) granted (id) order by id`
const SELECT_OPENED = `select id from (${OPENED_CONVERSATIONS}) opened (id) order by id`
const SELECT_CHANGED = `select distinct conversation as id from hub.change where tenant = ${TENANT} and seq > $1 limit $2`
const SELECT_READABLE_AMONG = `select id from hub.conversation where ${MEMBER_SCOPE} and id = any ($1)`

/**
 * Reads what a member may read now, for an index that has processed the feed up to a number. What was made private, moved, taken
 * away or deleted after that is withdrawn: the index must leave it out, although it has not processed that yet.
 */
export async function accessOf(db: Database, viewer: Viewer, followed: number): Promise<AccessNow> {
  const { tenant, member, role } = viewer
  // Runs without the access check and reads only ids. With it, conversations that have become hidden would be missing here.
  const changed = await db.asIndex(tenant, (query) =>
    query<{ id: number }>(SELECT_CHANGED, [followed, MAX_CHANGED + 1]),
  )
  const isComplete = changed.length <= MAX_CHANGED
  const changedIds = isComplete ? changed.map(({ id }) => id) : []
  return db.as(viewer, async (query) => {
    const idsOf = async (sql: string, values?: unknown[]) =>
      (await query<{ id: number }>(sql, values)).map(({ id }) => id)
    const readable = new Set(changedIds.length > 0 ? await idsOf(SELECT_READABLE_AMONG, [changedIds]) : [])
    const isAuditor = role === "auditor"
    const access = {
      author: isAuditor ? 0 : member,
      org: !isAuditor && role !== "service",
      projects: isAuditor ? [] : await idsOf(SELECT_PROJECTS),
      opened: (await idsOf(SELECT_OPENED)).map(String),
      withdrawn: changedIds.filter((id) => !readable.has(id)).map(String),
    }
    return { access, isBehind: changed.length > 0, isComplete }
  })
}

/** For tests of the second access check: everything, as if the first one did not exist. */
export async function accessToAll(db: Database, tenant: number): Promise<MemberAccess> {
  const idsOf = (sql: string) => db.asIndex(tenant, (query) => query<{ id: number }>(sql))
  const projects = await idsOf("select id from hub.project")
  const conversations = await idsOf("select id from hub.conversation where visibility = 'private'")
  return {
    author: 0,
    org: true,
    projects: projects.map(({ id }) => id),
    opened: conversations.map(({ id }) => String(id)),
    withdrawn: [],
  }
}
