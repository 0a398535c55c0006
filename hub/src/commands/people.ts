import { appendFileSync, mkdirSync, readdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { masterKeyFrom, ownerFrom, SettingsProblem, settingsFrom } from "../settings.ts"
import { LEVELS } from "../store/access.ts"
import { auditForOperator } from "../store/audit.ts"
import { type MemberRole, openDatabase, type Query } from "../store/connection.ts"
import { addInvitation } from "../store/invitations.ts"
import { openKeyring } from "../store/keyring.ts"
import { memberData } from "../store/member-data.ts"
import { asOwner } from "../store/owner.ts"
import {
  addMember,
  addTenant,
  addToken,
  defaultScopes,
  disableMember,
  grantProject,
  memberNamed,
  memberOrNew,
  requireProject,
  SCOPES,
  type Scope,
  tenantNamed,
} from "../store/people.ts"
import { revokeToken, tokensForOperator } from "../store/tokens.ts"
import { type Commands, say } from "./commands.ts"

/** The operator's commands for tenants, members and their rights. */
export const peopleCommands: Commands = {
  "tenant add": async ([name = ""]) => {
    await asOwner(ownerFrom(process.env), (query) => addTenant(query, openKeyring(masterKeyFrom(process.env)), name))
    say(`Added ${name}.`)
  },
  "member add": async ([name = ""], { tenant, role = "member", email, scopes, days }) => {
    const token = await inTenant(tenant, async (query, id) => {
      const member = await addMember(query, { tenant: id, name, role, email: email || undefined })
      return addToken(query, { ...tokenFor(role, scopes, days), tenant: id, member, kind: "personal", name: "first" })
    })
    say(`Added ${name}. Their token, which is shown only now:\n${token}`)
  },
  "member disable": async ([name = ""], { tenant }) => {
    await inTenant(tenant, (query, id) => disableMember(query, id, name))
    say(`${name} no longer has access. What they shared stays, under their name.`)
  },
  "member export": async ([name = ""], { tenant, to }) => {
    if (!to) throw new SettingsProblem("Which folder? Give --to FOLDER")
    const counts = await exportMember(name, tenant, to)
    say(
      `Wrote ${Object.entries(counts)
        .map(([file, lines]) => `${file} (${lines})`)
        .join(", ")} to ${to}.`,
    )
  },
  invite: async ([name = ""], { tenant, role = "member", email }) => {
    const code = await inTenant(tenant, async (query, id) => {
      const member = await memberOrNew(query, { tenant: id, name, role: role as MemberRole, email: email || undefined })
      return addInvitation(query, { tenant: id, member: member.id })
    })
    const address = process.env.DEX_HUB_URL ?? "ADDRESS"
    say(`${code}\n\nIt works once, for 7 days: ${name} runs \`dex hub login ${address}\` and pastes it.`)
  },
  "token add": async ([name = ""], { tenant, scopes, days, service, project, new: isNew }) => {
    if (service && !project) throw new SettingsProblem("Which project may the service read? Give --project KEY")
    const token = await inTenant(tenant, async (query, id) => {
      if (service && !isNew) await requireProject(query, id, project!)
      const { id: member, role } = service
        ? await memberOrNew(query, { tenant: id, name, role: "service" })
        : await memberNamed(query, id, name)
      if (service && role !== "service") throw new SettingsProblem(`${name} is a person. Choose another name.`)
      if (service) await grantProject(query, { tenant: id, member, key: project!, level: "read" })
      const kind = service ? "service" : "personal"
      return addToken(query, { ...tokenFor(role, scopes, days), tenant: id, member, kind, name: kind })
    })
    say(token)
  },
  "token list": async (_, { tenant }) => {
    for (const line of await inTenant(tenant, (query, id) => tokensForOperator(query, id))) say(JSON.stringify(line))
  },
  "token revoke": async ([id = ""], { tenant }) => {
    if (!/^\d{1,15}$/.test(id))
      throw new SettingsProblem("Which token? Give its number. `dex-hub token list` lists them.")
    await inTenant(tenant, (query, tenantId) => revokeToken(query, tenantId, Number(id)))
    say(`Token ${id} is revoked.`)
  },
  grant: async ([name = "", key = ""], { tenant, level: typed = "write", new: isNew }) => {
    const level = LEVELS.find((one) => one === typed)
    if (name === "" || key === "" || !level)
      throw new SettingsProblem(
        `Name a member, a project, and a level (${LEVELS.join(", ")}): dex-hub grant bob github.com/acme/api --tenant T --level read`,
      )
    await inTenant(tenant, async (query, id) => {
      if (!isNew) await requireProject(query, id, key)
      await grantProject(query, { tenant: id, member: (await memberNamed(query, id, name)).id, key, level })
    })
    say(level === "none" ? `${name} no longer has access to ${key}.` : `${name} has access to ${key} (${level}).`)
  },
  audit: async (_, { tenant, limit = "1000" }) => {
    const lines = await inTenant(tenant, (query, id) => auditForOperator(query, { tenant: id, limit: Number(limit) }))
    for (const line of lines) say(JSON.stringify(line))
  },
}

export function inTenant<T>(slug = "", work: (query: Query, tenant: number) => Promise<T>): Promise<T> {
  return asOwner(ownerFrom(process.env), async (query) => work(query, await tenantNamed(query, slug)))
}

function tokenFor(role: string, scopes?: string, days?: string): { scopes: Scope[]; expires_at?: Date } {
  const chosen = (scopes?.split(",") as Scope[] | undefined) ?? defaultScopes(role)
  const unknown = chosen.filter((scope) => !SCOPES.includes(scope))
  if (unknown.length > 0)
    throw new SettingsProblem(`There is no scope ${unknown.join(", ")}. The scopes are ${SCOPES.join(", ")}.`)
  return { scopes: chosen, expires_at: days ? new Date(Date.now() + Number(days) * 86_400_000) : undefined }
}

/**
 * Writes all data of one person as JSON lines into an empty folder that only its owner can read. Returns the line counts by file.
 */
async function exportMember(name: string, slug = "", folder: string): Promise<Record<string, number>> {
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  if (readdirSync(folder).length > 0) throw new SettingsProblem(`${folder} is not empty. Choose another folder.`)
  const db = openDatabase({ ...settingsFrom(process.env), connections: 1 })
  try {
    return await asOwner(ownerFrom(process.env), async (query) => {
      const tenant = await tenantNamed(query, slug)
      const { id: member } = await memberNamed(query, tenant, name)
      const counts: Record<string, number> = {}
      for (const { name: file, lines } of await memberData(db, query, { tenant, member })) {
        const path = join(folder, file)
        writeFileSync(path, "", { mode: 0o600 })
        counts[file] = 0
        for await (const line of lines) {
          appendFileSync(path, `${JSON.stringify(line)}\n`)
          counts[file]++
        }
      }
      return counts
    })
  } finally {
    await db.close()
  }
}
