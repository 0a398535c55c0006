import { lstat, readdir } from "node:fs/promises"
import { join } from "node:path"
import { outlineLines } from "../core/prose.ts"
import { formatOf } from "../documents/document.ts"
import { listDocuments, readDocument } from "../documents/files.ts"
import { redactText } from "../redact/redact.ts"

export type ProjectSection = { path: string; line: number; headings: string[]; text: string; at: number }

type ProjectFile = { folder: string; path: string; size: number; modified_at: number }

/** Matches the names of documents that projects keep in their root folder, such as README.md. */
const DOCUMENT_FILES =
  /^(?:readme|contributing|architecture|development|design|security|support|install(?:ation)?|usage|testing|troubleshooting|faq|releasing|roadmap|governance|claude|agents|gemini)\.(?:md|mdx|markdown|rst|txt|adoc)$/i
const DOCUMENT_FOLDERS = ["docs", "doc", ".github", ".claude/agents", ".claude/commands", ".cursor/rules"]
const MAX_FILES = 200
const MAX_BYTES = 2_000_000

/**
 * The sections of a project's documents, read from its files. The user does not have to add them, and dex does not store them.
 * Symbolic links are not followed. Only files that may contain the answer are split into sections. `isComplete` is false if there
 * are too many files, if they are too large, or if some cannot be opened.
 */
export async function projectSections(
  root: string,
  mayContain: (text: string) => boolean,
): Promise<{ sections: ProjectSection[]; isComplete: boolean }> {
  const sections: ProjectSection[] = []
  const { files, isListComplete } = await documentFiles(root)
  let isComplete = isListComplete
  let bytes = 0
  for (const { folder, path, size, modified_at } of files) {
    bytes += size
    const text = bytes > MAX_BYTES ? undefined : await readDocument(join(root, folder), path).catch(() => undefined)
    isComplete &&= text !== undefined
    if (text === undefined || !mayContain(text)) continue
    const name = folder === "" ? path : `${folder}/${path}`
    for (const part of sectionsIn(redactText(text))) sections.push({ path: name, at: modified_at, ...part })
  }
  return { sections, isComplete }
}

/** Splits a Markdown text at its headings. */
function sectionsIn(text: string): Pick<ProjectSection, "line" | "headings" | "text">[] {
  const sections: { line: number; headings: string[]; lines: string[] }[] = [{ line: 1, headings: [], lines: [] }]
  for (const [i, { text: line, kind, headings }] of [...outlineLines(text.replaceAll("\r\n", "\n"))].entries()) {
    if (kind === "heading") sections.push({ line: i + 1, headings, lines: [] })
    else sections.at(-1)!.lines.push(line)
  }
  return sections.map(({ line, headings, lines }) => ({ line, headings, text: lines.join("\n") }))
}

async function documentFiles(root: string): Promise<{ files: ProjectFile[]; isListComplete: boolean }> {
  const projectFiles: ProjectFile[] = []
  let isListComplete = true
  for (const name of (await readdir(root).catch(() => [])).sort()) {
    const stats =
      DOCUMENT_FILES.test(name) || DOCUMENT_FOLDERS.includes(name)
        ? await lstat(join(root, name)).catch(() => undefined)
        : undefined
    if (stats?.isFile() && DOCUMENT_FILES.test(name))
      projectFiles.push({ folder: "", path: name, size: stats.size, modified_at: Math.trunc(stats.mtimeMs) })
    if (stats?.isDirectory() && DOCUMENT_FOLDERS.includes(name)) {
      const { files, skipped } = await listDocuments(join(root, name), { limit: MAX_FILES })
      isListComplete &&= !skipped.some(({ path }) => path === "") // An empty path means that the limit was exceeded.
      const documents = files.filter(({ path }) => formatOf(path) !== "html")
      projectFiles.push(...documents.map((file) => ({ ...file, folder: name })))
    }
  }
  return { files: projectFiles, isListComplete }
}
