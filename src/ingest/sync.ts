import { isDexError } from "../core/error.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import { cleanUpRestore } from "../store/history/kept-histories.ts"
import { damageFile, dropDamage, listDamage } from "../store/history/rot/damage-list.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import { removeLeftovers, removeSyncScratch } from "../store/sqlite/scratch.ts"
import { runSyncPlan } from "./carry-out-sync.ts"
import { largestPlannedBytes, plannedBytes, planSync, type SyncPlan } from "./plan-sync.ts"
import { spendingOfSync } from "./sync-spending.ts"
import type { SyncDeps, SyncOptions, SyncReport, TooMuchToRead } from "./sync-types.ts"

/** The maximum time, in milliseconds, for which a sync adds checksums to a history that an older dex wrote. */
const SEAL_MS = 2_000

/**
 * Reads everything new that the agents have written, newest first, and stores it in the history and the index. Only one sync runs
 * at a time; a second one reports that and returns. A sync can be stopped at any moment, and the next one continues.
 */
export async function syncHistory(
  deps: SyncDeps,
  options: SyncOptions & { maxBytes: number },
): Promise<SyncReport | TooMuchToRead>
export async function syncHistory(deps: SyncDeps, options?: SyncOptions): Promise<SyncReport>
export async function syncHistory(deps: SyncDeps, options: SyncOptions = {}): Promise<SyncReport | TooMuchToRead> {
  const started = Date.now()
  const report: SyncReport = {
    busy: false,
    complete: true,
    found: 0,
    read: 0,
    changed: 0,
    added_messages: 0,
    archived: 0,
    read_again: 0,
    bytes: 0,
    duration_ms: 0,
    unreadable: [],
    restored: [],
    damaged: [],
  }
  const lock = tryLock(deps.home.lock)
  if (!lock) return { ...report, busy: true, complete: false }
  let isContinuedInThread = false
  const spending = spendingOfSync(deps, options)
  try {
    removeLeftovers(deps.home.dir)
    cleanUpRestore(deps.home.history)
    const recorded = await healRecordedDamage(deps)
    const plan = await planSync(deps, options, report)
    if (options.maxBytes !== undefined && plannedBytes(plan) > options.maxBytes) {
      isContinuedInThread = true
      return { largestUnitBytes: largestPlannedBytes(plan), archived: report.archived }
    }
    await runSyncPlan(deps, plan, options, report, spending)
    await reportHealed(deps, recorded, report)
    await saveOutcome(deps, plan, report)
    if (report.read > 0 || (await deps.store.hasUnidentifiedProjects()))
      await (await import("./identify-projects.ts")).identifyProjects(deps)
    const indexing = await deps.index.follow(
      deps.store,
      options.deadline === undefined ? {} : { deadline: options.deadline },
    )
    report.complete &&= indexing.complete
    if (options.redactAgain || (indexing.complete && (await deps.index.isPurgeDue(deps.store))))
      await deps.index.purge(deps.store, { messagesChanged: options.redactAgain === true })
    const sealDeadline = Math.min(options.deadline ?? Number.POSITIVE_INFINITY, Date.now() + SEAL_MS)
    await unlessCorrupt(deps.store.seal(sealDeadline), undefined)
    const hasRead = report.read > 0 || indexing.indexed > 0
    await spending.finish(hasRead)
    if (hasRead) {
      await deps.store.checkpoint()
      deps.index.checkpoint()
    }
  } finally {
    // Keep the copies of databases if a thread continues the sync, so that it does not have to copy them again.
    if (!isContinuedInThread) removeSyncScratch(deps.home.dir)
    spending.close()
    lock.release()
  }
  report.duration_ms = Date.now() - started
  return report
}

/** Repairs the conversations that commands found damaged, or marks them so that this sync reads them again. Returns them. */
async function healRecordedDamage({ store, home }: SyncDeps): Promise<Ref[]> {
  const recorded = listDamage(damageFile(home.dir))
  await unlessCorrupt(store.heal(recorded), undefined)
  return recorded
}

/** Awaits `work`, or returns `fallback` if SQLite's own pages are damaged. `dex doctor` names the command that repairs those. */
async function unlessCorrupt<T, O>(work: Promise<T>, fallback: O): Promise<T | O> {
  try {
    return await work
  } catch (error) {
    if (isDexError(error) && error.code === "corrupt") return fallback
    throw error
  }
}

/**
 * Reports which conversations were healed, and removes all of them from the damage list. If one is still damaged, the next
 * command that notices the damage adds it again.
 */
async function reportHealed({ store, home }: SyncDeps, recorded: Ref[], report: SyncReport): Promise<void> {
  if (recorded.length === 0 || !report.complete) return
  const injuries = await unlessCorrupt(store.injuries(recorded), undefined)
  report.damaged = injuries ? injuries.map(({ ref }) => ref) : recorded
  const stillDamaged = new Set(report.damaged.map(formatRef))
  report.restored = recorded.filter((ref) => !stillDamaged.has(formatRef(ref)))
  dropDamage(damageFile(home.dir), recorded)
}

/**
 * Saves which files could not be read. After a complete sync, also saves the stamps of databases, so that an unchanged database
 * is not opened again.
 */
async function saveOutcome(deps: SyncDeps, plan: SyncPlan, report: SyncReport): Promise<void> {
  for (const { source } of deps.connectors) {
    const filesOfSource = report.unreadable.filter((file) => file.source === source)
    await deps.store.saveUnreadable(
      source,
      filesOfSource.map(({ source: _, ...file }) => file),
    )
  }
  if (!report.complete) return
  const failed = new Set(report.unreadable.map((file) => file.path))
  for (const { source, path, stamp } of plan.containers) {
    if (!failed.has(path)) await deps.store.saveContainer(source, path, stamp)
  }
}
