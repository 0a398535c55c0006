import { masterKeyFrom, ownerFrom, SettingsProblem } from "../settings.ts"
import { removeAbandoned, removeUnnamedChunks } from "../store/abandoned.ts"
import { openKeyring } from "../store/keyring.ts"
import { asOwner } from "../store/owner.ts"
import { memberNamed, tenantNamed } from "../store/people.ts"
import { setMemberQuota, setTenantQuota } from "../store/quota.ts"
import { forgetExpired, setRetention } from "../store/retention.ts"
import { type Commands, say } from "./commands.ts"

/** Commands that set how long and how much a hub stores. */
export const keepingCommands: Commands = {
  "tenant quota": async ([name = "", size = ""]) => {
    const bytes = bytesOf(size, "dex-hub tenant quota NAME SIZE")
    await asOwner(ownerFrom(process.env), async (query) => setTenantQuota(query, await tenantNamed(query, name), bytes))
    say(bytes === undefined ? `${name} has no storage limit.` : `${name} may store ${size}.`)
  },
  "member quota": async ([name = "", size = ""], { tenant = "" }) => {
    const bytes = bytesOf(size, "dex-hub member quota NAME SIZE --tenant T")
    await asOwner(ownerFrom(process.env), async (query) => {
      const tenantId = await tenantNamed(query, tenant)
      await setMemberQuota(query, tenantId, (await memberNamed(query, tenantId, name)).id, bytes)
    })
    say(bytes === undefined ? `${name} has no limit of their own.` : `${name} may store ${size}.`)
  },
  "project keep": async ([key = "", days = ""], { tenant = "" }) => {
    if (!/^[1-9][0-9]{0,4}$|^forever$/.test(days))
      throw new SettingsProblem("Give a number of days, or `forever`: dex-hub project keep KEY DAYS --tenant T")
    const retentionDays = days === "forever" ? undefined : Number(days)
    await asOwner(ownerFrom(process.env), async (query) =>
      setRetention(query, await tenantNamed(query, tenant), key, retentionDays),
    )
    say(
      retentionDays === undefined
        ? `${key} keeps everything.`
        : `${key} keeps a conversation for ${days} days after its end. \`dex-hub expire\` deletes what is older: run it every day.`,
    )
  },
  expire: async () => {
    const [owner, keys] = [ownerFrom(process.env), openKeyring(masterKeyFrom(process.env))]
    const forgotten = await forgetExpired(owner, keys)
    say(`Deleted ${forgotten} ${forgotten === 1 ? "conversation" : "conversations"} that projects no longer keep.`)
    const abandoned = await removeAbandoned(owner)
    if (abandoned > 0)
      say(`Removed the remains of ${abandoned} ${abandoned === 1 ? "push" : "pushes"} that never finished.`)
    const chunks = await removeUnnamedChunks(owner, keys)
    if (chunks > 0) say(`Removed ${chunks} ${chunks === 1 ? "piece" : "pieces"} that no conversation uses any more.`)
  },
}

const UNITS = { MB: 1e6, GB: 1e9, TB: 1e12 }

/** Undefined means no limit. */
function bytesOf(size: string, usage: string): number | undefined {
  if (size === "none") return undefined
  const [, number, unit] = /^([0-9]+(?:\.[0-9]+)?)(MB|GB|TB)$/.exec(size.toUpperCase()) ?? []
  if (number === undefined) throw new SettingsProblem(`Give a size such as 500MB, 50GB or 1TB, or none: ${usage}`)
  return Math.round(Number(number) * UNITS[unit as keyof typeof UNITS])
}
