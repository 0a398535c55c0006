import { existsSync } from "node:fs"
import { join, sep } from "node:path"
import { type Connector, isUnreadable, type Machine, type Unit } from "../agents/kit/connector.ts"
import { agents } from "../agents/registry.ts"
import { DAY_MS } from "../core/dates.ts"
import { grouped } from "../core/format.ts"
import { readText } from "../core/read-file.ts"
import type { Dex } from "./context.ts"

/** The number of days after a transcript's last change when Claude Code deletes it, unless its settings say otherwise. */
const DEFAULT_DAYS = 30
const SOON_DAYS = 7
const MAX_BYTES = 16 << 20

export type Deletions = {
  days: number
  /** True if the user set the number of days; otherwise it is Claude Code's default. */
  isChosen: boolean
  /** The number of transcripts that Claude Code deletes within a week. */
  soon: number
  /** How many of those transcripts dex has not read completely. */
  unread: number
  /** Those transcripts, by the path that dex stores, in the order in which they are deleted. */
  transcripts: { path: string; deletedAt: number; isRead: boolean }[]
}

/** The transcripts that Claude Code will soon delete on this machine. Undefined if it has no transcripts at all. */
export async function upcomingDeletions(dex: Dex): Promise<Deletions | undefined> {
  const folders = configFolders(dex.machine).filter((folder) => existsSync(join(folder, "projects")))
  const [first] = folders
  if (first === undefined) return undefined
  const connector = await agents.find(({ source }) => source === "claude_code")!.connector!()
  const known = dex.hasHistory() ? await (await dex.storeToWrite()).knownUnits(connector.source) : new Map()
  const stamps = new Map([...known.values()].map(({ path, stamp }) => [path, stamp]))
  const chosen = daysOf(first)
  const transcripts: Deletions["transcripts"] = []
  for (const folder of folders) {
    const keptMs = (daysOf(folder) ?? DEFAULT_DAYS) * DAY_MS
    const before = dex.now() - keptMs + SOON_DAYS * DAY_MS
    for (const unit of transcriptsIn(connector, folder)) {
      if (unit.modifiedAt >= before) continue
      const path = stamps.has(unit.path) ? unit.path : await shownPathOf(unit)
      transcripts.push({ path, deletedAt: unit.modifiedAt + keptMs, isRead: stamps.get(path) === unit.stamp })
    }
  }
  return {
    days: chosen ?? DEFAULT_DAYS,
    isChosen: chosen !== undefined,
    soon: transcripts.length,
    unread: transcripts.filter(({ isRead }) => !isRead).length,
    transcripts: transcripts.sort((a, b) => a.deletedAt - b.deletedAt),
  }
}

/** A sentence about upcoming deletions; undefined if nothing is deleted within a week. */
export function describeDeletions({ soon, unread }: Deletions): string | undefined {
  if (soon === 0) return undefined
  const many = soon === 1 ? "1 transcript" : `${grouped(soon)} transcripts`
  if (unread === 0) return `dex has copies of ${many} that Claude Code deletes within ${SOON_DAYS} days.`
  const of =
    unread === soon ? "none of them is read" : `${grouped(unread)} of them ${unread === 1 ? "is" : "are"} not read`
  return `Claude Code deletes ${many} within ${SOON_DAYS} days, and ${of} yet.`
}

/** The path as dex stores it, with any secret redacted. */
async function shownPathOf(unit: Unit): Promise<string> {
  const { withStoredName, storedPath } = await import("../ingest/unit-names.ts")
  return storedPath(withStoredName(unit))
}

function configFolders({ home, env }: Machine): string[] {
  const own = (env.CLAUDE_CONFIG_DIR ?? "").split(",").map((folder) => folder.trim())
  const named = own.filter((folder) => folder !== "")
  return named.length > 0 ? named : [join(home, ".claude")]
}

/** The folder also contains a log of prompts, which Claude Code does not delete this way. */
function transcriptsIn(connector: Connector, folder: string) {
  const projects = join(folder, "projects") + sep
  return [...connector.discover(folder, () => false)].flatMap((unit) =>
    isUnreadable(unit) || !unit.path.startsWith(projects) ? [] : [unit],
  )
}

function daysOf(folder: string): number | undefined {
  try {
    const file = join(folder, "settings.json")
    const value = (JSON.parse(readText(file, MAX_BYTES)) as { cleanupPeriodDays?: unknown }).cleanupPeriodDays
    return typeof value === "number" ? value : undefined
  } catch {
    return undefined // no settings, or not JSON: Claude Code then uses its default
  }
}
