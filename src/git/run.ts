import { type ChildProcess, spawn } from "node:child_process"
import { join, resolve } from "node:path"
import { DexError } from "../core/error.ts"
import { lookAt } from "../core/look-at.ts"
import { gitFolderOf, readGitFile } from "./project.ts"

type RunOptions = {
  /** The folder in which git runs. git is not started if a file that it would open is not a regular one: see `obstacleIn`. */
  folder?: string
  timeoutMs: number
  /** The maximum number of bytes of output; git is stopped if it prints more. */
  maxBytes: number
  signal?: AbortSignal | undefined
  /** Prevents git from contacting other machines and from locking the repository. */
  readsOnly?: boolean
  /** The folder above which git does not look for a repository. */
  ceiling?: string
  /**
   * Settings that no file can override. Passed in the environment, because `-c` cannot name a section that contains an equals
   * sign.
   */
  settings?: Readonly<Record<string, string>>
  /** The standard input; empty if absent. */
  input?: string
  onOutput: (bytes: Buffer) => void
}

/** How the run ended; `stopped` is the reason if it was ended early. */
export type GitRunResult = { code: number | null; stopped?: "time" | "size" | "cancelled"; errors: string }

const SAFE_SETTINGS = {
  "core.symlinks": "false",
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "protocol.ext.allow": "never",
  "submodule.recurse": "false",
  "filter.lfs.smudge": "",
  "filter.lfs.process": "",
  "filter.lfs.required": "false",
  "gc.auto": "0",
  "maintenance.auto": "false",
  "log.showSignature": "false",
  "safe.bareRepository": "explicit",
}
const SETTING_ARGS = Object.entries(SAFE_SETTINGS).flatMap(([name, value]) => ["-c", `${name}=${value}`])
const INHERITED_VARIABLES =
  /^GIT_(SSH|SSH_COMMAND|SSL_.*|CONFIG_GLOBAL|CONFIG_NOSYSTEM|EXEC_PATH|PROXY_COMMAND|HTTP_.*)$/

/**
 * Runs git for all of dex: never through a shell, without the programs that a repository's settings name, and in its own session,
 * so that nothing can ask for a password on the terminal. If git exceeds a limit, it is killed with everything that it started.
 * Throws a DexError only if git cannot be started.
 */
export function runGit(args: string[], options: RunOptions): Promise<GitRunResult> {
  options.signal?.throwIfAborted()
  const obstacle = options.folder && obstacleIn(options.folder)
  if (obstacle) return Promise.resolve({ code: 128, errors: `${obstacle} is not a regular file` })
  const folderArgs = options.folder === undefined ? [] : ["-C", options.folder]
  return new Promise((resolve, reject) => {
    const child = spawn("git", [...SETTING_ARGS, "--no-pager", ...folderArgs, ...args], {
      env: environment(options),
      // On Windows, `detached` would open a window for each program that git starts.
      detached: process.platform !== "win32",
      windowsHide: true,
      stdio: [options.input === undefined ? "ignore" : "pipe", "pipe", "pipe"],
    })
    // If git ends before it has read all input, writing to it fails. Ignore that: git's own exit code and errors say why.
    child.stdin?.on("error", () => {}).end(options.input)
    let errors = ""
    let bytes = 0
    let stopped: GitRunResult["stopped"]
    const stopGit = (reason: GitRunResult["stopped"]) => {
      stopped ??= reason
      killProcessTree(child)
    }
    const timer = setTimeout(() => stopGit("time"), options.timeoutMs)
    const onAbort = () => stopGit("cancelled")
    options.signal?.addEventListener("abort", onAbort, { once: true })
    child.stdout!.on("data", (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > options.maxBytes) stopGit("size")
      else if (stopped === undefined) options.onOutput(chunk)
    })
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      errors = (errors + text).slice(-2_000)
    })
    const end = () => {
      clearTimeout(timer)
      options.signal?.removeEventListener("abort", onAbort)
    }
    child.on("error", (cause) => {
      end()
      reject(new DexError("no_git", "git cannot be started. Install git to read repositories.", { cause }))
    })
    child.on("close", (code) => {
      end()
      resolve({ code, errors: errors.trim(), stopped })
    })
  })
}

function environment({ readsOnly, ceiling, settings = {} }: RunOptions): Record<string, string | undefined> {
  const inherited = Object.entries(process.env).filter(
    ([name]) => !name.startsWith("GIT_") || INHERITED_VARIABLES.test(name),
  )
  return {
    ...Object.fromEntries(inherited),
    GIT_TERMINAL_PROMPT: "0",
    GIT_LFS_SKIP_SMUDGE: "1",
    LC_ALL: "C",
    ...(readsOnly
      ? // A partial clone would fetch missing objects with the program that its settings name.
        { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1", GIT_OPTIONAL_LOCKS: "0", GIT_NO_REPLACE_OBJECTS: "1" }
      : { GIT_ALLOW_PROTOCOL: "https:ssh:file" }),
    ...(ceiling !== undefined && { GIT_CEILING_DIRECTORIES: ceiling }),
    ...settingsInEnvironment(settings),
  }
}

function settingsInEnvironment(settings: Readonly<Record<string, string>>): Record<string, string> {
  const entries = Object.entries(settings)
  const variables = entries.flatMap(([name, value], i) => [
    [`GIT_CONFIG_KEY_${i}`, name],
    [`GIT_CONFIG_VALUE_${i}`, value],
  ])
  return Object.fromEntries([["GIT_CONFIG_COUNT", String(entries.length)], ...variables])
}

/** Files that git opens for every command. */
const OPENED_FILES = [
  ...["HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "commondir"],
  ...["info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "objects/info/commit-graph"],
]

/**
 * Finds a file of the repository that git would open and that is not a regular file: git would wait forever at a pipe. Returns
 * undefined if there is none. git's time limit covers deeper files, mostly objects.
 */
function obstacleIn(folder: string): string | undefined {
  const gitDir = gitFolderOf(folder)
  if (gitDir === undefined) return undefined
  const common = readGitFile(join(gitDir, "commondir"))?.trim()
  const gitDirs = common === undefined ? [gitDir] : [gitDir, resolve(gitDir, common)]
  const head = readGitFile(join(gitDir, "HEAD"))?.match(/^ref: (refs\/[^\0\n]+)$/m)?.[1]
  const names = head === undefined ? OPENED_FILES : [...OPENED_FILES, head.trim()]
  return gitDirs
    .flatMap((dir) => names.map((name) => join(dir, name)))
    .concat([".gitignore", ".gitattributes"].map((name) => join(folder, name)))
    .find((path) => isObstacle(path))
}

function isObstacle(path: string): boolean {
  const stats = lookAt(path)
  return stats !== undefined && stats !== "unknown" && !stats.isFile() && !stats.isDirectory()
}

/**
 * Kills a process and everything that it started. It must have been started as the leader of its own group (`detached`). Windows
 * has no such groups, so its children are looked up instead. A process that has already ended is not an error.
 */
export function killProcessTree(child: ChildProcess): void {
  if (child.pid === undefined) return
  if (process.platform === "win32") {
    killWithTaskkill(child)
    return
  }
  try {
    process.kill(-child.pid, "SIGKILL")
  } catch {
    child.kill("SIGKILL") // this system has no process groups, or the process has ended
  }
}

function killWithTaskkill(child: ChildProcess): void {
  const killOnlyProcess = () => void child.kill("SIGKILL")
  const taskkill = join(process.env.SystemRoot ?? "C:\\Windows", "System32", "taskkill.exe")
  spawn(taskkill, ["/pid", String(child.pid), "/t", "/f"], { stdio: "ignore", windowsHide: true })
    .on("error", killOnlyProcess)
    .on("exit", killOnlyProcess)
}
