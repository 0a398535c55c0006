import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { readText } from "../../files/read-file.ts"
import { redactName } from "../../redact/name.ts"
import { redactText } from "../../redact/redact.ts"
import { REDACTION_VERSION } from "../../redact/version.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { MAX_REPORT_BYTES, parseReport } from "./reports.ts"
import { testKey } from "./status.ts"

export type ReportsRead = {
  /** Reports that are there now. */
  reports: number
  /** Of them, read now. */
  read: number
  /** In words for a person. */
  left_out: string[]
}

const MOST_ENTRIES = 30_000
const MOST_DEPTH = 8
const MOST_FILES = 200
/** Read at once; what is left waits for the next time. */
const MOST_BYTES = 20 << 20
const NOT_ENTERED = /^(?:\..*|node_modules|vendor|bower_components|site-packages|__pycache__|venv|Pods|third_party)$/
const NAMED = /^(?:junit[^/]*\.xml|TEST-[^/]*\.xml|(?:vitest|jest|test)[^/]*(?:results?|reports?|output)[^/]*\.json)$/i
const IN_FOLDER = /(?:^|\/)(?:test-results|test-reports|reports|surefire-reports)\/(?:[^/]+\/)*[^/]+\.(?:xml|json)$/i

/** Brings what the project's test reports say up to date: those that changed are read, those that are gone forgotten. */
export async function syncTestReports(db: Knowledge, project: string, signal?: AbortSignal): Promise<ReportsRead> {
  const { files, left_out } = await findReports(project, signal)
  db.projects.useRedaction(REDACTION_VERSION)
  const known = db.tests.knownReports(project)
  let [read, bytes, waiting] = [0, 0, 0]
  for (const { path, stamp, size, modifiedAt } of files) {
    const kept = redactName(path)
    if (known.get(kept) === stamp) continue
    if (size > MAX_REPORT_BYTES) {
      left_out.push(`${kept} is larger than ${MAX_REPORT_BYTES >> 20} MB and not read.`)
      continue
    }
    if (bytes + size > MOST_BYTES) {
      waiting++
      continue
    }
    bytes += size
    const text = readFileAt(join(project, path))
    const report = text === undefined ? undefined : parseReport(text, project, modifiedAt)
    if (report && report.left_out > 0) left_out.push(`${kept}: ${report.left_out} of its tests are left out.`)
    const tests = (report?.tests ?? []).map(({ test, file, message, ...rest }) => {
      const name = cleaned(test)
      return {
        key: testKey(name),
        test: name,
        ...(file !== undefined && { file: redactName(file) }),
        ...(message !== undefined && { message: cleaned(message) }),
        ...rest,
      }
    })
    db.tests.saveReport(project, { path: kept, stamp, at: modifiedAt, is_report: report !== undefined, tests })
    read++
  }
  if (waiting > 0) left_out.push(`${waiting} more reports are read the next time.`)
  // Stopped, it says nothing of those that were not reached.
  if (signal?.aborted) return { reports: files.length, read, left_out }
  const there = new Set(files.map(({ path }) => redactName(path)))
  db.tests.dropReports(
    project,
    [...known.keys()].filter((path) => !there.has(path)),
  )
  return { reports: files.length, read, left_out }
}

const LONGEST = 300
const cleaned = (text: string) => redactText(text).slice(0, LONGEST)

type ReportFile = { path: string; stamp: string; size: number; modifiedAt: number }

/** Newest first. Folders near the top are looked at first; links are not followed. */
async function findReports(
  project: string,
  signal: AbortSignal | undefined,
): Promise<{ files: ReportFile[]; left_out: string[] }> {
  const found: ReportFile[] = []
  const left_out: string[] = []
  const queue = [{ at: "", depth: 0 }]
  let entries = 0
  for (let next = queue.shift(); next; next = queue.shift()) {
    if (signal?.aborted) break
    if (entries > MOST_ENTRIES) {
      left_out.push(`Reports were looked for among the first ${MOST_ENTRIES} files of the project only.`)
      break
    }
    const { at, depth } = next
    const inside = await readdir(join(project, at), { withFileTypes: true }).catch(() => [])
    entries += inside.length
    for (const entry of inside) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && depth < MOST_DEPTH && !NOT_ENTERED.test(entry.name))
        queue.push({ at: path, depth: depth + 1 })
      if (!(NAMED.test(entry.name) || IN_FOLDER.test(path))) continue
      if (!entry.isFile()) {
        if (!entry.isDirectory() && !entry.isSymbolicLink())
          left_out.push(`${path} is not a regular file and not read.`)
        continue
      }
      const stat = await lstat(join(project, path)).catch(() => undefined)
      if (stat?.isFile())
        found.push({
          path,
          stamp: `${stat.mtimeMs} ${stat.size}`,
          size: stat.size,
          modifiedAt: Math.floor(stat.mtimeMs),
        })
    }
  }
  found.sort((a, b) => b.modifiedAt - a.modifiedAt || (a.path < b.path ? -1 : 1))
  if (found.length > MOST_FILES) left_out.push(`Only the newest ${MOST_FILES} of ${found.length} reports are read.`)
  return { files: found.slice(0, MOST_FILES), left_out }
}

/** Undefined where it is no plain file any more, or cannot be read. */
function readFileAt(path: string): string | undefined {
  try {
    return readText(path, MAX_REPORT_BYTES, { follow: false })
  } catch {
    return undefined // it went away, or is not ours to read: the next sync looks again
  }
}
