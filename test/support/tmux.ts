import { execFile, execFileSync, spawn } from "node:child_process"
import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { createInterface } from "node:readline"
import { promisify } from "node:util"
import { expect, onTestFinished } from "vitest"
import { DEX } from "./dex.ts"

const run = promisify(execFile)

/** True if tests can open terminals, type on them and read their screens. */
export const hasTmux: boolean = canRun("tmux", "-V")

export function canRun(program: string, ...args: string[]): boolean {
  try {
    execFileSync(program, args, { stdio: "ignore" })
    return true
  } catch {
    return false
  }
}

export type TmuxScreen = {
  /** Presses keys by tmux's names: Enter, Down, C-c, M-h. */
  keys(...names: string[]): Promise<void>
  type(text: string): Promise<void>
  /** The screen without blanks at its end; with `-e`, with its colours. */
  text(...options: string[]): Promise<string>
  /** Waits until the screen shows this, and returns the screen. */
  shows(expected: RegExp | string): Promise<string>
  tmux(...args: string[]): Promise<string>
}

type ScreenOptions = {
  columns: number
  rows: number
  env?: Record<string, string>
  cwd?: string
  /** The shell with its arguments. */
  shell?: string[]
  /** Receives the function that closes it, if it is for more than one test. */
  ended?: (close: () => Promise<void>) => void
}

/** Opens a shell on a terminal for this test, in which `dex` is the built dex. `bin` in the home comes first on its PATH. */
export async function openScreen(home: string, options: ScreenOptions): Promise<TmuxScreen> {
  const { columns, rows, cwd = home, shell = ["bash", "--norc", "--noprofile", "-i"], ended = onTestFinished } = options
  program(home, "dex", `exec '${process.execPath}' '${DEX}' "$@"`)
  const env = {
    HOME: home,
    PATH: `${join(home, "bin")}:/usr/bin:/bin`,
    LANG: "C.UTF-8",
    TERM: "screen-256color",
    TZ: "UTC",
    PS1: "$ ",
    PS2: "",
    ...options.env,
  }
  const socket = join(home, "tmux")
  const words = ["env", "-i", ...Object.entries(env).map(([name, value]) => `${name}=${value}`), ...shell]
  await run(
    "tmux",
    ["-S", socket, "-f", "/dev/null", "new-session", "-d", "-x", `${columns}`, "-y", `${rows}`, "--", ...words],
    { cwd, env: { PATH: process.env.PATH ?? "", LANG: "C.UTF-8" } },
  )
  const { tmux, close } = control(socket)
  ended(close)
  const text = async (...more: string[]) => (await tmux("capture-pane", "-p", ...more)).trimEnd()
  const screen: TmuxScreen = {
    keys: async (...names) => void (await tmux("send-keys", "--", ...names)),
    type: async (typed) => void (await tmux("send-keys", "-l", "--", typed)),
    text,
    shows: async (expected) => {
      const match = typeof expected === "string" ? expect.stringContaining(expected) : expect.stringMatching(expected)
      let last = ""
      await expect.poll(async () => (last = await text())).toEqual(match)
      return last
    },
    tmux,
  }
  await screen.shows(/[$%>#]/)
  return screen
}

/**
 * Sends commands to the terminal's server and returns their output. All go through one client, because starting a process
 * for each command would take longer than the command itself.
 */
function control(socket: string) {
  const client = spawn("tmux", ["-S", socket, "-u", "-C", "attach", "-f", "ignore-size,no-output"], {
    stdio: ["pipe", "pipe", "ignore"],
  })
  const waiting: { resolve: (printed: string) => void; reject: (error: Error) => void }[] = []
  let printed: string[] | undefined
  let block = ""
  let isAttached = false
  createInterface({ input: client.stdout }).on("line", (line) => {
    const [word, ...rest] = line.split(" ")
    if (printed === undefined) {
      if (word !== "%begin") return
      printed = []
      block = rest.join(" ")
    } else if ((word !== "%end" && word !== "%error") || rest.join(" ") !== block) printed.push(line)
    else {
      const text = printed.map((one) => `${one}\n`).join("")
      printed = undefined
      // The first output is that of attaching.
      if (!isAttached) isAttached = true
      else if (word === "%end") waiting.shift()?.resolve(text)
      else waiting.shift()?.reject(new Error(`tmux: ${text}`))
    }
  })
  client.stdin.on("error", () => {}) // "close" follows
  const gone = new Promise<void>((resolve) => client.once("close", resolve))
  gone.then(() => {
    for (const { reject } of waiting) reject(new Error("The terminal has ended"))
  })
  const tmux = (...args: string[]) =>
    new Promise<string>((resolve, reject) => {
      if (client.exitCode !== null) return reject(new Error("The terminal has ended"))
      waiting.push({ resolve, reject })
      client.stdin.write(`${args.map(quoted).join(" ")}\n`)
    })
  const close = async () => {
    tmux("kill-server").catch(() => {})
    await gone
  }
  return { tmux, close }
}

function quoted(word: string): string {
  const escaped = word.replaceAll(/[\\"$]/g, "\\$&")
  return `"${escaped.replaceAll(/[\x00-\x1f\x7f]/g, (sign) => `\\${sign.charCodeAt(0).toString(8).padStart(3, "0")}`)}"`
}

/** Writes a program to the PATH of the shells that are opened for this home. */
export function program(home: string, name: string, script: string): void {
  const file = join(home, "bin", name)
  mkdirSync(join(home, "bin"), { recursive: true })
  writeFileSync(file, `#!/bin/sh\n${script}\n`)
  chmodSync(file, 0o755)
}
