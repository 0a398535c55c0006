import { renameSync, writeFileSync } from "node:fs"
import type { AgentLimits } from "../../core/limits.ts"
import { readText } from "../../core/read-file.ts"
import { parseObject } from "../../core/record.ts"
import { withReport } from "../../usage/limits.ts"

/** How old a report must be before an equal one is stored again. A status line asks every few seconds. */
const FRESH_MS = 60_000
const MAX_FILE_BYTES = 1 << 20

/** The last report of each agent about the limits of its plan. Empty if the file is missing or damaged. */
export function readLimits(file: string): Record<string, AgentLimits> {
  let text: string
  try {
    text = readText(file, MAX_FILE_BYTES)
  } catch {
    return {}
  }
  const entries = Object.entries(parseObject(text) ?? {}) as [string, AgentLimits][]
  return Object.fromEntries(
    entries.filter(([, one]) => Array.isArray(one?.limits) && Array.isArray(one.earlier) && typeof one.at === "number"),
  )
}

/** Stores a report, unless a newer one is stored. Returns what is then known. Never throws: a status line must not fail. */
export function saveLimits(file: string, agent: string, report: AgentLimits): AgentLimits {
  const all = readLimits(file)
  const before = all[agent]
  if (before && before.at > report.at) return before
  const after = withReport(before, report)
  const isKnown = before && report.at - before.at < FRESH_MS && isSame(before, report)
  if (isKnown) return before
  const temporaryFile = `${file}.${process.pid}`
  try {
    writeFileSync(temporaryFile, JSON.stringify({ ...all, [agent]: after }), { mode: 0o600 })
    renameSync(temporaryFile, file)
  } catch {
    // no folder, no space or no permission: the next report is stored
  }
  return after
}

function isSame(a: AgentLimits, b: AgentLimits): boolean {
  return JSON.stringify(a.limits) === JSON.stringify(b.limits)
}
