import { clusterFrom, masterKeyFrom, ownerFrom, SettingsProblem } from "../settings.ts"
import { removeAbandoned, removeUnnamedChunks } from "../store/abandoned.ts"
import { recordAudit } from "../store/audit.ts"
import { openKeyring } from "../store/keyring.ts"
import { asOwner } from "../store/owner.ts"
import { memberNamed, tenantNamed } from "../store/people.ts"
import { setMemberQuota, setTenantQuota } from "../store/quota.ts"
import { forgetExpired, setRetention } from "../store/retention.ts"
import { removeLostDisk } from "../store/word-copies.ts"
import { moveToCluster, moveToFiles } from "../store/word-index.ts"
import { type Commands, say } from "./commands.ts"

/** Commands that set how long and how much a hub stores, and in which engine. */
export const keepingCommands: Commands = {
  "tenant quota": async ([name = "", size = ""]) => {
    const bytes = bytesOf(size, "dex-hub tenant quota NAME SIZE")
    await asOwner(ownerFrom(process.env), async (query) => setTenantQuota(query, await tenantNamed(query, name), bytes))
    say(bytes === undefined ? `${name} has no storage limit.` : `${name} may store ${size}.`)
  },
  "tenant search": async ([name = "", engine = "", node]) => {
    if (engine === "disk-gone" && node !== undefined) return forgetDisk(name, node)
    if (engine !== "opensearch" && engine !== "files")
      throw new SettingsProblem("Where? Give opensearch or files: dex-hub tenant search NAME opensearch|files")
    const isInCluster = engine === "opensearch"
    if (isInCluster && !clusterFrom(process.env))
      throw new SettingsProblem(
        "DEX_HUB_SEARCH_URL is not set. Set it to the addresses of OpenSearch, also for all hubs.",
      )
    const state = await asOwner(ownerFrom(process.env), async (query) => {
      const tenant = await tenantNamed(query, name)
      return isInCluster ? moveToCluster(query, tenant) : moveToFiles(query, tenant)
    })
    if (isInCluster)
      say(`OpenSearch gets the words of ${name}. Until its index is complete, searches use the files of the hubs.`)
    else if (state === "building")
      say(
        `Each hub builds an index of the words of ${name} in its files, and searches OpenSearch until it has. When \`dex-hub check\` finds no problem on any hub, run this again: then OpenSearch loses the words.`,
      )
    else say(`The words of ${name} are only in the files of the hubs.`)
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

/** Receipts no longer wait for a disk that the operator says was destroyed. */
async function forgetDisk(name: string, node: string): Promise<void> {
  const isWaiting = await asOwner(ownerFrom(process.env), async (query) => {
    const tenant = await tenantNamed(query, name)
    if (!(await removeLostDisk(query, tenant, node))) return false
    await recordAudit(query, { tenant }, { action: "disk_gone", target: node })
    return true
  })
  if (!isWaiting) throw new SettingsProblem(`No words of ${name} are on a node ${node}.`)
  say(`Receipts of ${name} no longer wait for the disk of ${node}. This is in the audit log.`)
}

const UNITS = { MB: 1e6, GB: 1e9, TB: 1e12 }

/** Undefined means no limit. */
function bytesOf(size: string, usage: string): number | undefined {
  if (size === "none") return undefined
  const [, number, unit] = /^([0-9]+(?:\.[0-9]+)?)(MB|GB|TB)$/.exec(size.toUpperCase()) ?? []
  if (number === undefined) throw new SettingsProblem(`Give a size such as 500MB, 50GB or 1TB, or none: ${usage}`)
  return Math.round(Number(number) * UNITS[unit as keyof typeof UNITS])
}
