import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs"
import { codeOf } from "../../../src/core/error.ts"
import { readIndex } from "../../../src/store/index/search-index.ts"
import { ownerFrom, type Settings, settingsFrom } from "../settings.ts"
import { type ShardName, shardFile } from "../shards/files.ts"
import { type Database, openDatabase } from "../store/connection.ts"
import { countProblems, recount } from "../store/counts.ts"
import { feeds } from "../store/feeds.ts"
import { keyProblems, roleProblems, rowSecurityProblems, serverVersion, versionProblems } from "../store/health.ts"
import { asOwner } from "../store/owner.ts"
import { allShards, nodesSeen, type PlacedShard, type SeenNode, SILENT_S } from "../store/shards.ts"
import { type Commands, say } from "./commands.ts"

type Finding = { what: string; problems: string[] }

/** A shard is reported if it is behind by more changes than this. Every shard is behind for a moment after a push. */
const MAX_LAG = 1_000
const MIN_FREE_BYTES = 2e9

export const checkCommands: Commands = {
  check: async () => {
    const settings = settingsFrom(process.env)
    const db = openDatabase({ ...settings, connections: 1 })
    try {
      const files = fileFindings(settings, process.env.DEX_HUB_MASTER_KEY_FILE!)
      const findings = [...files, ...(await databaseFindings(db, settings))]
      for (const { what, problems } of findings) {
        if (problems.length === 0) say(`ok       ${what}`)
        for (const problem of problems) say(`PROBLEM  ${problem}`)
      }
      if (findings.some(({ problems }) => problems.length > 0)) process.exitCode = 1
    } finally {
      await db.close()
    }
  },
  recount: async () => {
    const db = openDatabase({ ...settingsFrom(process.env), connections: 1 })
    try {
      const corrected = await asOwner(ownerFrom(process.env), (query) => recount(db, query))
      say(
        corrected === 0
          ? "All counts are plausible."
          : `The messages of ${pluralize(corrected, "conversation")} were counted again.`,
      )
    } finally {
      await db.close()
    }
  },
}

function fileFindings({ data }: Settings, keyFile: string): Finding[] {
  const isReadableByOthers = process.platform !== "win32" && (statSync(keyFile).mode & 0o077) !== 0
  return [
    {
      what: "only its user can read the master key's file",
      problems: isReadableByOthers ? [`Others can read the master key. Run: chmod 600 ${keyFile}`] : [],
    },
    { what: "there is room for the shards", problems: roomProblems(data) },
  ]
}

function roomProblems(data: string): string[] {
  try {
    mkdirSync(data, { recursive: true, mode: 0o700 })
    accessSync(data, constants.W_OK)
  } catch (error) {
    return [`${data} cannot be written to (${codeOf(error)}). Make it writable for this user, or set DEX_HUB_DATA.`]
  }
  const { bavail, bsize } = statfsSync(data)
  const free = bavail * bsize
  return free < MIN_FREE_BYTES
    ? [`${data} has ${(free / 1e9).toFixed(1)} GB left. Free some space, or set DEX_HUB_DATA.`]
    : []
}

async function databaseFindings(db: Database, { data, node }: Settings): Promise<Finding[]> {
  const server = await serverVersion(db).catch((error: { code?: string }) => error)
  if (!("version" in server)) return [{ what: "PostgreSQL", problems: [databaseProblem(server.code)] }]
  const version = await versionProblems(db)
  const basicFindings = [
    { what: `PostgreSQL ${server.version} answers`, problems: server.problems },
    { what: "the tables have the version that this dex-hub needs", problems: version },
  ]
  if (version.length > 0) return basicFindings
  const tenants = await feeds(db)
  const keys = await Promise.all(tenants.map(({ tenant }) => keyProblems(db, tenant)))
  const counts = await Promise.all(tenants.map(({ tenant }) => countProblems(db, tenant)))
  const seqs = new Map(tenants.map(({ tenant, seq }) => [tenant, seq]))
  const shards = await allShards(db)
  const isHere = (shard: PlacedShard) => shard.node === null || shard.node === node.name
  const behind = await Promise.all(
    shards.filter(isHere).map((shard) => lagProblems(data, shard, seqs.get(shard.tenant) ?? 0)),
  )
  return [
    ...basicFindings,
    { what: "neither role can bypass row-level security", problems: await roleProblems(db) },
    { what: "row-level security is on for every table", problems: await rowSecurityProblems(db) },
    { what: `the master key opens the keys of ${pluralize(tenants.length, "tenant")}`, problems: keys.flat() },
    { what: "the counts of conversations are plausible", problems: counts.flat() },
    { what: "the search shards are nearly up to date", problems: behind.flat() },
    { what: "all nodes with shards are running", problems: nodeProblems(shards, await nodesSeen(db), node.name) },
  ]
}

/** The first digits of PostgreSQL's error codes for a wrong role or password. */
const LOGIN_ERROR_CLASS = "28"

function databaseProblem(code = "no reason given"): string {
  return code.startsWith(LOGIN_ERROR_CLASS)
    ? `PostgreSQL refuses the login of DEX_HUB_DATABASE_URL (${code}), so it was not checked. \`dex-hub migrate\` creates the roles; check the password too.`
    : `PostgreSQL does not answer (${code}), so it was not checked. Check DEX_HUB_DATABASE_URL, and whether PostgreSQL is running.`
}

async function lagProblems(data: string, { tenant, shard }: ShardName, seq: number): Promise<string[]> {
  if (roomProblems(data).length > 0) return [] // already reported
  const index = readIndex(shardFile(data, { tenant, shard }))
  const followed = typeof index === "string" ? undefined : await index.followed()
  if (typeof index !== "string") index.close()
  const behind = seq - Number(followed?.split("@")[1] ?? 0)
  if (behind <= MAX_LAG) return []
  return [
    `Shard ${tenant}/${shard} is ${behind} changes behind. \`dex-hub serve\` on this machine brings it up to date.`,
  ]
}

/** Problems with other nodes. This node is not checked, because the operator who runs the command knows whether it is running. */
function nodeProblems(shards: PlacedShard[], nodes: SeenNode[], self: string): string[] {
  const nodesByName = new Map(nodes.map((node) => [node.name, node]))
  const whySilent = (name: string): string | undefined => {
    const node = nodesByName.get(name)
    if (!node) return "was never started"
    return node.silent_s > SILENT_S ? `was last seen ${node.silent_s} seconds ago` : undefined
  }
  const nameOf = ({ tenant, shard }: ShardName) => `${tenant}/${shard}`
  const remoteShards = shards.filter(({ node }) => node !== null && node !== self)
  const unreachable = [...Map.groupBy(remoteShards, ({ node }) => node!)].flatMap(([node, ownShards]) => {
    const why = whySilent(node)
    const names = ownShards.map(nameOf).join(", ")
    const url = nodesByName.get(node)?.url
    if (!why && url === null)
      return [`The others cannot reach node ${node}, which has ${names}. Start it with DEX_HUB_NODE_URL.`]
    return why
      ? [
          `Node ${node}, which has ${names}, ${why}: searches leave it out. Start it, or run: dex-hub shard move ${nameOf(ownShards[0]!)} NODE`,
        ]
      : []
  })
  const stuck = shards.flatMap((shard) => {
    const why = shard.moving_to === null ? undefined : whySilent(shard.moving_to)
    return why
      ? [
          `Shard ${nameOf(shard)} moves to ${shard.moving_to}, which ${why}; ${shard.node} still answers. Start it, or run: dex-hub shard move ${nameOf(shard)} ${shard.node}`,
        ]
      : []
  })
  return [...unreachable, ...stuck]
}

function pluralize(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`
}
