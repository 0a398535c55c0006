import { readdirSync } from "node:fs"
import { isAbsolute, join, posix, relative, sep } from "node:path"
import { setImmediate } from "node:timers/promises"
import { type LanguageId, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { importTarget, type ProjectPaths } from "../code/resolve.ts"
import { lookAt } from "../core/look-at.ts"
import { listGitFiles } from "../git/list-files.ts"
import { redactName } from "../redact/name.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { CodeFile, CodeStamp } from "../store/knowledge/code.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { codeSortOf, openCodeReader } from "./code-reader.ts"
import { type CodeOrder, codeStampOf, isSameStamp, type ReadCode, readSmallFile } from "./read-code.ts"

type CodeSync = {
  /** The project's code files, including those that were skipped. */
  files: number
  read: number
  removed: number
  /** Files that were skipped in this run, by reason: huge, minified, generated, binary, slow, broken, unreadable. */
  skipped: Record<string, number>
  /** The number of files beyond the limit per project. */
  not_listed: number
}

type CodeSyncOptions = {
  signal?: AbortSignal
  limit?: number
  onProgress?: (done: number, total: number) => void
  /** True if nothing may be parsed in this process. */
  inSubprocess?: boolean
}

/** The limits of a batch: large enough for a transaction to pay off, small enough for memory. */
const BATCH_LIMITS = { files: 50, bytes: 256 << 10 }

/** Updates the knowledge about a project's code: reads changed files, and removes those that no longer exist. */
export async function syncProjectCode(
  { knowledge, project }: { knowledge: Knowledge; project: string },
  options: CodeSyncOptions = {},
): Promise<CodeSync> {
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  const { paths, not_listed } = await listCodeFiles(project, options)
  const knownStamps = knowledge.code.codeStamps(project)
  const names = paths.map(redactName)
  const projectFiles = projectPaths(project, names)
  const result: CodeSync = { files: paths.length, read: 0, removed: 0, skipped: {}, not_listed }
  const { batches, sorts, bytes } = changedFiles(project, paths, knownStamps)
  const reader = openCodeReader(project, { bytes, sorts, inSubprocess: options.inSubprocess })
  let done = paths.length - batches.reduce((sum, batch) => sum + batch.length, 0)
  try {
    // One batch is read while the previous one is stored.
    let next = batches[0] && reader.read(batches[0])
    for (let i = 0; next; i++) {
      const results = await next
      options.signal?.throwIfAborted()
      next = batches[i + 1] && reader.read(batches[i + 1]!)
      next?.catch(() => {}) // awaited in the next round, unless storing fails first
      addToResult(result, results)
      saveFiles(knowledge, project, results, projectFiles)
      done += results.length
      options.onProgress?.(done, paths.length)
      await setImmediate()
    }
  } finally {
    await reader.close()
  }
  const currentNames = new Set(names)
  const removedNames = [...knownStamps.keys()].filter((path) => !currentNames.has(path))
  knowledge.code.removeCode(project, removedNames)
  result.removed = removedNames.length
  if (knownStamps.size > 0) relinkIfDue(knowledge, project, projectFiles)
  else if (paths.length > 0) knowledge.code.saveLinkedBy(project, projectFiles.modules)
  return result
}

/**
 * Updates one file that was just changed, created or removed. Returns `same` if there was nothing to do, or if it is not code of
 * the project; the caller must check whether git ignores it. Pass an open parser to avoid opening one.
 */
export async function updateCodeFile(
  { knowledge, project }: { knowledge: Knowledge; project: string },
  file: string,
  parser?: CodeParser,
): Promise<"read" | "removed" | "skipped" | "same"> {
  const path = relative(project, isAbsolute(file) ? file : join(project, file))
    .split(sep)
    .join("/")
  if (path === "" || path.startsWith("../") || isAbsolute(path)) return "same"
  if (posix.basename(path) === "go.mod") relinkIfDue(knowledge, project, storedProject(knowledge, project))
  if (languageOf(path) === undefined) return "same"
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  const name = redactName(path)
  const known = knowledge.code.codeStamps(project, name).get(name)
  const stamp = codeStampOf(project, path)
  if (!stamp) {
    if (!known) return "same"
    knowledge.code.removeCode(project, [name])
    relinkIfDue(knowledge, project, storedProject(knowledge, project))
    return "removed"
  }
  if (known && isSameStamp(known, stamp)) return "same"
  const reader = openCodeReader(project, { bytes: stamp.size, sorts: new Set([codeSortOf(path)]), parser })
  try {
    const [read] = await reader.read([{ path, known }])
    saveFiles(knowledge, project, [read!], storedPaths(knowledge, project))
    if (knowledge.code.linkedBy(project) === undefined)
      relinkIfDue(knowledge, project, storedProject(knowledge, project))
    return read!.type === "same" ? "same" : read!.file.skipped === undefined ? "read" : "skipped"
  } finally {
    await reader.close()
  }
}

function changedFiles(project: string, paths: string[], known: Map<string, CodeStamp>) {
  const batches: CodeOrder[][] = []
  let bytes = 0
  let room = 0
  for (const sort of ["optimized", "plain"] as const) {
    let batch: CodeOrder[] | undefined
    for (const path of paths) {
      if (codeSortOf(path) !== sort) continue
      const stamp = codeStampOf(project, path)
      const before = known.get(redactName(path))
      if (before && stamp && isSameStamp(before, stamp)) continue
      const size = stamp?.size ?? 0
      if (!batch || batch.length >= BATCH_LIMITS.files || size > room) {
        batch = []
        batches.push(batch)
        room = BATCH_LIMITS.bytes
      }
      batch.push({ path, known: before })
      room -= size
      bytes += size
    }
  }
  return { batches, sorts: new Set(batches.map((batch) => codeSortOf(batch[0]!.path))), bytes }
}

function addToResult(result: CodeSync, results: ReadCode[]): void {
  for (const item of results) {
    if (item.type === "same") continue
    const why = item.file.skipped
    if (why === undefined) result.read++
    else result.skipped[why] = (result.skipped[why] ?? 0) + 1
  }
}

function saveFiles(knowledge: Knowledge, project: string, results: ReadCode[], projectFiles: ProjectPaths): void {
  for (const item of results) if (item.type === "same") knowledge.code.restampCode(project, item.path, item.stamp)
  const files = results.flatMap((item) => (item.type === "read" ? withLinks(item.file, projectFiles) : []))
  knowledge.code.saveCode(project, files)
}

function withLinks(file: CodeFile, projectFiles: ProjectPaths): CodeFile {
  const imports = file.imports.map((item) => {
    const target = importTarget(file.path, file.language as LanguageId, item, projectFiles)
    return target === undefined ? item : { ...item, target }
  })
  return { ...file, imports }
}

/** Links the project's code again if necessary, which also completes the work of an interrupted sync. */
function relinkIfDue(knowledge: Knowledge, project: string, projectFiles: CompleteProject): void {
  if (knowledge.code.linkedBy(project) === projectFiles.modules) return
  knowledge.code.relinkImports(project, projectFiles.modules, (importer, language, wanted) =>
    importTarget(importer, language as LanguageId, wanted, projectFiles),
  )
}

type CompleteProject = ProjectPaths & {
  /** The modules that the project's go.mod files name, as one text. */
  modules: string
}

function projectPaths(project: string, paths: string[]): CompleteProject {
  const files = new Set(paths)
  const folders = new Set(paths.map((path) => posix.dirname(path)))
  const moduleIn = goModules(project)
  const modules = goFolders(paths).map((folder) => [folder, moduleIn(folder)] as const)
  return {
    hasFile: (path) => files.has(path),
    hasFolder: (folder) => folders.has(folder),
    goModule: goModuleOf(moduleIn),
    modules: JSON.stringify(modules.filter(([, module]) => module !== undefined)),
  }
}

function storedProject(knowledge: Knowledge, project: string): CompleteProject {
  return projectPaths(project, [...knowledge.code.codeStamps(project).keys()])
}

/** Like `projectPaths`, for linking one file: looks up only the paths that are needed. */
function storedPaths(knowledge: Knowledge, project: string): ProjectPaths {
  return {
    hasFile: (path) => knowledge.code.hasCodeFile(project, path),
    hasFolder: (folder) => knowledge.code.hasCodeFolder(project, folder),
    goModule: goModuleOf(goModules(project)),
  }
}

/** Returns a function that finds the module that the go.mod in a folder names, if there is one. */
function goModules(project: string): (folder: string) => string | undefined {
  const moduleByFolder = new Map<string, string | undefined>()
  return (folder) => {
    if (!moduleByFolder.has(folder)) {
      const text = readSmallFile(join(project, folder, "go.mod"))?.toString("utf8")
      moduleByFolder.set(folder, text && /^\s*module\s+"?([^\s"]+)"?/m.exec(text)?.[1])
    }
    return moduleByFolder.get(folder)
  }
}

function goModuleOf(moduleIn: (folder: string) => string | undefined): ProjectPaths["goModule"] {
  return (path) => {
    for (const folder of withParents(posix.dirname(path))) {
      const module = moduleIn(folder)
      if (module !== undefined) return { folder, module }
    }
    return undefined
  }
}

/** The folders in which a go.mod would matter. */
function goFolders(paths: string[]): string[] {
  const withGoFiles = new Set(paths.filter((path) => languageOf(path) === "go").map((path) => posix.dirname(path)))
  return [...new Set([...withGoFiles].flatMap(withParents))].sort()
}

/** The folder and its parents, up to the project's own, which is ".". */
function withParents(folder: string): string[] {
  return folder === "." ? [folder] : [folder, ...withParents(posix.dirname(folder))]
}

/**
 * The most code files per project. Further files are counted, but not read. Linux has 60,000 C files; a single team's project has
 * a tenth of that.
 */
const MAX_CODE_FILES = 50_000
const MAX_DEPTH = 40
const SKIPPED_FOLDERS =
  /^(?:\.|node_modules$|bower_components$|vendor$|dist$|build$|out$|target$|coverage$|__pycache__$|venv$|site-packages$)/

/** Lists the code files of a project, sorted by path, and the number of files beyond the limit. */
export async function listCodeFiles(
  project: string,
  options: { limit?: number; signal?: AbortSignal } = {},
): Promise<{ paths: string[]; not_listed: number }> {
  const limit = options.limit ?? MAX_CODE_FILES
  const isCode = (path: string) =>
    languageOf(path) !== undefined && !path.split("/").slice(0, -1).includes("node_modules")
  // Git also lists tracked files that no longer exist.
  const exists = (path: string) => lookAt(join(project, path), { follow: false }) !== undefined
  const gitFiles = await listGitFiles(project, options.signal)
  const all = gitFiles ? gitFiles.filter((path) => isCode(path) && exists(path)) : walk(project, limit).filter(isCode)
  return { paths: all.slice(0, limit), not_listed: Math.max(0, all.length - limit) }
}

/**
 * Lists the files of a project without git. Skips hidden folders, folders with installed or built files, and links. Stops at
 * twice the limit.
 */
function walk(project: string, limit: number): string[] {
  const files: string[] = []
  const folders = [""]
  for (let folder = folders.pop(); folder !== undefined && files.length <= 2 * limit; folder = folders.pop()) {
    for (const entry of entriesOf(join(project, folder))) {
      const path = folder === "" ? entry.name : `${folder}/${entry.name}`
      if (entry.isDirectory() && !SKIPPED_FOLDERS.test(entry.name) && path.split("/").length < MAX_DEPTH)
        folders.push(path)
      else if (entry.isFile() && languageOf(path) !== undefined) files.push(path)
    }
  }
  return files.sort()
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // deleted or not readable; the next sync looks again
  }
}
