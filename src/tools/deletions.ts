import { existsSync } from "node:fs"
import { join, sep } from "node:path"
import { type Connector, isUnreadable, type Machine, type Unit } from "../agents/kit/connector.ts"
import { agents } from "../agents/registry.ts"
import { DAY_MS } from "../core/dates.ts"
import { grouped } from "../core/format.ts"
import { readText } from "../core/read-file.ts"
import type { Dex } from "./context.ts"

/** Claude Code deletes a transcript this many days after its last change, unless its settings say otherwise. */
const DEFAULT_DAYS = 30
const SOON_DAYS = 7
const MAX_BYTES = 16 << 20

export type Deletions = {
  days: number
  /** True if the user set the number of days; otherwise it is Claude Code's default. */
  isChosen: boolean
  /** The number of transcripts that Claude Code will delete within a week. */
  dueCount: number
  /** The number of those transcripts that dex has not read completely. */
  unreadCount: number
  /** The transcripts that Claude Code will delete within a week, with the paths that dex stores, in the order of deletion. */
  transcripts: { path: string; deletedAt: number; isRead: boolean }[]
}

/** The transcripts that Claude Code will soon delete on this machine. Undefined if it has no transcripts at all. */
export async function upcomingDeletions(dex: Dex): Promise<Deletions | undefined> {
  const folders = configFolders(dex.machine).filter((folder) => existsSync(join(folder, "projects")))
  const [first] = folders
  if (first === undefined) return undefined
  const connector = await agents.find(({ source }) => source === "claude_code")!.connector!()
  const knownUnits = dex.hasHistory() ? await (await dex.storeToWrite()).knownUnits(connector.source) : new Map()
  const stamps = new Map([...knownUnits.values()].map(({ path, stamp }) => [path, stamp]))
  const configuredDays = daysOf(first)
  const transcripts: Deletions["transcripts"] = []
  for (const folder of folders) {
    const lifetimeMs = (daysOf(folder) ?? DEFAULT_DAYS) * DAY_MS
    const changedBefore = dex.now() - lifetimeMs + SOON_DAYS * DAY_MS
    for (const unit of transcriptsIn(connector, folder)) {
      if (unit.modifiedAt >= changedBefore) continue
      const path = stamps.has(unit.path) ? unit.path : await storedPathOf(unit)
      transcripts.push({ path, deletedAt: unit.modifiedAt + lifetimeMs, isRead: stamps.get(path) === unit.stamp })
    }
  }
  return {
    days: configuredDays ?? DEFAULT_DAYS,
    isChosen: configuredDays !== undefined,
    dueCount: transcripts.length,
    unreadCount: transcripts.filter(({ isRead }) => !isRead).length,
    transcripts: transcripts.sort((a, b) => a.deletedAt - b.deletedAt),
  }
}

/** A sentence about upcoming deletions. Undefined if nothing will be deleted within a week. */
export function describeDeletions({ dueCount, unreadCount }: Deletions): string | undefined {
  if (dueCount === 0) return undefined
  const dueText = dueCount === 1 ? "1 transcript" : `${grouped(dueCount)} transcripts`
  if (unreadCount === 0) return `dex has copies of ${dueText} that Claude Code will delete within ${SOON_DAYS} days.`
  const unreadText = unreadCount < dueCount ? `${grouped(unreadCount)} of them` : dueCount === 1 ? "it" : "any of them"
  return `Claude Code will delete ${dueText} within ${SOON_DAYS} days, and dex has not read ${unreadText} yet.`
}

/** The path as dex stores it, with any secret redacted. */
async function storedPathOf(unit: Unit): Promise<string> {
  const { withStoredName, storedPath } = await import("../ingest/unit-names.ts")
  return storedPath(withStoredName(unit))
}

function configFolders({ home, env }: Machine): string[] {
  const folders = (env.CLAUDE_CONFIG_DIR ?? "").split(",").map((folder) => folder.trim())
  const configured = folders.filter((folder) => folder !== "")
  return configured.length > 0 ? configured : [join(home, ".claude")]
}

/** The transcripts in a configuration folder. Its log of prompts is left out, because Claude Code does not delete that. */
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
    return undefined // There are no settings, or they are not JSON. Claude Code then uses its default.
  }
}
