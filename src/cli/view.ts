import { spawn } from "node:child_process"
import { once } from "node:events"
import { release } from "node:os"
import { pathToFileURL } from "node:url"
import { parseArgs } from "node:util"
import { getHeapSpaceStatistics, setFlagsFromString } from "node:v8"
import { createDex } from "../app/dex.ts"
import { VERSION } from "../app/version.ts"
import { dexHome } from "../config/home.ts"
import { DexError, isDexError } from "../core/error.ts"
import { formatRef } from "../core/ref.ts"
import type { InputOf } from "../core/tool.ts"
import { safeLine, terminalOf } from "../render/terminal.ts"
import type { BlameInput } from "../tools/blame/blame.ts"
import { blameTarget } from "../tools/blame/target.ts"
import { resolveRef } from "../tools/resolve.ts"
import type { usage } from "../tools/usage/usage.ts"
import { type Entry, enterRunningView, takeDoor } from "../view/door.ts"
import { serveView } from "../view/serve-view.ts"
import { usageError } from "./args.ts"

const OPTIONS = [["    --no-open", "Print the address and open no browser."]] as const
const FLAGS = { help: { type: "boolean", short: "h" }, "no-open": { type: "boolean" } } as const
const IDLE_MS = 30 * 60_000

/** Serves the pages until Ctrl-C, or until nobody has looked at a page for half an hour. */
export async function viewCommand(args: string[]): Promise<number> {
  const { values, positionals } = parseFlags(args)
  if (values.help) {
    process.stdout.write(await help())
    return 0
  }
  return showPath(await pathFor(positionals), values["no-open"] !== true)
}

/** Opens the page that shows what `dex blame`, `dex why` or `dex usage` prints. Returns the exit code. */
export async function viewOutput(command: string, input: unknown): Promise<number> {
  return showPath(
    command === "usage" ? usagePath(input as InputOf<typeof usage>) : await codePath(input as BlameInput),
    true,
  )
}

async function showPath(to: string, opensBrowser: boolean): Promise<number> {
  const say = (line: string) => void process.stderr.write(`${safeLine(line)}\n`)
  const entryRequest = { to, page: opensBrowser && canOpen(process) }
  const home = dexHome(process.env)
  const door = takeDoor(home)
  const runningEntry = door ? undefined : await enterRunningView(home, entryRequest)
  if (runningEntry !== undefined) {
    await show(runningEntry, say)
    return 0
  }
  limitMemory()
  const view = await serveView({
    env: process.env,
    cwd: process.cwd(),
    version: VERSION,
    log: (line) => say(`dex: ${line}`),
    idleMs: IDLE_MS,
    door,
  })
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.once(signal, () => void view.stop())
  await show(view.entry(entryRequest), say)
  say("Ctrl-C stops it. It also ends after 30 minutes without a visit.")
  const endReason = await view.ended
  if (endReason === "idle") say("Stopped after 30 minutes without a visit. Run `dex view` to open it again.")
  process.exit(0)
}

const NEW_SPACE_BYTES = 16 << 20

/**
 * Limits the memory of this process. V8 lets the space for new objects grow to 134 MB, and collects old objects only when their
 * size has doubled. After a search in a large history, the process would keep all of that memory. This function grows the space
 * for new objects to 16 MB, which is fast enough, and then keeps it from growing further. Old objects are collected earlier.
 */
function limitMemory(): void {
  const newSpaceSize = () =>
    getHeapSpaceStatistics().find(({ space_name }) => space_name === "new_space")?.space_size ?? NEW_SPACE_BYTES
  for (let i = 0, liveObjects: object[] = []; newSpaceSize() < NEW_SPACE_BYTES && i < 50; i++) {
    liveObjects = [...liveObjects.slice(-200_000), ...Array.from({ length: 20_000 }, () => ({}))] // the space grows only if objects are still in use
  }
  setFlagsFromString("--semi-space-growth-factor=1")
  setFlagsFromString("--heap-growing-percent=30")
}

/** The page to open. The words are a ref, the address of a page in an earlier `dex view`, or a search. */
async function pathFor(words: string[]): Promise<string> {
  if (words.length === 0) return ""
  const [, earlierPath] = /^http:\/\/(?:127\.0\.0\.1|localhost):\d+\/\w+\/(.*)$/.exec(words.join(" ")) ?? []
  if (earlierPath !== undefined) return earlierPath
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    if (words.length === 1 && dex.hasHistory()) {
      const { row, number } = await resolveRef(dex, words[0]!)
      const ref = encodeURIComponent(formatRef(row.ref))
      return number === undefined ? `c/${ref}` : `c/${ref}?at=${number}#m${number}`
    }
  } catch (error) {
    // Words that are not a ref are a search.
    if (!isDexError(error) || !["bad_ref", "not_found"].includes(error.code)) throw error
  } finally {
    dex.close()
  }
  return `find?${new URLSearchParams({ q: words.join(" ") })}`
}

function usagePath({ by, project, source, model, from, to }: InputOf<typeof usage>): string {
  const given = Object.entries({ by, project, source, model, from, to }).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  )
  return `usage?${new URLSearchParams(given)}`
}

/** The page of a file, at a line, or of a commit. */
async function codePath({ target: typed, rev }: Pick<BlameInput, "target" | "rev">): Promise<string> {
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  try {
    const target = await blameTarget(dex, typed, rev)
    const { project } = target
    if (target.kind === "file") {
      const line: Record<string, string> = target.from === undefined ? {} : { at: String(target.from) }
      return `file?${new URLSearchParams({ project, path: target.path, ...(rev && { rev }), ...line })}`
    }
    if (target.kind === "commits" && target.hashes.length === 1)
      return `commit?${new URLSearchParams({ project, commit: target.hashes[0]! })}`
  } finally {
    dex.close()
  }
  throw new DexError("usage", "A page shows one file or one commit. Without --web, this is printed.")
}

/** Opens the browser, and prints the address in case that fails. The address works once, within a minute. */
async function show({ address, page }: Entry, say: (line: string) => void): Promise<void> {
  const isOpened = page !== undefined && (await openBrowser(pathToFileURL(page).href))
  say(
    isOpened
      ? "Opened in your browser. If it shows nothing, open this address there within a minute; it works once:"
      : "Open this address within a minute; it works once:",
  )
  process.stdout.write(`${address}\n`)
  if (remoteConnection(process.env) === "ssh") {
    const { port } = new URL(address)
    say(`First run this on your own machine: ssh -L ${port}:127.0.0.1:${port} <this machine>`)
  }
}

function remoteConnection(env: NodeJS.ProcessEnv): "ssh" | "wsl" | undefined {
  if (env.SSH_CONNECTION || env.SSH_TTY) return "ssh"
  return env.WSL_DISTRO_NAME || /microsoft/i.test(release()) ? "wsl" : undefined
}

/** True if a person is probably at this machine and a browser can be opened. */
function canOpen({ stdout, platform, env }: NodeJS.Process): boolean {
  if (!stdout.isTTY || remoteConnection(env) !== undefined) return false
  return platform !== "linux" || Boolean(env.DISPLAY || env.WAYLAND_DISPLAY)
}

/** Opens a page from a file, because all users of this machine can see command lines, and the address contains a secret code. */
async function openBrowser(page: string): Promise<boolean> {
  const { platform } = process
  const [program, ...args] =
    platform === "darwin"
      ? ["open", page]
      : platform === "win32"
        ? ["rundll32", "url.dll,FileProtocolHandler", page]
        : ["xdg-open", page]
  try {
    const child = spawn(program!, args, { stdio: "ignore", detached: true })
    child.unref()
    await once(child, "spawn")
    return true
  } catch {
    return false // the program does not exist
  }
}

async function help(): Promise<string> {
  const { pageHelp } = await import("./help.ts")
  return pageHelp(
    {
      usage: "dex view [ref, address or words]",
      text: [
        "Opens your history in the browser: conversations to read, search, files with who wrote each line, and what it all cost.",
        "It serves on 127.0.0.1 only, to the one browser that it opens, and loads nothing from anywhere else. Ctrl-C stops it; it also ends after 30 minutes without a visit.",
      ],
      options: OPTIONS,
      examples: ["dex view", "dex view 2", 'dex view "refresh token race"'],
    },
    terminalOf(process.stdout, process.env),
  )
}

function parseFlags(args: string[]) {
  try {
    return parseArgs({ args, options: FLAGS, allowPositionals: true })
  } catch (error) {
    throw usageError("view", error as Error, args, FLAGS)
  }
}
