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

/** `isUnread`: nothing of the unit is stored yet. Other units were read before, and are checked again. */
export type UnitJob = { connector: Connector; unit: NamedUnit; replay: boolean; isUnread: boolean }
export type SyncPlan = {
  /** Everything that was written before this time is included. */
  asOf: number
  jobs: UnitJob[]
  found: number
  containers: { source: SourceId; path: string; stamp: string }[]
  units: Map<SourceId, Map<string, NamedUnit>>
}

/** Plans the work: new and grown units, and units whose connector has a new version. Also marks units that no longer exist. */
export async function planSync(deps: SyncDeps, options: SyncOptions, report: SyncReport): Promise<SyncPlan> {
  const plan: SyncPlan = { asOf: Date.now(), jobs: [], found: 0, containers: [], units: new Map() }
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
        const stored = await storedUnit(deps.store, source, key)
        if (stored) plan.jobs.push({ connector, unit: stored, replay: true, isUnread: false })
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

/** The existing units, by key. A file with the same name as another in a different root gets its own key. */
function discoverUnits(
  connector: Connector,
  deps: SyncDeps,
  known: Map<string, UnitMark>,
  seen: IsUnchanged,
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
    // A unit that is stored under its own name needs no redaction.
    const unit = known.get(found.key)?.path === found.path ? found : withStoredName(found)
    const before = known.get(unit.key)
    if (present.has(unit.key) || (before && before.path !== storedPath(unit))) elsewhere.push(unit)
    else present.set(unit.key, unit)
  }
  // Only now is it known whether the previous file with this key still exists, or has moved.
  for (const found of elsewhere) {
    const holder = present.get(found.key)
    if (holder?.path === found.path) continue
    const before = known.get(found.key)
    const isTaken = holder !== undefined || (before !== undefined && skippedContainers.has(before.path))
    const twin = withTwinKey(found)
    const unit = isTaken || known.has(twin.key) ? twin : found
    present.set(unit.key, unit)
  }
  return { present, unreadable }
}

/** Redacts stored names that contain something for which a rule was added later. */
async function redactNames(store: HistoryWriter, source: SourceId): Promise<void> {
  for (const [key, { path }] of await store.knownUnits(source)) {
    const unit = withStoredName({ key, path })
    if (unit.shownPath !== undefined) await store.renameUnit(source, key, { key: unit.key, path: unit.shownPath })
  }
}

function isBelow(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep)
}

/** Files that recently needed more memory than allowed, by path. Each attempt costs seconds, so they are tried once a day. */
async function recentlyTooLarge(store: HistoryWriter, source: SourceId): Promise<Map<string, UnreadableFile>> {
  const files = await store.unreadable(source)
  return new Map(
    files
      .filter(({ tried_at }) => tried_at !== undefined && Date.now() - tried_at < RETRY_AFTER_MS)
      .map((file) => [file.path, file]),
  )
}

function* discoverAll(connector: Connector, { machine, home }: SyncDeps, seen: IsUnchanged) {
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

/** A unit whose source no longer exists, to be parsed again; undefined if its records are not stored completely. */
async function storedUnit(store: HistoryWriter, source: SourceId, key: string): Promise<Unit | undefined> {
  const known = await store.knownUnit(source, key)
  if (!known || known.raw_withheld || !(await store.hasReadableRecords(source, key))) return undefined
  return { key, path: known.path, stamp: known.stamp, bytes: 0, modifiedAt: known.modified_at, bornAt: known.born_at }
}

export function largestPlanned(plan: SyncPlan): number {
  return plan.jobs.reduce((most, job) => Math.max(most, job.unit.bytes), 0)
}

export function plannedBytes(plan: SyncPlan): number {
  return plan.jobs.reduce((sum, job) => sum + job.unit.bytes, 0)
}
