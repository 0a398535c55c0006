import { randomUUID } from "node:crypto"
import { accessSync, constants, mkdirSync, statfsSync, statSync } from "node:fs"
import { codeOf } from "../../../src/core/error.ts"
import { readIndex } from "../../../src/store/index/search-index.ts"
import { seqOf, tenantIndexFile } from "../search/fts5.ts"
import { ClusterRefusal, ClusterUnavailable, openCluster } from "../search/opensearch/client.ts"
import { differingConversations } from "../search/opensearch/indexer.ts"
import { createWordIndex } from "../search/opensearch/indexes.ts"
import {
  type ClusterSettings,
  outdatedSettings,
  ownerFrom,
  type Settings,
  SettingsProblem,
  settingsFrom,
} from "../settings.ts"
import { type Database, openDatabase } from "../store/connection.ts"
import { countProblems, recount } from "../store/counts.ts"
import { type Feed, feeds } from "../store/feeds.ts"
import { keyProblems, roleProblems, rowSecurityProblems, serverVersion, versionProblems } from "../store/health.ts"
import { asOwner } from "../store/owner.ts"
import { indexAgain } from "../store/word-index.ts"
import { type Commands, say } from "./commands.ts"

type Finding = { check: string; problems: string[] }

/** An index that is behind by more changes than this is reported. Every index is behind for a moment after a push. */
const MAX_CHANGES_BEHIND = 1_000
/** An index with more messages than this is reported. This is an estimate: such a large one was not measured. */
const MAX_MESSAGES = 5_000_000
const MIN_FREE_BYTES = 2e9

export const checkCommands: Commands = {
  check: async () => {
    const settings = settingsFrom(process.env)
    const db = openDatabase({ ...settings, connections: 1 })
    try {
      const files = fileFindings(settings, process.env.DEX_HUB_MASTER_KEY_FILE!)
      const findings = [...files, ...(await databaseFindings(db, settings))]
      for (const { check, problems } of findings) {
        if (problems.length === 0) say(`ok       ${check}`)
        for (const problem of problems) say(`PROBLEM  ${problem}`)
      }
      if (findings.some(({ problems }) => problems.length > 0)) process.exitCode = 1
    } finally {
      await db.close()
    }
  },
  reindex: async () => {
    const { cluster: clusterSettings, ...settings } = settingsFrom(process.env)
    if (!clusterSettings)
      throw new SettingsProblem("DEX_HUB_SEARCH_URL is not set. Set it to the addresses of OpenSearch.")
    const db = openDatabase({ ...settings, connections: 1 })
    const cluster = openCluster(clusterSettings)
    try {
      for (const { tenant, in_files } of await feeds(db)) {
        if (in_files) continue
        const differing = await differingConversations(db, cluster, tenant)
        if (differing.length > 0) await asOwner(ownerFrom(process.env), (query) => indexAgain(query, tenant, differing))
        say(`Tenant ${tenant}: ${pluralize(differing.length, "conversation")} will be indexed again.`)
      }
    } finally {
      await cluster.close()
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
      check: "only this user can read the master key's file",
      problems: isReadableByOthers ? [`Others can read the master key. Run: chmod 600 ${keyFile}`] : [],
    },
    { check: "no setting is outdated", problems: outdatedSettings(process.env) },
    { check: "there is room for the search index", problems: roomProblems(data) },
  ]
}

function roomProblems(data: string): string[] {
  try {
    mkdirSync(data, { recursive: true, mode: 0o700 })
    accessSync(data, constants.W_OK)
  } catch (error) {
    return [
      `${data} cannot be written to (${codeOf(error)}). Make it writable for this user, or set DEX_HUB_DATA to another folder.`,
    ]
  }
  const { bavail, bsize } = statfsSync(data)
  const free = bavail * bsize
  return free < MIN_FREE_BYTES
    ? [
        `${data} has ${(free / 1e9).toFixed(1)} GB left. Free some space, or set DEX_HUB_DATA to a folder on another disk.`,
      ]
    : []
}

async function databaseFindings(db: Database, settings: Settings): Promise<Finding[]> {
  const server = await serverVersion(db).catch((error: { code?: string }) => error)
  if (!("version" in server)) return [{ check: "PostgreSQL", problems: [databaseProblem(server.code)] }]
  const version = await versionProblems(db)
  const basicFindings = [
    { check: `PostgreSQL ${server.version} answers`, problems: server.problems },
    { check: "the tables have the version that this dex-hub needs", problems: version },
  ]
  if (version.length > 0) return basicFindings
  const tenants = await feeds(db)
  const keys = await Promise.all(tenants.map(({ tenant }) => keyProblems(db, tenant)))
  const counts = await Promise.all(tenants.map(({ tenant }) => countProblems(db, tenant)))
  const indexes = await Promise.all(
    tenants.map((feed) =>
      feed.in_files ? indexProblems(settings.data, feed.tenant, feed.seq) : clusterProblems(db, settings, feed),
    ),
  )
  return [
    ...basicFindings,
    { check: "neither role can bypass row-level security", problems: await roleProblems(db) },
    { check: "row-level security is on for every table", problems: await rowSecurityProblems(db) },
    { check: `the master key opens the keys of ${pluralize(tenants.length, "tenant")}`, problems: keys.flat() },
    { check: "the counts of conversations are plausible", problems: counts.flat() },
    { check: "the search index is nearly up to date, and not too large", problems: indexes.flat() },
    ...(settings.cluster
      ? [{ check: "OpenSearch allows the indexes of the hub", problems: await serviceProblems(settings.cluster) }]
      : []),
  ]
}

/** The first digits of PostgreSQL's error codes for a wrong role or password. */
const LOGIN_ERROR_CLASS = "28"

function databaseProblem(code = "no reason given"): string {
  return code.startsWith(LOGIN_ERROR_CLASS)
    ? `PostgreSQL refuses the login of DEX_HUB_DATABASE_URL (${code}), so the database was not checked. \`dex-hub migrate\` creates the roles; check the password too.`
    : `PostgreSQL does not answer (${code}), so the database was not checked. Check DEX_HUB_DATABASE_URL, and whether PostgreSQL is running.`
}

/** Creates an index and deletes it. Some services allow no scripts, or not all settings of an index. */
async function serviceProblems(settings: ClusterSettings): Promise<string[]> {
  const cluster = openCluster(settings)
  const name = `${cluster.prefix}-check-${randomUUID()}`
  try {
    await createWordIndex(cluster, name)
    await cluster.ask({ method: "DELETE", path: `/${name}` })
    return []
  } catch (error) {
    if (error instanceof ClusterRefusal)
      return [
        `OpenSearch refuses an index as the hub needs it (${error.status} ${error.type}). It needs a scripted similarity and the setting index.merge.policy.expunge_deletes_allowed: use a service that allows them, or leave the words in files.`,
      ]
    if (error instanceof ClusterUnavailable)
      return [`OpenSearch does not answer (${error.message}). Check DEX_HUB_SEARCH_URL, and the cluster's health.`]
    throw error
  } finally {
    await cluster.close()
  }
}

/** The problems of an index that is in OpenSearch. */
async function clusterProblems(
  db: Database,
  { cluster: settings }: Settings,
  { tenant, seq, followed }: Feed,
): Promise<string[]> {
  if (!settings)
    return [`The words of tenant ${tenant} are in OpenSearch, but DEX_HUB_SEARCH_URL is not set. Set it for every hub.`]
  const behind = seq - (followed ?? 0)
  if (behind > MAX_CHANGES_BEHIND)
    return [
      `OpenSearch's index of tenant ${tenant} is ${behind} changes behind. Any running hub with DEX_HUB_SEARCH_URL brings it up to date: check its log.`,
    ]
  if (behind > 0) return [] // what differs may only be newer
  const cluster = openCluster(settings)
  try {
    const differing = await differingConversations(db, cluster, tenant)
    return differing.length > 0
      ? [
          `OpenSearch's index of tenant ${tenant} differs from PostgreSQL in ${pluralize(differing.length, "conversation")}. Run: dex-hub reindex`,
        ]
      : []
  } catch (error) {
    if (!(error instanceof ClusterUnavailable || error instanceof ClusterRefusal)) throw error
    return [`OpenSearch could not be checked (${error.message}). Check DEX_HUB_SEARCH_URL, and the cluster's health.`]
  } finally {
    await cluster.close()
  }
}

async function indexProblems(data: string, tenant: number, seq: number): Promise<string[]> {
  if (roomProblems(data).length > 0) return [] // already reported
  const index = readIndex(tenantIndexFile(data, tenant))
  const isMissing = typeof index === "string"
  const behind = seq - (isMissing ? 0 : seqOf(await index.followed()))
  const messages = isMissing ? 0 : (await index.sizes([])).messages
  if (!isMissing) index.close()
  const problems: string[] = []
  if (behind > MAX_CHANGES_BEHIND)
    problems.push(
      `The search index of tenant ${tenant} is ${behind} changes behind. \`dex-hub serve\` on this machine brings it up to date.`,
    )
  if (messages > MAX_MESSAGES)
    problems.push(
      `The search index of tenant ${tenant} has ${messages} messages, so searches may take long. docs/scale.md says what was measured.`,
    )
  return problems
}

function pluralize(n: number, noun: string): string {
  return `${n} ${noun}${n === 1 ? "" : "s"}`
}
