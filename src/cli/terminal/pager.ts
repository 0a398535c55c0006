import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { terminalOf } from "../../render/terminal.ts"

type Env = Record<string, string | undefined>

/**
 * Shows long output on a terminal through the user's pager, or prints it where there is none. Lines are made as the pager
 * asks for them. Whoever leaves early has read enough: that is no error.
 */
export async function readPaged(lines: () => Iterable<string>, pager: boolean): Promise<void> {
  const { color } = terminalOf(process.stdout, process.env)
  const command = pager ? pagerCommand(process.env, color) : undefined
  if (command === undefined || !(await throughPager(command, lines()))) printAll(lines())
}

/**
 * The program to read with and its arguments. `DEX_PAGER` comes before `PAGER`; empty or `cat` means none. A pager of
 * several plain words is started without a shell. less is given the flags that colours need, and, where the user has
 * chosen none, those with which git starts it.
 */
export function pagerCommand(env: Env, color: boolean): string[] | undefined {
  const chosen = (env.DEX_PAGER ?? env.PAGER ?? "less").trim()
  if (chosen === "" || chosen === "cat" || env.TERM === "dumb") return undefined
  if (!/^[\w@%+=:,./ -]+$/.test(chosen) && process.platform !== "win32") return ["/bin/sh", "-c", chosen]
  const [program = "", ...given] = chosen.split(/ +/)
  if (!/(^|\/)less$/.test(program)) return [program, ...given]
  const isPlain = given.length === 0 && env.LESS === undefined
  return [program, ...(isPlain ? ["-RFX"] : color ? ["-R"] : []), ...given]
}

/** Where no locale is set, less takes every letter beyond ASCII for bytes to be spelled out (`<E2><94><82>`). dex writes UTF-8. */
export function lessCharset(env: Env): Env {
  const isTold = env.LC_ALL || env.LC_CTYPE || env.LANG || env.LESSCHARSET || env.LESSCHARDEF
  return isTold ? {} : { LESSCHARSET: "utf-8" }
}

/** False where the pager could not be started. */
async function throughPager([program = "", ...args]: string[], lines: Iterable<string>): Promise<boolean> {
  // Ctrl-C is the pager's: less stops what it is doing with it, others end, and so do we. It may come as soon as it runs.
  const ignore = () => {}
  process.on("SIGINT", ignore)
  const env = { ...process.env, ...lessCharset(process.env) }
  const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"], env })
  const ended = new Promise<number | null>((resolve) => {
    child.once("close", resolve)
    child.once("error", () => resolve(NOT_FOUND))
  })
  child.stdin!.on("error", () => {}) // it was left before the end
  try {
    await feed(child, lines, ended)
    return (await ended) !== NOT_FOUND
  } catch (error) {
    // A line could not be made: what was made is read, then it is said.
    child.stdin!.end()
    await ended
    throw error
  } finally {
    process.off("SIGINT", ignore)
  }
}

/** What a shell says of a program that it does not find. */
const NOT_FOUND = 127

async function feed(child: ChildProcess, lines: Iterable<string>, ended: Promise<unknown>): Promise<void> {
  const input = child.stdin!
  let left = false
  void ended.then(() => {
    left = true
  })
  for (const text of chunks(lines)) {
    if (left || input.destroyed) return
    if (!input.write(text)) await Promise.race([once(input, "drain"), ended]).catch(() => {})
  }
  input.end()
}

/** Some kilobytes at a time: a write for each line takes longer than making it. */
function* chunks(lines: Iterable<string>): Generator<string> {
  let text = ""
  for (const line of lines) {
    text += `${line}\n`
    if (text.length < 8_192) continue
    yield text
    text = ""
  }
  if (text !== "") yield `${text.trimEnd()}\n`
}

function printAll(lines: Iterable<string>): void {
  for (const text of chunks(lines)) process.stdout.write(text)
}
