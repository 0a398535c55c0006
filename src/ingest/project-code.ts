import { readdirSync } from "node:fs"
import { isAbsolute, join, posix, relative, sep } from "node:path"
import { setImmediate } from "node:timers/promises"
import { type LanguageId, languageOf } from "../code/languages.ts"
import type { CodeParser } from "../code/parse.ts"
import { importTarget, type ProjectPaths } from "../code/resolve.ts"
import { lookAt } from "../core/look-at.ts"
import { listGitFiles } from "../git/list-files.ts"
import { redactName } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import type { CodeFile, CodeStamp } from "../store/knowledge/code.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import { codeSortOf, openCodeReader } from "./code-reader.ts"
import { type CodeRequest, codeStampOf, isSameStamp, type ReadCode, readSmallFile } from "./read-code.ts"

type CodeSync = {
  /** The number of the project's code files, including skipped ones. */
  files: number
  read: number
  removed: number
  /** Files that were skipped in this run, by reason: huge, minified, generated, binary, slow, broken, unreadable. */
  skipped: Record<string, number>
  /** The number of files beyond the limit per project. */
  not_listed: number
}

export type CodeSyncOptions = {
  signal?: AbortSignal
  limit?: number
  onProgress?: (done: number, total: number) => void
  /** True to parse in a subprocess, even if there is little to parse. */
  inSubprocess?: boolean
}

/** The maximum size of a batch: large enough to make a transaction worthwhile, and small enough to use little memory. */
const BATCH_LIMITS = { files: 50, bytes: 256 << 10 }

/** A project, and the folder in which its code is read: its own, or another of its places. */
type CodeProject = { knowledge: Knowledge; project: string; folder?: string }

/** Updates the knowledge about a project's code: reads changed files, and removes those that no longer exist. */
export async function syncProjectCode(
  { knowledge, project, folder = project }: CodeProject,
  options: CodeSyncOptions = {},
): Promise<CodeSync> {
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  const { paths, not_listed } = await listCodeFiles(folder, options)
  const knownStamps = knowledge.code.codeStamps(project)
  const names = paths.map(redactName)
  const projectFiles = projectPaths(folder, names)
  const result: CodeSync = { files: paths.length, read: 0, removed: 0, skipped: {}, not_listed }
  const { batches, sorts, bytes } = changedFiles(folder, paths, knownStamps)
  const reader = openCodeReader(folder, { bytes, sorts, inSubprocess: options.inSubprocess })
  let done = paths.length - batches.reduce((sum, batch) => sum + batch.length, 0)
  try {
    // One batch is read while the previous one is stored.
    let next = batches[0] && reader.read(batches[0])
    for (let i = 0; next; i++) {
      const results = await next
      options.signal?.throwIfAborted()
      next = batches[i + 1] && reader.read(batches[i + 1]!)
      next?.catch(() => {}) // the next round awaits the result, unless storing fails first
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
 * Updates one file that was just changed, created or removed. Returns `same` if there was nothing to do, or if it is not one of
 * the project's code files. Does not check whether git ignores the file: the caller must do that. Pass an open parser to avoid
 * opening one.
 */
export async function updateCodeFile(
  { knowledge, project, folder = project }: CodeProject,
  file: string,
  parser?: CodeParser,
): Promise<"read" | "removed" | "skipped" | "same"> {
  const path = relative(folder, isAbsolute(file) ? file : join(folder, file))
    .split(sep)
    .join("/")
  if (path === "" || path.startsWith("../") || isAbsolute(path)) return "same"
  if (posix.basename(path) === "go.mod") relinkIfDue(knowledge, project, storedProject(knowledge, project, folder))
  if (languageOf(path) === undefined) return "same"
  knowledge.projects.setRedactionVersion(REDACTION_VERSION)
  const name = redactName(path)
  const knownStamp = knowledge.code.codeStamps(project, name).get(name)
  const stamp = codeStampOf(folder, path)
  if (!stamp) {
    if (!knownStamp) return "same"
    knowledge.code.removeCode(project, [name])
    relinkIfDue(knowledge, project, storedProject(knowledge, project, folder))
    return "removed"
  }
  if (knownStamp && isSameStamp(knownStamp, stamp)) return "same"
  const reader = openCodeReader(folder, { bytes: stamp.size, sorts: new Set([codeSortOf(path)]), parser })
  try {
    const [read] = await reader.read([{ path, known: knownStamp }])
    saveFiles(knowledge, project, [read!], storedPaths(knowledge, project, folder))
    if (knowledge.code.linkedBy(project) === undefined)
      relinkIfDue(knowledge, project, storedProject(knowledge, project, folder))
    return read!.type === "same" ? "same" : read!.file.skipped === undefined ? "read" : "skipped"
  } finally {
    await reader.close()
  }
}

function changedFiles(project: string, paths: string[], known: Map<string, CodeStamp>) {
  const batches: CodeRequest[][] = []
  let bytes = 0
  let roomInBatch = 0
  for (const sort of ["optimized", "plain"] as const) {
    let batch: CodeRequest[] | undefined
    for (const path of paths) {
      if (codeSortOf(path) !== sort) continue
      const stamp = codeStampOf(project, path)
      const knownStamp = known.get(redactName(path))
      if (knownStamp && stamp && isSameStamp(knownStamp, stamp)) continue
      const size = stamp?.size ?? 0
      if (!batch || batch.length >= BATCH_LIMITS.files || size > roomInBatch) {
        batch = []
        batches.push(batch)
        roomInBatch = BATCH_LIMITS.bytes
      }
      batch.push({ path, known: knownStamp })
      roomInBatch -= size
      bytes += size
    }
  }
  return { batches, sorts: new Set(batches.map((batch) => codeSortOf(batch[0]!.path))), bytes }
}

function addToResult(result: CodeSync, results: ReadCode[]): void {
  for (const item of results) {
    if (item.type === "same") continue
    const reason = item.file.skipped
    if (reason === undefined) result.read++
    else result.skipped[reason] = (result.skipped[reason] ?? 0) + 1
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
  /** The modules that the project's go.mod files name, as JSON, so that they can be compared. */
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
    goModule: nearestGoModule(moduleIn),
    modules: JSON.stringify(modules.filter(([, module]) => module !== undefined)),
  }
}

function storedProject(knowledge: Knowledge, project: string, folder: string): CompleteProject {
  return projectPaths(folder, [...knowledge.code.codeStamps(project).keys()])
}

/** Like `projectPaths`, for linking one file: looks up only the paths that are needed. */
function storedPaths(knowledge: Knowledge, project: string, root: string): ProjectPaths {
  return {
    hasFile: (path) => knowledge.code.hasCodeFile(project, path),
    hasFolder: (folder) => knowledge.code.hasCodeFolder(project, folder),
    goModule: nearestGoModule(goModules(root)),
  }
}

/** Returns a function that returns the module named by the go.mod file in a folder, if there is one. */
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

function nearestGoModule(moduleIn: (folder: string) => string | undefined): ProjectPaths["goModule"] {
  return (path) => {
    for (const folder of withParents(posix.dirname(path))) {
      const module = moduleIn(folder)
      if (module !== undefined) return { folder, module }
    }
    return undefined
  }
}

/** Returns the folders in which a go.mod file matters: those with Go files, and their parents. */
function goFolders(paths: string[]): string[] {
  const withGoFiles = new Set(paths.filter((path) => languageOf(path) === "go").map((path) => posix.dirname(path)))
  return [...new Set([...withGoFiles].flatMap(withParents))].sort()
}

/** Returns the folder and its parents, up to the project's folder, which is ".". */
function withParents(folder: string): string[] {
  return folder === "." ? [folder] : [folder, ...withParents(posix.dirname(folder))]
}

/**
 * The maximum number of code files per project. Further files are counted, but not read. Linux has 60,000 C files; a single
 * team's project has a tenth of that.
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
  const codeFiles = gitFiles
    ? gitFiles.filter((path) => isCode(path) && exists(path))
    : walkFiles(project, limit).filter(isCode)
  return { paths: codeFiles.slice(0, limit), not_listed: Math.max(0, codeFiles.length - limit) }
}

/**
 * Lists a project's code files without git. Skips hidden folders, folders with installed or built files, and links. Stops after
 * twice the limit.
 */
function walkFiles(project: string, limit: number): string[] {
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
    return [] // the folder was deleted or cannot be read; the next sync tries again
  }
}
