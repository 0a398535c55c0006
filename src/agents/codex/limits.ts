import { closeSync, readdirSync, readSync, statSync } from "node:fs"
import { join } from "node:path"
import { type AgentLimits, planLimit } from "../../core/limits.ts"
import { openFile } from "../../core/read-file.ts"
import { number, parseObject, type RawRecord, record, string } from "../../core/record.ts"

/** How many of the newest sessions are looked at, and how much of the end of each. */
const MAX_SESSIONS = 5
const TAIL_BYTES = 256 << 10

/** The newest limits in Codex' sessions. `roots` are its folders. Reads only the ends of a few files. */
export function readCodexLimits(roots: readonly string[]): AgentLimits | undefined {
  const files = roots
    .flatMap((root) => newestFiles(join(root, "sessions"), 3))
    .sort((a, b) => b.modified - a.modified)
    .slice(0, MAX_SESSIONS)
  const found = files.flatMap(({ path }) => limitsAtEnd(path) ?? [])
  return found.sort((a, b) => b.at - a.at)[0]
}

type DatedFile = { path: string; modified: number }

/** The files in the newest folders of this depth: sessions are in YYYY/MM/DD. */
function newestFiles(folder: string, depth: number): DatedFile[] {
  const names = namesIn(folder).sort().reverse()
  if (depth === 0)
    return names
      .filter((name) => name.endsWith(".jsonl"))
      .flatMap((name) => {
        const path = join(folder, name)
        const modified = statSync(path, { throwIfNoEntry: false })?.mtimeMs
        return modified === undefined ? [] : [{ path, modified }]
      })
  const files: DatedFile[] = []
  for (const name of names) {
    if (/^\d+$/.test(name)) files.push(...newestFiles(join(folder, name), depth - 1))
    if (files.length >= MAX_SESSIONS) break
  }
  return files
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}

function limitsAtEnd(path: string): AgentLimits | undefined {
  for (const line of tailOf(path).split("\n").reverse()) {
    if (!line.includes('"rate_limits":{')) continue
    const raw = parseObject(line)
    const limits = record(record(raw?.payload)?.rate_limits)
    const at = Date.parse(string(raw?.timestamp) ?? "")
    // A model may have limits of its own, under another name.
    if (!limits || Number.isNaN(at) || (limits.limit_id ?? "codex") !== "codex") continue
    const found = limitsInCodexRecord(limits, at)
    if (found) return found
  }
  return undefined
}

function tailOf(path: string): string {
  try {
    const { fd, stat } = openFile(path)
    try {
      const bytes = Buffer.alloc(Math.min(TAIL_BYTES, stat.size))
      const length = readSync(fd, bytes, 0, bytes.length, stat.size - bytes.length)
      return bytes.toString("utf8", 0, length)
    } finally {
      closeSync(fd)
    }
  } catch {
    return "" // not a regular file, or gone
  }
}

/** The limits in a record of Codex. `at` is the record's time; old versions say in how many seconds a window ends. */
function limitsInCodexRecord(rateLimits: RawRecord, at: number): AgentLimits | undefined {
  const limits = [rateLimits.primary, rateLimits.secondary].flatMap((one) => {
    const window = record(one)
    const inSeconds = number(window?.resets_in_seconds)
    const end = window?.resets_at ?? window?.reset_at ?? (inSeconds === undefined ? undefined : at / 1_000 + inSeconds)
    return window ? planLimit(number(window.window_minutes) ?? 0, window.used_percent, end) : []
  })
  return limits.length === 0 ? undefined : { at, plan: string(rateLimits.plan_type), limits, earlier: [] }
}
