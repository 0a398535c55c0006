import { SettingsProblem } from "../settings.ts"
import { giveProject, memberNamed } from "../store/people.ts"
import { addRule, removeRule, rulesOf } from "../store/rules.ts"
import { type Commands, say } from "./commands.ts"
import { inTenant } from "./people.ts"

/** Matches a folder of projects, such as `github.com/acme/*`. The text before the star is matched literally. */
const PATTERN = /^[\p{L}\p{N}][\p{L}\p{N}._~/:@+-]*\/\*$/u

/** Commands that set who owns a project, and who gets access without a request. */
export const projectCommands: Commands = {
  "tenant rule": async ([name = "", pattern = "", off]) => {
    if (!PATTERN.test(pattern) || (off !== undefined && off !== "off"))
      throw new SettingsProblem(
        "A rule is a folder of projects: dex-hub tenant rule acme 'github.com/acme/*'. To end it, add `off`.",
      )
    const hadRule = await inTenant(name, async (query, id) =>
      off ? removeRule(query, id, pattern) : addRule(query, id, pattern).then(() => true),
    )
    if (!hadRule)
      throw new SettingsProblem(`${name} has no rule ${pattern}. \`dex-hub tenant rules ${name}\` lists them.`)
    say(
      off
        ? `${pattern} no longer grants anything in ${name}. Members keep the access that it granted.`
        : `Members of ${name} who share a project of ${pattern} get write access at once. The hub cannot check whether they have the repository.`,
    )
  },
  "tenant rules": async ([name = ""]) => {
    for (const rule of await inTenant(name, rulesOf)) say(JSON.stringify(rule))
  },
  "project owner": async ([key = "", name = ""], { tenant = "" }) => {
    const formerOwners = await inTenant(tenant, async (query, id) =>
      giveProject(query, { tenant: id, key, member: (await memberNamed(query, id, name)).id }),
    )
    const remarks = formerOwners.map(
      (one) =>
        ` ${one} owned it before and can still read and push. To revoke that: \`dex-hub grant ${one} ${key} --level none --tenant ${tenant}\`.`,
    )
    say(`${name} owns ${key}.${remarks.join("")}`)
  },
}
