import { isDexError } from "../core/error.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import { redactText } from "../redact/redact.ts"
import type { HistoryWriter, StoredMessage, UnitWrite, WriteResult } from "../store/history/store.ts"
import { largestPlannedBytes, plannedBytes, type SyncPlan, type UnitJob } from "./plan-sync.ts"
import { openReader, type UnitReader, UnitTooLargeError } from "./reader.ts"
import type { SyncSpending } from "./sync-spending.ts"
import type { SyncDeps, SyncOptions, SyncProgress, SyncReport } from "./sync-types.ts"
import { type NamedUnit, storedPath } from "./unit-names.ts"

/** How often new messages become searchable during a long sync, in milliseconds. */
const INDEX_EVERY_MS = 1_500
/**
 * The index is updated sooner if the new messages exceed this many characters, because a thread with a limited heap holds them.
 */
export const INDEX_EVERY_CHARS = 6_000_000
/**
 * A first sync reads this many units before it updates the index, so that a list fills sooner. Not if it may stop before the end,
 * because what it read must then be searchable.
 */
const LISTED_FIRST = 50
const SAVE_PROGRESS_EVERY_MS = 500
const SAVE_AGAIN_MS = 3_600_000
/** If no more than this remains, a sync does not pause: dex reads that much in about a second. */
const SMALL_REMAINDER = { bytes: 4 << 20, units: 100 }
/** How many units a sync reads before it may pause. They are the newest, which people look for first. */
const MIN_READ_BEFORE_PAUSE = 5

/** Reads and stores the planned units, and updates the index from time to time, so that new messages can already be found. */
export async function runSyncPlan(
  deps: SyncDeps,
  plan: SyncPlan,
  options: SyncOptions,
  report: SyncReport,
  spending: SyncSpending,
): Promise<void> {
  const { store, index } = deps
  const bytesTotal = plannedBytes(plan)
  const total = plan.found
  if (plan.jobs.length === 0) return saveCompleteProgress(store, total, plan.asOf)
  const reader = openReader(deps, bytesTotal, largestPlannedBytes(plan))
  const recent = recentMessages()
  let indexedAt = 0
  let savedAt = 0
  let remaining = plan.jobs.length
  let unread = plan.jobs.filter(({ isUnread }) => isUnread).length
  const hadUnread = unread > 0
  const fillsList =
    options.fillsList === true &&
    unread === plan.found &&
    unread > LISTED_FIRST &&
    options.deadline === undefined &&
    options.pauseAt === undefined
  const waiting = new Set(plan.jobs.map(({ unit }) => unit))
  /**
   * Never saves that all units are done, because progress is complete only when all messages are also searchable. Units that were
   * read before and are checked again do not count as unread.
   */
  const savePartialProgress = async () => {
    if (hadUnread)
      await store.saveProgress({ done: Math.max(0, Math.min(total - unread, total - 1)), total, at: plan.asOf })
  }
  const reportProgress = (phase: SyncProgress["phase"]) =>
    options.onProgress?.({ phase, done: total - remaining, total, bytes: report.bytes, bytesTotal })
  try {
    await savePartialProgress()
    reportProgress("reading")
    for await (const { job, result } of readAll(reader, plan.jobs)) {
      remaining--
      if (job.isUnread) unread--
      waiting.delete(job.unit)
      const written = result instanceof Error ? result : await writeOrHeal(store, result)
      if (written instanceof Error) {
        const { stamp } = job.unit
        const retryMark = written instanceof UnitTooLargeError ? { stamp, tried_at: Date.now() } : {}
        const reason = redactText(written.message)
        report.unreadable.push({ source: job.connector.source, path: storedPath(job.unit), reason, ...retryMark })
      } else {
        if (!fillsList || report.read >= LISTED_FIRST) recent.add(written.fresh)
        spending.add(written.paid)
        remaining += addUnitsToRead(plan, waiting, job, written.unitsToRead)
        report.read++
        report.changed += written.changed
        report.added_messages += written.added_messages
      }
      report.bytes += job.unit.bytes
      reportProgress("reading")
      const now = Date.now()
      if (now - savedAt > SAVE_PROGRESS_EVERY_MS) {
        savedAt = now
        await savePartialProgress()
      }
      const isListing = fillsList && report.read < LISTED_FIRST
      if (!isListing && (now - indexedAt > INDEX_EVERY_MS || recent.chars() > INDEX_EVERY_CHARS)) {
        await index.follow(store, { recent: recent.messagesOf })
        await spending.follow()
        recent.clear()
        indexedAt = Date.now()
      }
      // Give an abort signal a chance to arrive. Otherwise, results that were read ahead would be processed without a pause.
      if (options.signal) await new Promise((resolve) => setImmediate(resolve))
      const isPaused =
        isPast(options.pauseAt) && report.read >= MIN_READ_BEFORE_PAUSE && isLarge(bytesTotal - report.bytes, remaining)
      if (options.signal?.aborted || isPast(options.deadline) || isPaused) {
        report.complete = remaining === 0
        break
      }
    }
    await savePartialProgress()
    reportProgress("indexing")
    const { complete } = await index.follow(store, {
      recent: recent.messagesOf,
      deadline: options.deadline,
    })
    if (complete && (hadUnread || remaining === 0))
      await store.saveProgress({ done: total - unread, total, at: plan.asOf })
  } finally {
    await reader.close()
  }
}

function isLarge(bytes: number, units: number): boolean {
  return bytes > SMALL_REMAINDER.bytes || units > SMALL_REMAINDER.units
}

function isPast(moment: number | undefined): boolean {
  return moment !== undefined && Date.now() > moment
}

/** Adds units to the current jobs, except those that are already waiting to be read. Returns the number of added units. */
function addUnitsToRead(plan: SyncPlan, waiting: Set<NamedUnit>, { connector }: UnitJob, keys: string[]): number {
  const units = keys.flatMap((key) => plan.units.get(connector.source)?.get(key) ?? [])
  const unitsToAdd = units.filter((unit) => !waiting.has(unit))
  for (const unit of unitsToAdd) {
    waiting.add(unit)
    plan.jobs.push({ connector, unit, replay: false, isUnread: false })
  }
  return unitsToAdd.length
}

/**
 * Writes a unit. If the history is damaged, repairs it first. If that does not help, returns the error, so that the sync
 * continues without this unit.
 */
async function writeOrHeal(store: HistoryWriter, write: UnitWrite): Promise<WriteResult | Error> {
  try {
    return await store.writeUnit(write)
  } catch (error) {
    if (!isDexError(error) || error.code !== "corrupt") throw error
  }
  try {
    await store.heal(write.conversations.map(({ id }) => ({ source: write.source, id })))
    return await store.writeUnit(write)
  } catch (error) {
    if (isDexError(error) && error.code === "corrupt") return error
    throw error
  }
}

/**
 * Saves the time of this sync if the saved progress is old or incomplete, so that dex does not warn about an old history.
 * Otherwise saves nothing, because a sync without work should not write.
 */
async function saveCompleteProgress(store: HistoryWriter, total: number, asOf: number): Promise<void> {
  const saved = await store.progress()
  const isOld = saved === undefined || saved.done < saved.total || Date.now() - saved.at > SAVE_AGAIN_MS
  if (isOld) await store.saveProgress({ done: total, total, at: asOf })
}

/** Collects the messages written since the index was last updated. If a message was written twice, keeps the newer version. */
export function recentMessages() {
  const byRef = new Map<string, Map<number, StoredMessage>>()
  let chars = 0
  return {
    add(fresh: WriteResult["fresh"]): void {
      for (const { ref, messages } of fresh) {
        const name = formatRef(ref)
        const conversationMessages = byRef.get(name) ?? new Map<number, StoredMessage>()
        for (const message of messages) {
          conversationMessages.set(message.number, message)
          for (const part of message.parts) chars += part.text.length
        }
        byRef.set(name, conversationMessages)
      }
    },
    messagesOf: (ref: Ref) => byRef.get(formatRef(ref)),
    chars: () => chars,
    clear: () => {
      byRef.clear()
      chars = 0
    },
  }
}

/** Yields the results in the order of the jobs. Some units are read ahead while the caller stores an earlier one. */
async function* readAll(
  reader: UnitReader,
  jobs: UnitJob[],
): AsyncGenerator<{ job: UnitJob; result: UnitWrite | Error }> {
  const readAhead: { job: UnitJob; result: Promise<UnitWrite | Error> }[] = []
  let bytes = 0
  let next = 0
  while (next < jobs.length || readAhead.length > 0) {
    while (
      next < jobs.length &&
      (readAhead.length === 0 || (readAhead.length < reader.readAhead.units && bytes < reader.readAhead.bytes))
    ) {
      const job = jobs[next++]!
      bytes += job.unit.bytes
      const result = reader.read(job.connector.source, job.unit, job.replay).catch((error) => asError(error))
      readAhead.push({ job, result })
    }
    const { job, result } = readAhead.shift()!
    yield { job, result: await result }
    bytes -= job.unit.bytes
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
