import { sep } from "node:path"
import { type Connector, isUnreadable, type Machine, type Seen, type Unit } from "../agents/kit/connector.ts"
import type { Unloaded } from "../agents/outside.ts"
import type { SourceId } from "../core/conversation.ts"
import { isDexError, messageOf } from "../core/error.ts"
import { formatRef, type Ref } from "../core/ref.ts"
import type { EmbedSettings } from "../embed/embedder.ts"
import { redactText } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { damageFile, dropDamage, notedDamage } from "../store/history/rot/damage-list.ts"
import type {
  HistoryWriter,
  StoredMessage,
  UnitMark,
  UnitWrite,
  UnreadableFile,
  WriteResult,
} from "../store/history/store.ts"
import type { SearchIndex } from "../store/index/search-index.ts"
import { tryLock } from "../store/sqlite/lock.ts"
import { removeLeftovers, removeSyncScratch, syncScratch } from "../store/sqlite/scratch.ts"
import type { EmbedReport } from "./embed-messages.ts"
import { openReader, TooLarge, type UnitReader } from "./reader.ts"
import { type NamedUnit, named, storedPath, twinOf } from "./unit-names.ts"

export type SyncDeps = {
  store: HistoryWriter
  index: SearchIndex
  connectors: readonly Connector[]
  /** The agents that the user brings, by name, and those of them that cannot be loaded. */
  outside?: readonly string[]
  unloaded?: readonly Unloaded[]
  machine: Machine
  home: { dir: string; history: string; lock: string }
}

export type SyncOptions = {
  /** Stop here; what is left is read by the next sync. */
  deadline?: number
  /** Stop here too, but only where much is left: what is little is read to its end, and all that was read can be found. */
  pauseAt?: number
  /** Do nothing, and say how large the largest unit is, when there is more than this to read. */
  mostBytes?: number
  redactAgain?: boolean
  /** Where another one is syncing, wait for its end and then read what it did not see. */
  wait?: boolean
  /** Set when messages are to get vectors at the end. Throws a DexError where the settings are not complete. */
  embed?: () => EmbedSettings
  signal?: AbortSignal
  onProgress?: (progress: SyncProgress) => void
}

export type SyncProgress = {
  phase: "waiting" | "reading" | "indexing" | "asking" | "embedding" | "mapping" | "learning"
  done: number
  total: number
  bytes: number
  bytesTotal: number
  /** Spent on a model so far. */
  tokens?: number
}

export type SyncReport = {
  /** Somebody else is syncing: nothing was done here, and what they read is there for everyone. */
  busy: boolean
  /** All that was found is read. False after a deadline or an interruption. */
  complete: boolean
  found: number
  read: number
  changed: number
  added_messages: number
  archived: number
  /** Of those read, how many only because this dex keeps more of them than the one that read them before. */
  read_again: number
  bytes: number
  duration_ms: number
  unreadable: (UnreadableFile & { source: SourceId })[]
  /** Conversations that were damaged in the history and are whole again. */
  restored: Ref[]
  /** Conversations of which something is damaged and could not be restored. */
  damaged: Ref[]
  /** The state of the vectors, if an embedder is set. */
  embedding?: EmbedReport
}

/** `archived` was done already: it is part of looking at what there is. */
export type TooMuch = { largestUnitBytes: number; archived: number }

/** How often what was read becomes searchable during a long sync. */
const INDEX_EVERY_MS = 1_500
/** And not later than after so many characters: they wait in a thread whose heap is bounded, and a fast machine reads many. */
const INDEX_EVERY_CHARS = 6_000_000
const SAVE_PROGRESS_EVERY_MS = 500
const SAY_AGAIN_MS = 3_600_000
const TRY_AGAIN_MS = 24 * 3_600_000
/** What is left of a reading is little when it has no more than this: about as much as is read in a second. */
const LITTLE = { bytes: 4 << 20, units: 100 }
/** And a reading never pauses before it has read so many units: the newest of them are what somebody looks for first. */
const READ_FIRST = 5
/** A history that an older dex wrote gets its checksums over several syncs, this long each. */
const SEAL_MS = 2_000

/**
 * Brings everything that the agents have written into the history and the index: newest first, only what is new. One
 * sync runs at a time; a second one says so and leaves. It can be stopped at any moment and goes on where it was.
 */
export async function syncHistory(
  deps: SyncDeps,
  options: SyncOptions & { mostBytes: number },
): Promise<SyncReport | TooMuch>
export async function syncHistory(deps: SyncDeps, options?: SyncOptions): Promise<SyncReport>
export async function syncHistory(deps: SyncDeps, options: SyncOptions = {}): Promise<SyncReport | TooMuch> {
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
  let isHandedOn = false
  try {
    removeLeftovers(deps.home.dir)
    const noted = await healNoted(deps)
    const plan = await makePlan(deps, options, report)
    if (options.mostBytes !== undefined && bytesOf(plan) > options.mostBytes) {
      isHandedOn = true
      return { largestUnitBytes: largestOf(plan), archived: report.archived }
    }
    await carryOut(deps, plan, options, report)
    await sayHealed(deps, noted, report)
    await saveOutcome(deps, plan, report)
    const followed = await deps.index.follow(
      deps.store,
      options.deadline === undefined ? {} : { deadline: options.deadline },
    )
    report.complete &&= followed.complete
    if (options.redactAgain || (followed.complete && (await deps.index.isPurgeDue(deps.store))))
      await deps.index.purge(deps.store, { messagesChanged: options.redactAgain === true })
    const until = Math.min(options.deadline ?? Number.POSITIVE_INFINITY, Date.now() + SEAL_MS)
    await orIfCorrupt(deps.store.seal(until), undefined)
    if (report.read > 0 || followed.indexed > 0) {
      await deps.store.checkpoint()
      deps.index.checkpoint()
    }
  } finally {
    // Whoever goes on with what was too much here need not copy databases again.
    if (!isHandedOn) removeSyncScratch(deps.home.dir)
    lock.release()
  }
  report.duration_ms = Date.now() - started
  return report
}

/** What commands found damaged is restored, or marked so that this sync reads it again. */
async function healNoted({ store, home }: SyncDeps): Promise<Ref[]> {
  const noted = notedDamage(damageFile(home.dir))
  await orIfCorrupt(store.heal(noted), undefined)
  return noted
}

/** Where SQLite's own pages are damaged, one command repairs it (doctor says which), and this sync goes on as far as it can. */
async function orIfCorrupt<T, O>(work: Promise<T>, otherwise: O): Promise<T | O> {
  try {
    return await work
  } catch (error) {
    if (isDexError(error) && error.code === "corrupt") return otherwise
    throw error
  }
}

/** Takes what was tried off the list: whoever meets it again, damaged still, notes it again. */
async function sayHealed({ store, home }: SyncDeps, noted: Ref[], report: SyncReport): Promise<void> {
  if (noted.length === 0 || !report.complete) return
  const injuries = await orIfCorrupt(store.injuries(noted), undefined)
  report.damaged = injuries ? injuries.map(({ ref }) => ref) : noted
  const still = new Set(report.damaged.map(formatRef))
  report.restored = noted.filter((ref) => !still.has(formatRef(ref)))
  dropDamage(damageFile(home.dir), noted)
}

/** A database that was read whole need not be opened again until it changes. */
async function saveOutcome(deps: SyncDeps, plan: Plan, report: SyncReport): Promise<void> {
  for (const { source } of deps.connectors) {
    const own = report.unreadable.filter((file) => file.source === source)
    await deps.store.saveUnreadable(
      source,
      own.map(({ source: _, ...file }) => file),
    )
  }
  if (!report.complete) return
  const failed = new Set(report.unreadable.map((file) => file.path))
  for (const { source, path, stamp } of plan.containers) {
    if (!failed.has(path)) await deps.store.saveContainer(source, path, stamp)
  }
}

/** `isUnread`: nothing of it is stored yet. Others were read before, and are looked at again. */
type Job = { connector: Connector; unit: NamedUnit; replay: boolean; isUnread: boolean }
type Plan = {
  /** What was written before this moment is in it. */
  asOf: number
  jobs: Job[]
  found: number
  containers: { source: SourceId; path: string; stamp: string }[]
  units: Map<SourceId, Map<string, NamedUnit>>
}

/** What there is to do: new and grown units, units whose connector knows more now, and the marking of what is gone. */
async function makePlan(deps: SyncDeps, options: SyncOptions, report: SyncReport): Promise<Plan> {
  const plan: Plan = { asOf: Date.now(), jobs: [], found: 0, containers: [], units: new Map() }
  for (const connector of deps.connectors) {
    const { source } = connector
    if (options.redactAgain) await redactNames(deps.store, source)
    const known = await deps.store.knownUnits(source)
    const containers = await deps.store.knownContainers(source)
    const skippedContainers = new Set<string>()
    const seen = (container: string, stamp: string) => {
      const path = redactText(container)
      const unchanged = containers.get(path) === stamp && !options.redactAgain
      if (unchanged) skippedContainers.add(path)
      else plan.containers.push({ source, path, stamp })
      return unchanged
    }
    const { present, unreadable } = discoverUnits(connector, deps, known, seen, skippedContainers)
    plan.units.set(source, present)
    const gone: string[] = []
    for (const [key, unit] of known) {
      if (present.has(key) || skippedContainers.has(unit.path)) continue
      if (!unreadable.some(({ path }) => isBelow(unit.path, path))) gone.push(key)
      if (needsReplay(unit, connector, options)) {
        const kept = await keptUnit(deps.store, source, key)
        if (kept) plan.jobs.push({ connector, unit: kept, replay: true, isUnread: false })
      }
    }
    const { archived, heirs } = await deps.store.archiveUnits(source, gone)
    report.archived += archived
    const inherits = new Set(heirs)
    const tooLarge = await recentlyTooLarge(deps.store, source)
    for (const unit of present.values()) {
      if (!inherits.has(unit.key) && !isWorkFor(known.get(unit.key), unit, connector, options)) continue
      const failed = tooLarge.get(storedPath(unit))
      if (failed && failed.stamp === unit.stamp) {
        unreadable.push(failed)
        continue
      }
      plan.jobs.push({ connector, unit, replay: false, isUnread: !known.has(unit.key) })
      const before = known.get(unit.key)
      if (before?.stamp === unit.stamp && before.connector_version !== connector.version) report.read_again++
    }
    report.unreadable.push(...unreadable.map((file) => ({ source, ...file })))
    plan.found += present.size + [...known.values()].filter((unit) => skippedContainers.has(unit.path)).length
  }
  for (const file of deps.unloaded ?? []) report.unreadable.push({ source: "agents", ...file })
  plan.jobs.sort((a, b) => b.unit.modifiedAt - a.unit.modifiedAt)
  report.found = plan.found
  return plan
}

/** What there is, by key. A file that has the name of another one, in another root, gets a key of its own. */
function discoverUnits(
  connector: Connector,
  deps: SyncDeps,
  known: Map<string, UnitMark>,
  seen: Seen,
  skippedContainers: Set<string>,
): { present: Map<string, NamedUnit>; unreadable: UnreadableFile[] } {
  const present = new Map<string, NamedUnit>()
  const unreadable: UnreadableFile[] = []
  const elsewhere: NamedUnit[] = []
  for (const found of discoverAll(connector, deps, seen)) {
    if (isUnreadable(found)) {
      unreadable.push({ path: redactText(found.path), reason: redactText(found.unreadable) })
      continue
    }
    // What is stored under its own name needs no second look.
    const unit = known.get(found.key)?.path === found.path ? found : named(found)
    const before = known.get(unit.key)
    if (present.has(unit.key) || (before && before.path !== storedPath(unit))) elsewhere.push(unit)
    else present.set(unit.key, unit)
  }
  // Only now is it known whether the file that had this key is still there, or has moved.
  for (const found of elsewhere) {
    const holder = present.get(found.key)
    if (holder?.path === found.path) continue
    const before = known.get(found.key)
    const isTaken = holder !== undefined || (before !== undefined && skippedContainers.has(before.path))
    const twin = twinOf(found)
    const unit = isTaken || known.has(twin.key) ? twin : found
    present.set(unit.key, unit)
  }
  return { present, unreadable }
}

/** Names that were stored before there was a rule for what is in them. */
async function redactNames(store: HistoryWriter, source: SourceId): Promise<void> {
  for (const [key, { path }] of await store.knownUnits(source)) {
    const unit = named({ key, path })
    if (unit.shownPath !== undefined) await store.renameUnit(source, key, { key: unit.key, path: unit.shownPath })
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** Files that took more memory than there is for one, by path. Each try costs seconds, so they are tried once a day. */
async function recentlyTooLarge(store: HistoryWriter, source: SourceId): Promise<Map<string, UnreadableFile>> {
  const files = await store.unreadable(source)
  return new Map(
    files
      .filter(({ tried_at }) => tried_at !== undefined && Date.now() - tried_at < TRY_AGAIN_MS)
      .map((file) => [file.path, file]),
  )
}

function* discoverAll(connector: Connector, { machine, home }: SyncDeps, seen: Seen) {
  for (const root of connector.roots(machine)) {
    try {
      yield* connector.discover(root, seen, syncScratch(home.dir))
    } catch (error) {
      yield { unreadable: messageOf(error), path: root }
    }
  }
}

function isWorkFor(known: UnitMark | undefined, unit: Unit, connector: Connector, options: SyncOptions): boolean {
  if (!known || known.state === "archived") return true
  if (known.stamp !== unit.stamp || known.connector_version !== connector.version) return true
  return options.redactAgain === true && known.redaction_version !== REDACTION_VERSION
}

function needsReplay(unit: UnitMark, connector: Connector, options: SyncOptions): boolean {
  return (
    unit.connector_version !== connector.version ||
    (options.redactAgain === true && unit.redaction_version !== REDACTION_VERSION)
  )
}

/** A unit whose source is gone, to be parsed again; undefined where its records are not kept either, or not whole. */
async function keptUnit(store: HistoryWriter, source: SourceId, key: string): Promise<Unit | undefined> {
  const known = await store.knownUnit(source, key)
  if (!known || known.raw_withheld || !(await store.hasWholeRecords(source, key))) return undefined
  return { key, path: known.path, stamp: known.stamp, bytes: 0, modifiedAt: known.modified_at, bornAt: known.born_at }
}

function isMuch(bytes: number, units: number): boolean {
  return bytes > LITTLE.bytes || units > LITTLE.units
}

function isAfter(moment: number | undefined): boolean {
  return moment !== undefined && Date.now() > moment
}

function largestOf(plan: Plan): number {
  return plan.jobs.reduce((most, job) => Math.max(most, job.unit.bytes), 0)
}

function bytesOf(plan: Plan): number {
  return plan.jobs.reduce((sum, job) => sum + job.unit.bytes, 0)
}

async function carryOut(deps: SyncDeps, plan: Plan, options: SyncOptions, report: SyncReport): Promise<void> {
  const { store, index } = deps
  const bytesTotal = bytesOf(plan)
  const total = plan.found
  if (plan.jobs.length === 0) return saveThatAllIsRead(store, total, plan.asOf)
  const reader = openReader(deps, bytesTotal, largestOf(plan))
  const recent = recentMessages()
  let indexedAt = 0
  let savedAt = 0
  let left = plan.jobs.length
  let unread = plan.jobs.filter(({ isUnread }) => isUnread).length
  const hadUnread = unread > 0
  const waiting = new Set(plan.jobs.map(({ unit }) => unit))
  /** All is read once it can be found, too. What was read before and is looked at again is not unread. */
  const saveSoFar = async () => {
    if (hadUnread)
      await store.saveProgress({ done: Math.max(0, Math.min(total - unread, total - 1)), total, at: plan.asOf })
  }
  const say = (phase: SyncProgress["phase"]) =>
    options.onProgress?.({ phase, done: total - left, total, bytes: report.bytes, bytesTotal })
  try {
    await saveSoFar()
    say("reading")
    for await (const { job, result } of readAll(reader, plan.jobs)) {
      left--
      if (job.isUnread) unread--
      waiting.delete(job.unit)
      const written = result instanceof Error ? result : await writeOrHeal(store, result)
      if (written instanceof Error) {
        const { stamp } = job.unit
        const mark = written instanceof TooLarge ? { stamp, tried_at: Date.now() } : {}
        const reason = redactText(written.message)
        report.unreadable.push({ source: job.connector.source, path: storedPath(job.unit), reason, ...mark })
      } else {
        recent.add(written.fresh)
        left += readAgain(plan, waiting, job, written.again)
        report.read++
        report.changed += written.changed
        report.added_messages += written.added_messages
      }
      report.bytes += job.unit.bytes
      say("reading")
      const now = Date.now()
      if (now - savedAt > SAVE_PROGRESS_EVERY_MS) {
        savedAt = now
        await saveSoFar()
      }
      if (now - indexedAt > INDEX_EVERY_MS || recent.chars() > INDEX_EVERY_CHARS) {
        await index.follow(store, { recent: recent.of })
        recent.clear()
        indexedAt = Date.now()
      }
      // What was read ahead comes without a pause, and a thread that has none does not hear that it should stop.
      if (options.signal) await new Promise((resolve) => setImmediate(resolve))
      const isPaused = isAfter(options.pauseAt) && report.read >= READ_FIRST && isMuch(bytesTotal - report.bytes, left)
      if (options.signal?.aborted || isAfter(options.deadline) || isPaused) {
        report.complete = left === 0
        break
      }
    }
    await saveSoFar()
    say("indexing")
    const { complete } = await index.follow(store, {
      recent: recent.of,
      ...(options.deadline !== undefined && { deadline: options.deadline }),
    })
    if (complete && (hadUnread || left === 0)) await store.saveProgress({ done: total - unread, total, at: plan.asOf })
  } finally {
    await reader.close()
  }
}

/** Adds units to the jobs under way, but not what is still to be read anyway. Returns how many were added. */
function readAgain(plan: Plan, waiting: Set<NamedUnit>, { connector }: Job, keys: string[]): number {
  const units = keys.flatMap((key) => plan.units.get(connector.source)?.get(key) ?? [])
  const done = units.filter((unit) => !waiting.has(unit))
  for (const unit of done) {
    waiting.add(unit)
    plan.jobs.push({ connector, unit, replay: false, isUnread: false })
  }
  return done.length
}

/** Where what is stored is damaged, it is healed first; where that does not help either, the others go on without it. */
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

/** So that nobody is told that the history is old. Not at every sync: one with nothing to do should write nothing. */
async function saveThatAllIsRead(store: HistoryWriter, total: number, asOf: number): Promise<void> {
  const last = await store.progress()
  const isOld = last === undefined || last.done < last.total || Date.now() - last.at > SAY_AGAIN_MS
  if (isOld) await store.saveProgress({ done: total, total, at: asOf })
}

/** What was written since the index last followed. The last write of a message is the one that counts. */
function recentMessages() {
  const byRef = new Map<string, Map<number, StoredMessage>>()
  let chars = 0
  return {
    add(fresh: WriteResult["fresh"]): void {
      for (const { ref, messages } of fresh) {
        const name = formatRef(ref)
        const known = byRef.get(name) ?? new Map<number, StoredMessage>()
        for (const message of messages) {
          known.set(message.number, message)
          for (const part of message.parts) chars += part.text.length
        }
        byRef.set(name, known)
      }
    },
    of: (ref: Ref) => byRef.get(formatRef(ref)),
    chars: () => chars,
    clear: () => {
      byRef.clear()
      chars = 0
    },
  }
}

/** Results in the order of the jobs, a few of them read ahead while the caller stores the one before. */
async function* readAll(reader: UnitReader, jobs: Job[]): AsyncGenerator<{ job: Job; result: UnitWrite | Error }> {
  const ahead: { job: Job; result: Promise<UnitWrite | Error> }[] = []
  let bytes = 0
  let next = 0
  while (next < jobs.length || ahead.length > 0) {
    while (
      next < jobs.length &&
      (ahead.length === 0 || (ahead.length < reader.ahead.units && bytes < reader.ahead.bytes))
    ) {
      const job = jobs[next++]!
      bytes += job.unit.bytes
      const result = reader.read(job.connector.source, job.unit, job.replay).catch((error) => asError(error))
      ahead.push({ job, result })
    }
    const { job, result } = ahead.shift()!
    yield { job, result: await result }
    bytes -= job.unit.bytes
  }
}

function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
