import { sep } from "node:path"
import { type Connector, type IsUnchanged, isUnreadable, type Unit } from "../agents/kit/connector.ts"
import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import { redactText } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { HistoryWriter, UnitMark, UnreadableFile } from "../store/history/store.ts"
import { syncScratch } from "../store/sqlite/scratch.ts"
import type { SyncDeps, SyncOptions, SyncReport } from "./sync-types.ts"
import { type NamedUnit, storedPath, withStoredName, withTwinKey } from "./unit-names.ts"

const RETRY_AFTER_MS = 24 * 3_600_000

/** `isUnread` is true if nothing of the unit is stored yet, and false if the unit was read before. */
export type UnitJob = { connector: Connector; unit: NamedUnit; replay: boolean; isUnread: boolean }
export type SyncPlan = {
  /** The plan includes everything that was written before this time. */
  asOf: number
  jobs: UnitJob[]
  found: number
  containers: { source: SourceId; path: string; stamp: string }[]
  units: Map<SourceId, Map<string, NamedUnit>>
}

/**
 * Plans which units to read: new and changed units, units whose connector has a new version and, with `redactAgain`, units that
 * were redacted by older rules. Also archives units that no longer exist.
 */
export async function planSync(deps: SyncDeps, options: SyncOptions, report: SyncReport): Promise<SyncPlan> {
  const plan: SyncPlan = { asOf: Date.now(), jobs: [], found: 0, containers: [], units: new Map() }
  for (const connector of deps.connectors) {
    const { source } = connector
    if (options.redactAgain) await redactNames(deps.store, source)
    const knownUnits = await deps.store.knownUnits(source)
    const containers = await deps.store.knownContainers(source)
    const skippedContainers = new Set<string>()
    const isUnchanged = (container: string, stamp: string) => {
      const path = redactText(container)
      const unchanged = containers.get(path) === stamp && !options.redactAgain
      if (unchanged) skippedContainers.add(path)
      else plan.containers.push({ source, path, stamp })
      return unchanged
    }
    const { present, unreadable } = discoverUnits(connector, deps, knownUnits, isUnchanged, skippedContainers)
    plan.units.set(source, present)
    const missingKeys: string[] = []
    for (const [key, unit] of knownUnits) {
      if (present.has(key) || skippedContainers.has(unit.path)) continue
      if (!connector.exported && !unreadable.some(({ path }) => isBelow(unit.path, path))) missingKeys.push(key)
      if (needsReplay(unit, connector, options)) {
        const stored = await storedUnit(deps.store, source, key)
        if (stored) plan.jobs.push({ connector, unit: stored, replay: true, isUnread: false })
      }
    }
    const { archived, heirs } = await deps.store.archiveUnits(source, missingKeys)
    report.archived += archived
    const heirKeys = new Set(heirs)
    const tooLarge = await recentlyTooLarge(deps.store, source)
    for (const unit of present.values()) {
      if (!heirKeys.has(unit.key) && !needsReading(knownUnits.get(unit.key), unit, connector, options)) continue
      const earlierFailure = tooLarge.get(storedPath(unit))
      if (earlierFailure && earlierFailure.stamp === unit.stamp) {
        unreadable.push(earlierFailure)
        continue
      }
      plan.jobs.push({ connector, unit, replay: false, isUnread: !knownUnits.has(unit.key) })
      const mark = knownUnits.get(unit.key)
      if (mark?.stamp === unit.stamp && mark.connector_version !== connector.version) report.read_again++
    }
    report.unreadable.push(...unreadable.map((file) => ({ source, ...file })))
    plan.found += present.size + [...knownUnits.values()].filter((unit) => skippedContainers.has(unit.path)).length
  }
  for (const file of deps.unloaded ?? []) report.unreadable.push({ source: "agents", ...file })
  plan.jobs.sort((a, b) => b.unit.modifiedAt - a.unit.modifiedAt)
  report.found = plan.found
  return plan
}

/** Returns the existing units, by key. If two roots contain files with the same name, the second file gets its own key. */
function discoverUnits(
  connector: Connector,
  deps: SyncDeps,
  knownUnits: Map<string, UnitMark>,
  isUnchanged: IsUnchanged,
  skippedContainers: Set<string>,
): { present: Map<string, NamedUnit>; unreadable: UnreadableFile[] } {
  const present = new Map<string, NamedUnit>()
  const unreadable: UnreadableFile[] = []
  const atOtherPaths: NamedUnit[] = []
  for (const discovered of discoverAll(connector, deps, isUnchanged)) {
    if (isUnreadable(discovered)) {
      unreadable.push({ path: redactText(discovered.path), reason: redactText(discovered.unreadable) })
      continue
    }
    // If a unit is already stored under its own key and path, they need no redaction.
    const unit = knownUnits.get(discovered.key)?.path === discovered.path ? discovered : withStoredName(discovered)
    const mark = knownUnits.get(unit.key)
    if (present.has(unit.key) || (mark && mark.path !== storedPath(unit))) atOtherPaths.push(unit)
    else present.set(unit.key, unit)
  }
  // Wait until all units are discovered: if no file was found at the stored path, the file has moved and keeps its key.
  for (const discovered of atOtherPaths) {
    const holder = present.get(discovered.key)
    if (holder?.path === discovered.path) continue
    const mark = knownUnits.get(discovered.key)
    const isTaken = holder !== undefined || (mark !== undefined && skippedContainers.has(mark.path))
    const twin = withTwinKey(discovered)
    const unit = isTaken || knownUnits.has(twin.key) ? twin : discovered
    present.set(unit.key, unit)
  }
  return { present, unreadable }
}

/** Redacts stored names with secrets that the rules did not recognise when the names were stored. */
async function redactNames(store: HistoryWriter, source: SourceId): Promise<void> {
  for (const [key, { path }] of await store.knownUnits(source)) {
    const unit = withStoredName({ key, path })
    if (unit.shownPath !== undefined) await store.renameUnit(source, key, { key: unit.key, path: unit.shownPath })
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/**
 * Files that recently needed more memory than allowed, by path. Each attempt takes seconds, so dex tries them only once a day.
 */
async function recentlyTooLarge(store: HistoryWriter, source: SourceId): Promise<Map<string, UnreadableFile>> {
  const files = await store.unreadable(source)
  return new Map(
    files
      .filter(({ tried_at }) => tried_at !== undefined && Date.now() - tried_at < RETRY_AFTER_MS)
      .map((file) => [file.path, file]),
  )
}

function* discoverAll(connector: Connector, { machine, home }: SyncDeps, isUnchanged: IsUnchanged) {
  for (const root of connector.roots(machine)) {
    try {
      yield* connector.discover(root, isUnchanged, syncScratch(home.dir))
    } catch (error) {
      yield { unreadable: messageOf(error), path: root }
    }
  }
}

function needsReading(known: UnitMark | undefined, unit: Unit, connector: Connector, options: SyncOptions): boolean {
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

/**
 * Returns a unit whose source no longer exists, so that it can be parsed again. Returns undefined if its records are not stored
 * completely.
 */
async function storedUnit(store: HistoryWriter, source: SourceId, key: string): Promise<Unit | undefined> {
  const mark = await store.knownUnit(source, key)
  if (!mark || mark.raw_withheld || !(await store.hasReadableRecords(source, key))) return undefined
  return { key, path: mark.path, stamp: mark.stamp, bytes: 0, modifiedAt: mark.modified_at, bornAt: mark.born_at }
}

export function largestPlannedBytes(plan: SyncPlan): number {
  return plan.jobs.reduce((most, job) => Math.max(most, job.unit.bytes), 0)
}

export function plannedBytes(plan: SyncPlan): number {
  return plan.jobs.reduce((sum, job) => sum + job.unit.bytes, 0)
}
