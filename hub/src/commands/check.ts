import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs"
import { readIndex } from "../../../src/store/index/search-index.ts"
import { type Settings, settingsFrom } from "../settings.ts"
import { type ShardName, shardFile } from "../shards/files.ts"
import { type Database, openDatabase } from "../store/connection.ts"
import { feeds } from "../store/feeds.ts"
import { keyProblems, roleProblems, serverVersion, versionProblems, wallProblems } from "../store/health.ts"
import { allShards } from "../store/shards.ts"
import { type Commands, say } from "./commands.ts"

type Finding = { what: string; problems: string[] }

/** A shard is behind for a moment after every push. */
const FAR_BEHIND = 1_000
const LEAST_FREE_BYTES = 2 << 30

export const checkCommands: Commands = {
  check: async () => {
    const settings = settingsFrom(process.env)
    const db = openDatabase({ ...settings, connections: 1 })
    try {
      const files = filesOf(settings, process.env.DEX_HUB_MASTER_KEY_FILE!)
      const findings = [...files, ...(await databaseOf(db, settings.data))]
      for (const { what, problems } of findings) {
        if (problems.length === 0) say(`ok       ${what}`)
        for (const problem of problems) say(`PROBLEM  ${problem}`)
      }
      if (findings.some(({ problems }) => problems.length > 0)) process.exitCode = 1
    } finally {
      await db.close()
    }
  },
}

function filesOf({ data }: Settings, keyFile: string): Finding[] {
  const isOpen = process.platform !== "win32" && (statSync(keyFile).mode & 0o077) !== 0
  return [
    {
      what: "only its user can read the master key's file",
      problems: isOpen ? [`Others can read the master key. Run: chmod 600 ${keyFile}`] : [],
    },
    { what: "there is room for the shards", problems: roomProblems(data) },
  ]
}

function roomProblems(data: string): string[] {
  try {
    mkdirSync(data, { recursive: true, mode: 0o700 })
    accessSync(data, constants.W_OK)
  } catch (error) {
    return [
      `${data} cannot be written to (${(error as { code?: string }).code}). Give it to this user, or set DEX_HUB_DATA.`,
    ]
  }
  const { bavail, bsize } = statfsSync(data)
  const free = bavail * bsize
  return free < LEAST_FREE_BYTES
    ? [`${data} has ${(free / 1e9).toFixed(1)} GB left. Make room, or set DEX_HUB_DATA.`]
    : []
}

async function databaseOf(db: Database, data: string): Promise<Finding[]> {
  const server = await serverVersion(db).catch((error: { code?: string }) => error)
  if (!("version" in server)) return [{ what: "PostgreSQL", problems: [unanswered(server.code)] }]
  const version = await versionProblems(db)
  const before = [
    { what: `PostgreSQL ${server.version} answers`, problems: server.problems },
    { what: "the tables have the version that this dex-hub needs", problems: version },
  ]
  if (version.length > 0) return before
  const tenants = await feeds(db)
  const keys = await Promise.all(tenants.map(({ tenant }) => keyProblems(db, tenant)))
  const seqs = new Map(tenants.map(({ tenant, seq }) => [tenant, seq]))
  const behind = await Promise.all(
    (await allShards(db)).map((shard) => lagOf(data, shard, seqs.get(shard.tenant) ?? 0)),
  )
  return [
    ...before,
    { what: "neither role can get around row-level security", problems: await roleProblems(db) },
    { what: "every table is behind row-level security", problems: await wallProblems(db) },
    { what: `the master key opens the keys of ${count(tenants.length, "tenant")}`, problems: keys.flat() },
    { what: "the search shards are near what was pushed", problems: behind.flat() },
  ]
}

/** Codes that begin so: the role or its password is not the right one. */
const LOGIN = "28"

function unanswered(code = "no reason given"): string {
  return code.startsWith(LOGIN)
    ? `PostgreSQL refuses the login of DEX_HUB_DATABASE_URL (${code}), so nothing of it was checked. \`dex-hub migrate\` makes the roles; look at the password too.`
    : `PostgreSQL does not answer (${code}), so nothing of it was checked. Look at DEX_HUB_DATABASE_URL, and whether it runs.`
}

async function lagOf(data: string, { tenant, shard }: ShardName, seq: number): Promise<string[]> {
  if (roomProblems(data).length > 0) return [] // which is said
  const index = readIndex(shardFile(data, { tenant, shard }))
  const followed = typeof index === "string" ? undefined : await index.followed()
  if (typeof index !== "string") index.close()
  const behind = seq - Number(followed?.split("@")[1] ?? 0)
  if (behind <= FAR_BEHIND) return []
  return [`Shard ${tenant}/${shard} is ${behind} changes behind. \`dex-hub serve\` on this machine brings it there.`]
}

function count(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`
}
