import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { formatOf } from "../documents/document.ts"
import { listDocuments, readDocument } from "../documents/files.ts"
import { redactText } from "../redact/redact.ts"

/** A section of a file of the project. */
export type ProjectSection = { path: string; line: number; headings: string[]; text: string; at: number }

type ProjectFile = { folder: string; path: string; size: number; modified_at: number }

/** What projects tell people and agents about themselves. */
const FILES =
  /^(?:readme|contributing|architecture|development|claude|agents|gemini)\.(?:md|mdx|markdown|rst|txt|adoc)$/i
const FOLDERS = ["docs", "doc"]
const MOST_FILES = 200
const MOST_BYTES = 2_000_000

/**
 * The documents that lie in a project, as they are now. They need not be added, and nothing of them is stored. Links are not followed. Only
 * those that may hold what is asked are read as a whole.
 */
export async function projectSections(root: string, mayHold: (text: string) => boolean): Promise<ProjectSection[]> {
  const sections: ProjectSection[] = []
  let bytes = 0
  for (const { folder, path, size, modified_at } of await documentFiles(root)) {
    bytes += size
    if (bytes > MOST_BYTES) break
    const text = await readDocument(join(root, folder), path).catch(() => undefined)
    if (text === undefined || !mayHold(text)) continue
    const name = folder === "" ? path : `${folder}/${path}`
    for (const part of sectionsIn(redactText(text))) sections.push({ path: name, at: modified_at, ...part })
  }
  return sections
}

/**
 * What stands under each heading. Only lines are looked at: a parser that knows all of Markdown takes ten times as long, for every question,
 * and what it knows better makes no difference to sentences.
 */
function sectionsIn(text: string): Pick<ProjectSection, "line" | "headings" | "text">[] {
  const found: { line: number; headings: string[]; lines: string[] }[] = [{ line: 1, headings: [], lines: [] }]
  const above: { level: number; text: string }[] = []
  let fence: string | undefined
  for (const [i, line] of text.split(/\r?\n/).entries()) {
    const mark = /^\s*(`{3,}|~{3,})/.exec(line)?.[1]
    if (mark !== undefined) fence = fence === undefined ? mark : mark.startsWith(fence) ? undefined : fence
    const heading = fence === undefined ? /^ {0,3}(#{1,6})\s+(.+?)\s*#*\s*$/.exec(line) : null
    if (heading) {
      while (above.length > 0 && above.at(-1)!.level >= heading[1]!.length) above.pop()
      above.push({ level: heading[1]!.length, text: heading[2]! })
      found.push({ line: i + 1, headings: above.map((one) => one.text), lines: [] })
    } else found.at(-1)!.lines.push(line)
  }
  return found.map(({ line, headings, lines }) => ({ line, headings, text: lines.join("\n") }))
}

async function documentFiles(root: string): Promise<ProjectFile[]> {
  const found: ProjectFile[] = []
  for (const name of (await readdir(root).catch(() => [])).sort()) {
    const at =
      FILES.test(name) || FOLDERS.includes(name) ? await lstat(join(root, name)).catch(() => undefined) : undefined
    if (at?.isFile() && FILES.test(name))
      found.push({ folder: "", path: name, size: at.size, modified_at: Math.trunc(at.mtimeMs) })
    if (at?.isDirectory() && FOLDERS.includes(name)) {
      const { files } = await listDocuments(join(root, name), { limit: MOST_FILES })
      const written = files.filter(({ path }) => formatOf(path) !== "html")
      found.push(...written.map((file) => ({ ...file, folder: name })))
    }
  }
  return found
}
