import { SettingsProblem } from "../settings.ts"
import { grantToGroup, groupRights, revokeFromGroup, setGroupRole, setProvider } from "../store/groups.ts"
import { requireProject } from "../store/people.ts"
import { type Commands, say } from "./commands.ts"
import { inTenant } from "./people.ts"

const ROLES = ["auditor", "admin", "member"] as const
const LEVELS = ["read", "write", "own"]

/** Commands that set who may log in with an identity provider, and what access groups give. */
export const groupCommands: Commands = {
  "tenant oidc": async ([name = "", off], { issuer = process.env.DEX_HUB_OIDC_ISSUER, domain, group, everyone }) => {
    if (off !== undefined && off !== "off") throw new SettingsProblem(`To turn it off: dex-hub tenant oidc ${name} off`)
    if (off === undefined && !issuer)
      throw new SettingsProblem("Which identity provider? Give --issuer https://login.example.com")
    if (off === undefined && !domain && !group && !everyone)
      throw new SettingsProblem("Who may log in? Give --domain example.com, --group NAME, or --everyone.")
    if (domain !== undefined && !/^[a-z0-9][a-z0-9.-]*$/.test(domain))
      throw new SettingsProblem("--domain is the part after the @, in lower case: example.com")
    const rules = off ? undefined : { issuer: issuer!, domain: domain || undefined, group: group || undefined }
    await inTenant(name, (query, id) => setProvider(query, id, rules))
    const condition = [domain && `an address of ${domain}`, group && `the group ${group}`].filter(Boolean).join(" and ")
    say(
      rules
        ? `People of ${rules.issuer} can log in to ${name}${condition && `, with ${condition}`}.`
        : `Nobody can log in to ${name} with an identity provider any more. Existing tokens keep working.`,
    )
  },
  "group grant": async ([group = "", key = ""], { tenant, level = "write", new: isNew }) => {
    if (group === "" || key === "" || !LEVELS.includes(level))
      throw new SettingsProblem(
        `Name a group, a project, and a level (${LEVELS.join(", ")}): dex-hub group grant engineers github.com/acme/api --tenant T --level read`,
      )
    await inTenant(tenant, async (query, id) => {
      if (!isNew) await requireProject(query, id, key)
      await grantToGroup(query, { tenant: id, group, key, level })
    })
    say(`Everyone who logs in with the group ${group} has access to ${key} (${level}).`)
  },
  "group revoke": async ([group = "", key = ""], { tenant }) => {
    await inTenant(tenant, (query, id) => revokeFromGroup(query, { tenant: id, group, key }))
    say(`${group} no longer gives access to ${key}. Access that was granted to a member by name stays.`)
  },
  "group role": async ([group = "", typed = ""], { tenant }) => {
    const role = ROLES.find((one) => one === typed)
    if (group === "" || !role)
      throw new SettingsProblem(
        `Name a group and a role (${ROLES.join(", ")}): dex-hub group role security auditor --tenant T`,
      )
    await inTenant(tenant, (query, id) => setGroupRole(query, { tenant: id, group, role }))
    say(`Everyone who logs in with the group ${group} is ${role === "member" ? "a member" : `an ${role}`}.`)
  },
  "group list": async (_, { tenant }) => {
    for (const line of await inTenant(tenant, groupRights)) say(JSON.stringify(line))
  },
}
