import { languageOf } from "../code/languages.ts"
import type { HistoryReader } from "../store/history/store.ts"

// The lines of code that the conversations of a project wrote, and those next to them. If the files of a repository contain many of
// them, it is the project's repository.

/** The newest conversations of a project, whose lines are most likely still there. */
const MAX_CONVERSATIONS = 40
const MAX_FILES = 200
/** A shorter line, or one without words, occurs in any code. */
const LINE = /^(?=.*[a-z]{3}).{20,}$/i

/**
 * The lines in the edits of a project's conversations, by file. Only code: licences and settings are the same in many projects.
 */
export async function writtenLines(store: HistoryReader, project: string): Promise<Map<string, Set<string>>> {
  const { rows } = await store.list({ in_project: project, inside: project, limit: MAX_CONVERSATIONS, offset: 0 })
  const files = new Map<string, Set<string>>()
  for (const { ref, cwds } of rows) {
    for (const { parts } of await store.messages(ref)) {
      const hunks = parts.flatMap((part) => (part.type === "tool_result" ? (part.hunks ?? []) : []))
      for (const hunk of hunks) {
        const path = relativePath([project, ...cwds], hunk.path)
        if (path === undefined || languageOf(path) === undefined) continue
        if (!files.has(path) && files.size >= MAX_FILES) continue
        const lines = files.get(path) ?? new Set()
        files.set(path, lines)
        for (const line of hunk.lines)
          if (!line.startsWith("-") && LINE.test(line.slice(1).trim())) lines.add(line.slice(1).trim())
      }
    }
  }
  return files
}

const MIN_LINES_PER_FILE = 5
/** At least this many files of a repository must contain written lines. */
export const MIN_FILES = 3
const MIN_LINES = 30
/** The share of the files that the repository must have: unrelated projects can contain the same files of a framework. */
const MIN_PRESENT_SHARE = 0.5

/**
 * How many of these lines are in the same files of a repository: 0 if there are too few of them, or in too few files, to prove
 * anything. If the conversations made pull requests for the repository's remote, it need not have most of the files any longer.
 */
export function countLinesIn(
  files: ReadonlyMap<string, Set<string>>,
  texts: ReadonlyMap<string, string>,
  isForRemote: boolean,
): number {
  if (!isForRemote && texts.size < files.size * MIN_PRESENT_SHARE) return 0
  const counts = [...files].map(([path, lines]) => {
    const present = new Set((texts.get(path) ?? "").split("\n").map((line) => line.trim()))
    return [...lines].filter((line) => present.has(line)).length
  })
  const provingCounts = counts.filter((count) => count >= MIN_LINES_PER_FILE)
  const total = provingCounts.reduce((sum, count) => sum + count, 0)
  return provingCounts.length >= MIN_FILES && total >= MIN_LINES ? total : 0
}

function relativePath(folders: readonly string[], path: string): string | undefined {
  const withSlashes = path.replaceAll("\\", "/")
  const folder = folders.map((one) => one.replaceAll("\\", "/")).find((one) => withSlashes.startsWith(`${one}/`))
  return folder === undefined ? undefined : withSlashes.slice(folder.length + 1)
}
