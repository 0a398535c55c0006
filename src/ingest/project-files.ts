import { readdirSync } from "node:fs"
import { join } from "node:path"
import { languageOf } from "../code/languages.ts"
import { lookAt } from "../core/look-at.ts"
import { listGitFiles } from "../git/list-files.ts"

/** Further files are counted, but not read. Linux has 60,000 C files; a single team's project has a tenth of that. */
const MAX_CODE_FILES = 50_000
const MAX_DEPTH = 40
const PASSED_OVER =
  /^(?:\.|node_modules$|bower_components$|vendor$|dist$|build$|out$|target$|coverage$|__pycache__$|venv$|site-packages$)/

/** The code files of a project, sorted by path, and the number of files beyond the limit. */
export async function listCodeFiles(
  project: string,
  options: { limit?: number; signal?: AbortSignal } = {},
): Promise<{ paths: string[]; not_listed: number }> {
  const limit = options.limit ?? MAX_CODE_FILES
  const isCode = (path: string) =>
    languageOf(path) !== undefined && !path.split("/").slice(0, -1).includes("node_modules")
  // Git also lists tracked files that no longer exist.
  const isThere = (path: string) => lookAt(join(project, path), { follow: false }) !== undefined
  const listed = await listGitFiles(project, options.signal)
  const all = listed ? listed.filter((path) => isCode(path) && isThere(path)) : walk(project, limit).filter(isCode)
  return { paths: all.slice(0, limit), not_listed: Math.max(0, all.length - limit) }
}

/** Without git: skips hidden folders, folders with installed or built files, and links. Stops beyond twice the limit. */
function walk(project: string, limit: number): string[] {
  const found: string[] = []
  const folders = [""]
  for (let at = folders.pop(); at !== undefined && found.length <= 2 * limit; at = folders.pop()) {
    for (const entry of entriesOf(join(project, at))) {
      const path = at === "" ? entry.name : `${at}/${entry.name}`
      if (entry.isDirectory() && !PASSED_OVER.test(entry.name) && path.split("/").length < MAX_DEPTH) folders.push(path)
      else if (entry.isFile() && languageOf(path) !== undefined) found.push(path)
    }
  }
  return found.sort()
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // gone or not readable; the next sync looks again
  }
}
