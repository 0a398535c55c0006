import { spawn } from "node:child_process"
import { mkdir, mkdtemp, rename, rm, stat } from "node:fs/promises"
import { dirname, join } from "node:path"
import { DexError } from "../core/error.ts"

export type GitOptions = { timeoutMs?: number | undefined; signal?: AbortSignal | undefined }

/** A shallow copy of a repository in `folder`, made when it is not there. Its links are plain files, its hooks never run. */
export async function cloneRepository(url: string, folder: string, options: GitOptions = {}): Promise<void> {
  if (await isFolder(join(folder, ".git"))) return
  await mkdir(dirname(folder), { recursive: true, mode: 0o700 })
  const partial = await mkdtemp(`${folder}.partial-`)
  try {
    await git(["clone", ...SHALLOW, "--single-branch", "--template=", "--", url, partial], options)
    await rm(folder, { recursive: true, force: true })
    await rename(partial, folder)
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}

/** What the repository holds now. On failure the copy stays as it was. */
export async function updateRepository(url: string, folder: string, options: GitOptions = {}): Promise<void> {
  if (!(await isFolder(join(folder, ".git")))) return cloneRepository(url, folder, options)
  // A git that was killed leaves its locks; only one sync runs at a time.
  for (const lock of ["index.lock", "shallow.lock"]) await rm(join(folder, ".git", lock), { force: true })
  const inside = [`--git-dir=${join(folder, ".git")}`, `--work-tree=${folder}`]
  await git([...inside, "fetch", ...SHALLOW, "--force", "--", url, "HEAD"], options)
  await git([...inside, "reset", "--hard", "--quiet", "FETCH_HEAD"], options)
  await git([...inside, "clean", "-ffdxq"], options)
}

export async function headOf(folder: string, options: GitOptions = {}): Promise<string> {
  return (await git([`--git-dir=${join(folder, ".git")}`, "rev-parse", "--short=12", "HEAD"], options)).trim()
}

const SHALLOW = ["--depth=1", "--no-tags", "--no-recurse-submodules"]
const SAFE = {
  "core.symlinks": "false",
  "core.hooksPath": "/dev/null",
  "core.fsmonitor": "false",
  "protocol.ext.allow": "never",
  "submodule.recurse": "false",
  "filter.lfs.smudge": "",
  "filter.lfs.process": "",
  "filter.lfs.required": "false",
  "gc.auto": "0",
}
const SETTINGS = Object.entries(SAFE).flatMap(([name, value]) => ["-c", `${name}=${value}`])
const KEPT = /^GIT_(SSH|SSH_COMMAND|SSL_.*|CONFIG_GLOBAL|CONFIG_NOSYSTEM|EXEC_PATH|PROXY_COMMAND|HTTP_.*)$/

/** In its own session, so that nothing can ask for a password on the terminal, and stopped as a whole when time is up. */
function git(args: string[], { timeoutMs = 120_000, signal }: GitOptions): Promise<string> {
  signal?.throwIfAborted()
  const inherited = Object.entries(process.env).filter(([name]) => !name.startsWith("GIT_") || KEPT.test(name))
  const env = {
    ...Object.fromEntries(inherited),
    GIT_TERMINAL_PROMPT: "0",
    GIT_ALLOW_PROTOCOL: "https:ssh:file",
    GIT_LFS_SKIP_SMUDGE: "1",
    LC_ALL: "C",
  }
  return new Promise((resolve, reject) => {
    const child = spawn("git", [...SETTINGS, ...args], { env, detached: true, stdio: ["ignore", "pipe", "pipe"] })
    let out = ""
    let err = ""
    let stopped = ""
    const stop = (why: string) => {
      stopped = why
      try {
        process.kill(-child.pid!, "SIGKILL")
      } catch {
        child.kill("SIGKILL") // no process groups here, or it has ended
      }
    }
    const timer = setTimeout(() => stop(`it took longer than ${Math.round(timeoutMs / 1000)} s`), timeoutMs)
    const onAbort = () => stop("it was cancelled")
    signal?.addEventListener("abort", onAbort, { once: true })
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      out = (out + text).slice(0, 10_000)
    })
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      err = (err + text).slice(-2_000)
    })
    const end = () => {
      clearTimeout(timer)
      signal?.removeEventListener("abort", onAbort)
    }
    child.on("error", (cause) => {
      end()
      reject(
        new DexError("no_git", "git cannot be started. Install git, or add a folder that is on this machine.", {
          cause,
        }),
      )
    })
    child.on("close", (code) => {
      end()
      if (code === 0 && !stopped) return resolve(out)
      const why = stopped || err.trim().split("\n").slice(-3).join(" ") || `it ended with ${code}`
      reject(
        new DexError(
          "git_failed",
          `git could not read the repository: ${why}. Try \`git ls-remote\` with its address.`,
        ),
      )
    })
  })
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
