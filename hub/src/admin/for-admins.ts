import {
  brokenGlass,
  endMember,
  inviteMember,
  membersFor,
  projectsFor,
  receiptsFor,
  setRole,
} from "../store/administration.ts"
import { auditAfter } from "../store/audit.ts"
import { grantToGroup, groupRights, revokeFromGroup, setGroupRole } from "../store/groups.ts"
import {
  addMember,
  addToken,
  giveProject,
  grantProject,
  memberNamed,
  memberOrNew,
  requireProject,
} from "../store/people.ts"
import { HubProblem } from "../store/problem.ts"
import { setMemberQuota } from "../store/quota.ts"
import { setRetention } from "../store/retention.ts"
import { addRule, removeRule, rulesOf } from "../store/rules.ts"
import { revokeToken, tokensForOperator } from "../store/tokens.ts"
import { type AdminHandlers, bytesOf, checkedLimit, checkedName, checkedText, invalid } from "./call.ts"

/** Matches a folder of projects, such as `github.com/acme/*`. The text before the star is matched literally. */
const PATTERN = /^[\p{L}\p{N}][\p{L}\p{N}._~/:@+-]{0,250}\/\*$/u
const DAYS = /^[1-9][0-9]{0,4}$|^forever$/
const EMAIL = /^[^\s@]{1,100}@[^\s@]{1,150}$/
const SERVICE_DAYS = 90
const DAY_MS = 86_400_000

/** The jobs of an admin in their own tenant, and the lists that an auditor may see. */
export const adminHandlers = {
  "member list": async ({ query }) => ({ members: await membersFor(query) }),
  "member add": async ({ query, tenant, input: { name, role = "member", email } }) => {
    if (email !== undefined && !(EMAIL.test(email) && checkedText(email, "An e-mail address")))
      throw invalid("That is not an e-mail address.")
    await addMember(query, { tenant, name: checkedName(name), role, email })
    return inviteMember(query, tenant, name)
  },
  "member invite": async ({ query, tenant, input }) => inviteMember(query, tenant, checkedName(input.name)),
  "member role": async ({ query, tenant, input: { name, role } }) => {
    await setRole(query, tenant, checkedName(name), role)
    return {}
  },
  "member quota": async ({ query, tenant, input: { name, size } }) => {
    const bytes = bytesOf(size)
    await setMemberQuota(query, tenant, (await memberNamed(query, tenant, checkedName(name))).id, bytes)
    return {}
  },
  "member disable": async ({ query, tenant, input: { name } }) => {
    await endMember(query, tenant, checkedName(name))
    return {}
  },
  "service add": async ({ query, tenant, input: { name, project, days = SERVICE_DAYS, new: isNew } }) => {
    const key = checkedProject(project)
    if (!isNew) await requireProject(query, tenant, key)
    const { id: member, role } = await memberOrNew(query, { tenant, name: checkedName(name), role: "service" })
    if (role !== "service") throw new HubProblem(409, "exists", `${name} is a person. Choose another name.`)
    await grantProject(query, { tenant, member, key, level: "read" })
    const expires_at = new Date(Date.now() + days * DAY_MS)
    const token = { tenant, member, kind: "service" as const, scopes: ["read" as const], name: "service", expires_at }
    return { token: await addToken(query, token), expires_at: expires_at.toISOString() }
  },
  "token list": async ({ query, tenant }) => ({ tokens: await tokensForOperator(query, tenant) }),
  "token revoke": async ({ query, tenant, input: { id } }) => {
    await revokeToken(query, tenant, id)
    return {}
  },
  "project list": async ({ query }) => ({ projects: await projectsFor(query) }),
  "project keep": async ({ query, tenant, input: { project, days } }) => {
    if (!DAYS.test(days)) throw invalid("Give a number of days from 1 to 99999, or forever.")
    await setRetention(query, tenant, checkedProject(project), days === "forever" ? undefined : Number(days))
    return {}
  },
  "project owner": async ({ query, tenant, input: { project, name } }) => {
    const { id } = await memberNamed(query, tenant, checkedName(name))
    return { former_owners: await giveProject(query, { tenant, key: checkedProject(project), member: id }) }
  },
  grant: async ({ query, tenant, input: { name, project, level = "write", new: isNew } }) => {
    const key = checkedProject(project)
    if (!isNew) await requireProject(query, tenant, key)
    const { id } = await memberNamed(query, tenant, checkedName(name))
    await grantProject(query, { tenant, member: id, key, level })
    return {}
  },
  "rule list": async ({ query, tenant }) => ({ rules: await rulesOf(query, tenant) }),
  "rule add": async ({ query, tenant, input: { pattern } }) => {
    await addRule(query, tenant, checkedPattern(pattern))
    return {}
  },
  "rule remove": async ({ query, tenant, input: { pattern } }) => {
    if (!(await removeRule(query, tenant, checkedPattern(pattern))))
      throw new HubProblem(404, "not_found", `There is no rule ${pattern}. \`dex hub admin rule list\` lists them.`)
    return {}
  },
  "group list": async ({ query, tenant }) => ({ groups: await groupRights(query, tenant) }),
  "group grant": async ({ query, tenant, input: { group, project, level = "write", new: isNew } }) => {
    const key = checkedProject(project)
    if (!isNew) await requireProject(query, tenant, key)
    await grantToGroup(query, { tenant, group: checkedText(group, "A group"), key, level })
    return {}
  },
  "group revoke": async ({ query, tenant, input: { group, project } }) => {
    await revokeFromGroup(query, { tenant, group: checkedText(group, "A group"), key: checkedProject(project) })
    return {}
  },
  "group role": async ({ query, tenant, input: { group, role } }) => {
    await setGroupRole(query, { tenant, group: checkedText(group, "A group"), role })
    return {}
  },
  audit: async ({ query, input: { after, limit } }) => auditAfter(query, { after, limit: checkedLimit(limit) }),
  "receipt list": async ({ query }) => ({ receipts: await receiptsFor(query) }),
  "glass list": async ({ query }) => ({ broken: await brokenGlass(query) }),
} satisfies Partial<AdminHandlers>

function checkedProject(key: string): string {
  return checkedText(key, "A project")
}

function checkedPattern(pattern: string): string {
  if (PATTERN.test(pattern)) return pattern
  throw invalid("A rule is a folder of projects: github.com/acme/*")
}
