import { accessSync, constants, existsSync, readdirSync, statSync } from "node:fs"
import { join } from "node:path"
import { MAX_COUNTED_ROWS, type UnknownTables } from "../../agents/kit/foreign-sqlite.ts"
import { type Roots, rootsInHome } from "../../agents/kit/places.ts"
import { agentOf, isDexSource, agents as knownAgents } from "../../agents/registry.ts"
import { hubFile, hubState, readHub } from "../../config/hub.ts"
import { isoDate } from "../../core/dates.ts"
import { isDexError, messageOf } from "../../core/error.ts"
import { grouped, joinNames } from "../../core/format.ts"
import { lookAt } from "../../core/look-at.ts"
import { formatRef } from "../../core/ref.ts"
import { many } from "../../render/words.ts"
import { damageFile, noteDamage } from "../../store/history/rot/damage-list.ts"
import { damagedDatabases } from "../../store/history/rot/damaged-files.ts"
import { type Injury, isIndexMismatch } from "../../store/history/rot/inspect.ts"
import type { HistoryWriter } from "../../store/history/store.ts"
import { openPushed } from "../../store/hub/pushed.ts"
import { readIndex } from "../../store/index/search-index.ts"
import { markDamaged } from "../../store/sqlite/database.ts"
import type { Dex } from "../context.ts"
import { describeDeletions, upcomingDeletions } from "../deletions.ts"
import { describeConversations } from "../kinds.ts"
import { databaseBytes } from "../stats/run.ts"
import { unknownTablesOf } from "../unknown-tables-of.ts"
import { isSyncing } from "../unread.ts"
import type { DoctorInput } from "./doctor.ts"
import { checkLocalModel } from "./local-model.ts"
import type { RepairResult } from "./repair.ts"

export type Check = {
  name: string
  status: "ok" | "note" | "problem"
  message: string
  mend?: string
  unknown?: Record<string, number>
  unknown_tables?: UnknownTables[]
}

const MODEL_TIMEOUT_MS = 20_000

/** Runs every check, even if others fail. Checks do not change the user's data; a requested repair runs before them. */
export async function run(
  dex: Dex,
  input: DoctorInput = {},
): Promise<{ ok: boolean; repaired?: RepairResult; checks: Check[] }> {
  const repaired = input.repair ? await (await import("./repair.ts")).repair(dex) : undefined
  const checks: Check[] = [checkRuntime(dex)]
  for (const [name, check] of CHECKS) checks.push(...(await runCheck(name, check, dex)))
  return { ok: checks.every((check) => check.status !== "problem"), repaired, checks }
}

const CHECKS: [name: string, check: (dex: Dex) => Promise<Check[]>][] = [
  ["home", checkHome],
  ["history", checkHistory],
  ["projects", checkProjects],
  ["index", checkIndex],
  ["suggestions", checkSuggestions],
  ["hub", checkHub],
  ["sync", checkSync],
  ["sources", checkSources],
  ["other home", checkOtherHomes],
  ["agents", checkAgents],
  ["retention", checkRetention],
  ["model", checkModel],
  ["meaning", checkLocalModel],
]

async function runCheck(name: string, check: (dex: Dex) => Promise<Check[]>, dex: Dex): Promise<Check[]> {
  try {
    return await check(dex)
  } catch (error) {
    return [{ name, status: "problem", message: messageOf(error) }]
  }
}

function checkRuntime(dex: Dex): Check {
  return {
    name: "dex",
    status: "ok",
    message: `dex ${dex.version} on Node ${process.versions.node}, ${process.platform} ${process.arch}`,
  }
}

async function checkHome(dex: Dex): Promise<Check[]> {
  const { dir } = dex.home
  if (!existsSync(dir))
    return [
      {
        name: "home",
        status: "note",
        message: `${dir} does not exist yet, because nothing has been synced.`,
        mend: "dex sync",
      },
    ]
  try {
    accessSync(dir, constants.W_OK)
  } catch {
    return [
      {
        name: "home",
        status: "problem",
        message: `${dir} is not writable, so nothing new can be stored.`,
        mend: `chmod u+w ${dir}`,
      },
    ]
  }
  const sizeText = `${dir}: ${megabytes(databaseBytes(dex.home.history))} history, ${megabytes(databaseBytes(dex.home.index))} index`
  // Windows keeps permissions in access control lists, which Node does not read; a file there inherits those of its folder.
  if (dex.machine.platform === "win32")
    return [{ name: "home", status: "ok", message: `${sizeText}; file permissions are not checked on Windows` }]
  const readable = readdirSync(dir).filter((name) => !NOT_DATA.test(name) && isAccessibleToOthers(join(dir, name)))
  if (readable.length > 0)
    return [
      {
        name: "home",
        status: "problem",
        message: `Other users of this machine can read ${readable.join(" and ")} in ${dir}.`,
        mend: `chmod go= ${readable.map((file) => join(dir, file)).join(" ")}`,
      },
    ]
  return [{ name: "home", status: "ok", message: `${sizeText}, readable by you only` }]
}

/** Matches names in dex's folder that are not data: hidden files, and packages with agents that the user added. */
const NOT_DATA = /^\.|^node_modules$|^package(-lock)?\.json$/

/** True if anyone except the owner can read or change the file. */
function isAccessibleToOthers(path: string): boolean {
  return ((statSync(path, { throwIfNoEntry: false })?.mode ?? 0) & 0o077) !== 0
}

async function checkHistory(dex: Dex): Promise<Check[]> {
  if (!existsSync(dex.home.history)) return []
  const damagedCopies = damagedDatabases(dex.home.history).map(
    (file): Check => ({
      name: "history",
      status: "note",
      message: `A damaged history.db was kept as ${file} (${megabytes(databaseBytes(file))}) when it was repaired. Delete it when you no longer need it; \`dex forget\` deletes it too.`,
      mend: `rm ${file}`,
    }),
  )
  return [...(await checkDatabase(dex)), ...damagedCopies]
}

async function checkDatabase(dex: Dex): Promise<Check[]> {
  try {
    const store = await dex.storeToWrite()
    const problems = await store.check()
    const contentChecks = await checkContents(dex, store).catch((error: unknown) => {
      if (problems.length === 0) throw error
      return [] // SQLite's own report explains more than this error.
    })
    const hasProblem = contentChecks.some(({ status }) => status === "problem")
    // If the contents are damaged, problems with SQLite's indexes are a consequence of that.
    if (problems.length === 0 || (hasProblem && problems.every(isIndexMismatch))) return contentChecks
    return [
      unreadableCheck(problems.slice(0, 3).join("; ")),
      ...contentChecks.filter(({ status }) => status === "problem"),
    ]
  } catch (error) {
    if (isDexError(error) && error.code !== "corrupt")
      return [{ name: "history", status: "problem", message: error.message }]
    return [unreadableCheck(messageOf(error))]
  }
}

/** Says which folders were joined to one project, and why. */
async function checkProjects(dex: Dex): Promise<Check[]> {
  if (!existsSync(dex.home.history)) return []
  const projects = await (await dex.storeToWrite()).projectIdentities()
  const joined = projects.flatMap(({ path, folders = [] }) => folders.map((folder) => ({ ...folder, project: path })))
  const [first] = joined
  if (first === undefined) return []
  const message = [
    `${many(projects.length, "project")}.`,
    `${first.path} belongs to ${first.project}: ${first.why}.`,
    ...(joined.length > 1
      ? [`Joined in the same way: ${many(joined.length - 1, "other folder")}. See: dex project`]
      : []),
  ].join(" ")
  return [{ name: "projects", status: "ok", message }]
}

/** The result of the check if SQLite cannot read the complete file. */
function unreadableCheck(what: string): Check {
  return {
    name: "history",
    status: "problem",
    message: `history.db is damaged (${what}). Repairing it writes everything that can still be read to a new file, keeps the damaged one next to it, and reads your agents' files again.`,
    mend: REPAIR,
  }
}

const REPAIR = "dex doctor --repair"
const MAX_NAMED = 20

/** Reads every row and every block. Also saves a list of the damage for the next sync. */
async function checkContents(dex: Dex, store: HistoryWriter): Promise<Check[]> {
  const name = "history"
  const { kinds, messages } = await store.stats()
  const { conversations: damagedConversations, others, unsealed } = await store.inspect()
  noteDamage(
    damageFile(dex.home.dir),
    damagedConversations.map(({ ref }) => formatRef(ref)),
  )
  const checks: Check[] = damagedConversations
    .slice(0, MAX_NAMED)
    .map((damage) => ({ name, status: "problem", ...damageMessage(damage) }))
  if (damagedConversations.length > MAX_NAMED)
    checks.push({
      name,
      status: "problem",
      message: `${many(damagedConversations.length - MAX_NAMED, "more damaged conversation")}.`,
      mend: REPAIR,
    })
  if (others.length > 0)
    checks.push({ name, status: "problem", message: `Also damaged: ${others.join("; ")}.`, mend: REPAIR })
  if (checks.length === 0)
    checks.push({
      name,
      status: "ok",
      message: `${describeConversations(kinds)}, ${grouped(messages)} messages; every row and block was read`,
    })
  if (unsealed > 0)
    checks.push({
      name,
      status: "note",
      message: `${many(unsealed, "conversation")} without checksums, in which damage may go unnoticed. Every sync adds some checksums.`,
      mend: "dex sync",
    })
  return checks
}

function damageMessage({ ref, what, restores }: Injury): Pick<Check, "message" | "mend"> {
  const damageText = `${formatRef(ref)} is damaged: ${what.join(", ")}.`
  if (restores === "nothing")
    return {
      message: `${damageText} Neither the agent's own file nor the raw records can restore this part, so it is lost. The rest of the conversation can be read.`,
    }
  const remedies = {
    source: "The agent's own file is still there",
    records: "The raw records are undamaged",
  }
  return { message: `${damageText} ${remedies[restores]}: nothing is lost.`, mend: "dex sync" }
}

async function checkIndex(dex: Dex): Promise<Check[]> {
  if (!existsSync(dex.home.history)) return []
  const name = "index"
  const index = readIndex(dex.home.index)
  if (index === "none")
    return [
      {
        name,
        status: "note",
        message: "There is no search index. Search works without it, but slowly.",
        mend: "dex sync",
      },
    ]
  if (index === "damaged") return [damagedIndex("it cannot be read")]
  try {
    const [problem] = await index.check()
    if (problem !== undefined) {
      markDamaged(dex.home.index)
      return [damagedIndex(problem)]
    }
    if (await index.isBehind(await dex.store()))
      return [{ name, status: "note", message: "The search index is behind the history.", mend: "dex sync" }]
    return [{ name, status: "ok", message: "healthy and up to date" }]
  } finally {
    index.close()
  }
}

function damagedIndex(what: string): Check {
  return {
    name: "index",
    status: "problem",
    message: `The search index is damaged (${what}). Nothing is lost: it is rebuilt from the history, and search reads the history until then.`,
    mend: "dex sync",
  }
}

async function checkSuggestions(dex: Dex): Promise<Check[]> {
  const file = dex.home.suggest
  if (!existsSync(file)) return []
  const name = "suggestions"
  const moveAway = `mv ${file} ${file}.damaged`
  try {
    const suggestions = await dex.suggestions()
    const damage = suggestions.check()
    if (damage.length > 0)
      return [{ name, status: "problem", message: `suggest.db is damaged: ${damage[0]}`, mend: moveAway }]
    const { waiting, dead, last_problem } = suggestions.outbox()
    const disabled = suggestions.subscriptions().filter(({ enabled }) => !enabled)
    const message = `subscriptions: ${grouped(suggestions.subscriptions().length)}; pending webhook messages: ${grouped(waiting)}`
    if (dead > 0)
      return [
        {
          name,
          status: "note",
          message: `${message}, ${grouped(dead)} failed permanently (${last_problem ?? "no answer"})`,
          mend: "dex subscribe --list --retry-dead --send",
        },
      ]
    return [
      {
        name,
        status: disabled.length > 0 ? "note" : "ok",
        message: disabled.length > 0 ? `${message}; disabled subscriptions: ${disabled.length}` : message,
      },
    ]
  } catch (error) {
    return [{ name, status: "problem", message: messageOf(error), mend: moveAway }]
  }
}

/** Checks only what is on this machine; `dex hub status` contacts the hub. */
async function checkHub(dex: Dex): Promise<Check[]> {
  const file = hubState(dex.home)
  if (!existsSync(file) && !existsSync(hubFile(dex.home))) return []
  const name = "hub"
  const { address, token, consents } = readHub(dex.home)
  const pushed = openPushed(file)
  try {
    const { problem } = existsSync(file) ? pushed.health() : {}
    const heldCount = existsSync(file) ? pushed.held().length : 0
    const message = `${address === undefined || token === undefined ? "logged out" : address}; projects shared: ${consents.length}; conversations held back: ${heldCount}`
    return problem === undefined
      ? [{ name, status: "ok", message }]
      : [{ name, status: "note", message: `${message}. ${problem}`, mend: "dex hub push" }]
  } catch (error) {
    if (!isDexError(error) || error.code !== "corrupt") throw error
    const consequence =
      "It contained the list of conversations that are held back. Hold them back again before the next push."
    return [
      { name, status: "problem", message: `hub.db is damaged. ${consequence}`, mend: `mv ${file} ${file}.damaged` },
    ]
  } finally {
    pushed.close()
  }
}

async function checkSync(dex: Dex): Promise<Check[]> {
  if (!existsSync(dex.home.history)) return []
  const progress = await (await dex.store()).progress()
  const progressText = progress && `${grouped(progress.done)} of ${grouped(progress.total)} transcripts read`
  if (isSyncing(dex)) {
    // Until the sync knows how much there is to read, the stored progress is that of the previous sync.
    const isUnderWay = progress && progress.done < progress.total
    const state = isUnderWay
      ? `has been running since ${utcMinute(progress.at)}: ${progressText}`
      : "is running and looking for changes"
    return [{ name: "sync", status: "note", message: `A sync ${state}.` }]
  }
  if (progress && progress.done < progress.total)
    return [{ name: "sync", status: "note", message: `The last sync was stopped: ${progressText}.`, mend: "dex sync" }]
  return [
    {
      name: "sync",
      status: "ok",
      message: progress ? `${progressText}, last sync ${utcMinute(progress.at)}` : "nothing has been synced yet",
    },
  ]
}

function utcMinute(at: number): string {
  return `${isoDate(at).slice(0, 16).replace("T", " ")} UTC`
}

async function checkSources(dex: Dex): Promise<Check[]> {
  if (!existsSync(dex.home.history)) return []
  const reports = await (await dex.store()).sourceReport()
  const unknownIn = await unknownTablesOf(dex, reports)
  return reports.map((report) => {
    const skippedCount = sum(report.skipped)
    const unknownCount = sum(report.unknown)
    const parts = [describeConversations(report.kinds)]
    if (report.archived > 0) parts.push(`dex has copies of ${many(report.archived, "deleted file")}`)
    if (skippedCount > 0) parts.push(`${grouped(skippedCount)} damaged ${skippedCount === 1 ? "record" : "records"}`)
    if (unknownCount > 0)
      parts.push(describeUnknownRecords(agentOf(report.source)?.name ?? report.source, report.unknown))
    if (report.unreadable.length > 0)
      parts.push(
        `${report.unreadable.length} unreadable: ${report.unreadable[0]!.path} (${report.unreadable[0]!.reason})`,
      )
    const tables = unknownIn.get(report.source) ?? []
    parts.push(...tables.map(describeUnknownTables))
    const newerCount = unknownCount + tables.length
    const hasTrouble = skippedCount + newerCount + report.unreadable.length > 0
    const isOnlyNewer = newerCount > 0 && skippedCount + report.unreadable.length === 0
    return {
      name: report.source,
      status: hasTrouble ? "note" : "ok",
      message: parts.join("; "),
      mend: !hasTrouble ? undefined : isOnlyNewer ? "npm install -g dexctx@latest" : "dex doctor sources",
      unknown: unknownCount > 0 ? report.unknown : undefined,
      unknown_tables: tables.length > 0 ? tables : undefined,
    }
  })
}

const MAX_NAMED_TYPES = 4

/** Describes records of unknown types, which a newer version of an agent may write. */
function describeUnknownRecords(name: string, unknown: Record<string, number>): string {
  const types = Object.entries(unknown).sort(([, a], [, b]) => b - a)
  const namedTypes = types.slice(0, MAX_NAMED_TYPES).map(([type, count]) => `${type} (${grouped(count)})`)
  const moreText = types.length > MAX_NAMED_TYPES ? `, and ${types.length - MAX_NAMED_TYPES} more` : ""
  return `${name} wrote records of types that this version of dex does not know, probably because the agent is newer: ${namedTypes.join(", ")}${moreText}. They are kept, and a newer dex can read them without the agent's files`
}

/** Describes unknown tables, in which a newer version of an agent may store conversations, as OpenCode 2 did. */
function describeUnknownTables({ path, tables }: UnknownTables): string {
  const sortedTables = Object.entries(tables).sort(([, a], [, b]) => b - a)
  const namedTables = sortedTables.slice(0, MAX_NAMED_TYPES).map(([name, rows]) => `${name} (${describeRows(rows)})`)
  const moreText = sortedTables.length > MAX_NAMED_TYPES ? `, and ${sortedTables.length - MAX_NAMED_TYPES} more` : ""
  const tableCount = `${sortedTables.length} ${sortedTables.length === 1 ? "table" : "tables"}`
  return `${path} has ${tableCount} that this dex does not know and does not read: ${namedTables.join(", ")}${moreText}`
}

function describeRows(count: number): string {
  return `${grouped(count)}${count === MAX_COUNTED_ROWS ? " or more" : ""} ${count === 1 ? "row" : "rows"}`
}

/** Lists the agents in the other home folders that the setting `sources.extra_roots` names. */
async function checkOtherHomes({ machine }: Dex): Promise<Check[]> {
  return (machine.otherHomes ?? []).map((path) => {
    const isPresent = (roots: Roots) => rootsInHome(roots, path).some((root) => lookAt(root) !== undefined)
    const agents = knownAgents.filter(({ source, roots }) => roots && !isDexSource(source) && isPresent(roots))
    const names = agents.map(({ name }) => name)
    return agents.length > 0
      ? { name: "other home", status: "ok", message: `${path}: ${joinNames(names)}` }
      : {
          name: "other home",
          status: "note",
          message: `${path}: no agent was found in it. A path in sources.extra_roots must be a home folder.`,
          mend: "dex config set sources.extra_roots <homes, with commas>",
        }
  })
}

/** Lists the agents that the user added. */
async function checkAgents(dex: Dex): Promise<Check[]> {
  const outside = await dex.outsideAgents()
  return [
    ...outside.agents.map(
      ({ source, name, path }): Check => ({
        name: "agents",
        status: "ok",
        message: `${name} (${source}) from ${path}`,
      }),
    ),
    ...outside.unloaded.map(
      ({ path, reason }): Check => ({
        name: "agents",
        status: "problem",
        message: `${path} cannot be loaded: ${reason}. Conversations read earlier are kept.`,
        mend: "dex config set agents <paths or packages, with commas>",
      }),
    ),
  ]
}

async function checkRetention(dex: Dex): Promise<Check[]> {
  const deletions = await upcomingDeletions(dex)
  if (!deletions) return []
  const { days, isChosen, unreadCount } = deletions
  const rule = `Claude Code deletes transcripts after ${days} days.`
  const advice = isChosen ? "" : ' To keep them longer, set "cleanupPeriodDays" in its settings.json.'
  const message = `${rule} ${describeDeletions(deletions) ?? "It will delete none within the next week."} Synced transcripts are kept here permanently.${advice}`
  return [
    {
      name: "retention",
      status: unreadCount > 0 ? "note" : "ok",
      message,
      mend: unreadCount > 0 ? "dex sync" : undefined,
    },
  ]
}

/** Sends the model a one-word request, because only an answer proves that address, key and model are right. */
async function checkModel(dex: Dex): Promise<Check[]> {
  const started = performance.now()
  const timeout = AbortSignal.timeout(MODEL_TIMEOUT_MS)
  let id = "The model"
  try {
    const { configuredModel } = await import("../model.ts")
    const model = await configuredModel(dex)
    if (!model) return []
    id = model.id
    await model.reply({
      system: "",
      messages: [{ role: "user", content: "Answer with the word: ok" }],
      max_tokens: 16,
      signal: dex.signal ? AbortSignal.any([dex.signal, timeout]) : timeout,
    })
    return [{ name: "model", status: "ok", message: `${id} answers (${Math.round(performance.now() - started)} ms)` }]
  } catch (error) {
    if (!isDexError(error)) throw error
    if (error.code === "llm_stopped")
      return [
        {
          name: "model",
          status: "note",
          message: `${id} did not answer within ${MODEL_TIMEOUT_MS / 1000} s. A model on this machine may still be loading: try again.`,
          mend: "dex doctor",
        },
      ]
    const mend = MODEL_FIXES[error.code]
    const status = error.code === "llm_not_allowed" ? "note" : "problem"
    return [{ name: "model", status, message: error.message, mend }]
  }
}

const MODEL_FIXES: Record<string, string> = {
  llm_refused: "dex config set llm.api_key",
  llm_no_model: "dex config set llm.model …",
  llm_unreachable: "dex config set llm.provider …",
  llm_wrong_answer: "dex config set llm.provider …",
  llm_no_program: "dex config set llm.provider …",
}

function sum(counts: Record<string, number>): number {
  return Object.values(counts).reduce((total, count) => total + count, 0)
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
}
