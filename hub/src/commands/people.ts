import { masterKeyFrom, ownerFrom, SettingsProblem } from "../settings.ts"
import { auditForOperator } from "../store/audit.ts"
import type { Query } from "../store/connection.ts"
import { openKeyring } from "../store/keyring.ts"
import { asOwner } from "../store/owner.ts"
import {
  addMember,
  addTenant,
  addToken,
  grantProject,
  memberNamed,
  SCOPES,
  type Scope,
  tenantNamed,
} from "../store/people.ts"
import { type Commands, say } from "./commands.ts"

/** What an operator does with tenants, members and what they may do. */
export const peopleCommands: Commands = {
  "tenant add": async ([name = ""]) => {
    await asOwner(ownerFrom(process.env), (query) => addTenant(query, openKeyring(masterKeyFrom(process.env)), name))
    say(`Added ${name}.`)
  },
  "member add": async ([name = ""], { tenant, role = "member", email, scopes = usualScopes(role), days }) => {
    const token = await inTenant(tenant, async (query, id) => {
      const member = await addMember(query, { tenant: id, name, role, ...(email && { email }) })
      return addToken(query, { ...tokenFor(scopes, days), tenant: id, member, kind: "personal", name: "first" })
    })
    say(`Added ${name}. Their token, which is shown only now:\n${token}`)
  },
  "token add": async ([name = ""], { tenant, scopes, days }) => {
    const token = await inTenant(tenant, async (query, id) => {
      const { id: member, role } = await memberNamed(query, id, name)
      const chosen = tokenFor(scopes ?? usualScopes(role), days)
      return addToken(query, { ...chosen, tenant: id, member, kind: "personal", name: "added" })
    })
    say(token)
  },
  grant: async ([name = "", key = ""], { tenant, level = "write" }) => {
    await inTenant(tenant, async (query, id) => {
      await grantProject(query, { tenant: id, member: (await memberNamed(query, id, name)).id, key, level })
    })
    say(`${name} has ${key} (${level}).`)
  },
  audit: async (_, { tenant, limit = "1000" }) => {
    const lines = await inTenant(tenant, (query, id) => auditForOperator(query, { tenant: id, limit: Number(limit) }))
    for (const line of lines) say(JSON.stringify(line))
  },
}

function inTenant<T>(slug = "", work: (query: Query, tenant: number) => Promise<T>): Promise<T> {
  return asOwner(ownerFrom(process.env), async (query) => work(query, await tenantNamed(query, slug)))
}

/** What a role can use: an admin's includes breaking the glass. */
function usualScopes(role: string): string {
  if (role === "admin") return "push,read,admin"
  return role === "member" ? "push,read" : "read"
}

function tokenFor(scopes: string, days?: string): { scopes: Scope[]; expires_at?: Date } {
  const chosen = scopes.split(",") as Scope[]
  const unknown = chosen.filter((scope) => !SCOPES.includes(scope))
  if (unknown.length > 0) throw new SettingsProblem(`There is no scope ${unknown.join(", ")}: ${SCOPES.join(", ")}.`)
  return { scopes: chosen, ...(days && { expires_at: new Date(Date.now() + Number(days) * 86_400_000) }) }
}
