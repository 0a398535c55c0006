import { type ChildProcess, spawn } from "node:child_process"
import { once } from "node:events"
import { safeLine, terminalOf } from "../../render/terminal.ts"

type Env = Record<string, string | undefined>

/**
 * Shows long output in the user's pager, or prints it if there is none. Lines are generated as the pager reads them. Leaving the
 * pager early is not an error.
 */
export async function showInPager(lines: () => Iterable<string>, pager: boolean, title?: string): Promise<void> {
  const { color } = terminalOf(process.stdout, process.env)
  const command = pager ? pagerCommand(process.env, color, title) : undefined
  if (command === undefined || !(await runPager(command, lines()))) printAll(lines())
}

/**
 * The pager and its arguments. `DEX_PAGER` overrides `PAGER`; empty or `cat` means none. A command that consists of plain words
 * is started without a shell. less gets the option that colours need and, if the user has chosen no options, those that git
 * passes to it, and a prompt with the title.
 */
export function pagerCommand(env: Env, color: boolean, title?: string): string[] | undefined {
  const commandLine = (env.DEX_PAGER ?? env.PAGER ?? "less").trim()
  if (commandLine === "" || commandLine === "cat" || env.TERM === "dumb") return undefined
  if (!/^[\w@%+=:,./ -]+$/.test(commandLine) && process.platform !== "win32") return ["/bin/sh", "-c", commandLine]
  const [program = "", ...options] = commandLine.split(/ +/)
  if (!/(^|\/)less$/.test(program)) return [program, ...options]
  const isPlain = options.length === 0 && env.LESS === undefined
  return [program, ...(isPlain ? ["-RFX", promptOf(title)] : color ? ["-R"] : []), ...options]
}

const MAX_PROMPT_TITLE = 40

/**
 * less's prompt: the title, the position and the keys. less prints only ASCII there; some characters have a meaning in it, and a
 * dollar sign ends it.
 */
function promptOf(title: string | undefined): string {
  const ascii = safeLine(title ?? "").replace(/[^\x20-\x7e]|\$/g, "")
  const text = ascii
    .slice(0, MAX_PROMPT_TITLE)
    .trim()
    .replace(/[\\?:.%]/g, "\\$&")
  return `-Ps${text === "" ? "" : `${text}  `}line %lb?L of %L.  /\\: search  q\\: leave`
}

/** Adds the UTF-8 charset for less: if no locale is set, less shows every character beyond ASCII as bytes (`<E2><94><82>`). */
export function withLessCharset(env: Env): Env {
  const hasCharset = env.LC_ALL || env.LC_CTYPE || env.LANG || env.LESSCHARSET || env.LESSCHARDEF
  return hasCharset ? {} : { LESSCHARSET: "utf-8" }
}

/** Returns false if the pager could not be started. */
async function runPager([program = "", ...args]: string[], lines: Iterable<string>): Promise<boolean> {
  // Ctrl-C is for the pager: less interrupts what it is doing; other pagers end, and then dex ends too. The handler is added
  // before the pager starts, because Ctrl-C may be pressed at once.
  const ignore = () => {}
  process.on("SIGINT", ignore)
  const env = { ...process.env, ...withLessCharset(process.env) }
  const child = spawn(program, args, { stdio: ["pipe", "inherit", "inherit"], env })
  const exitCode = new Promise<number | null>((resolve) => {
    child.once("close", resolve)
    child.once("error", () => resolve(NOT_FOUND))
  })
  child.stdin!.on("error", () => {}) // the person left before the end
  try {
    await writeChunks(child, lines, exitCode)
    return (await exitCode) !== NOT_FOUND
  } catch (error) {
    // A line could not be generated. The person reads the earlier lines before the error is reported.
    child.stdin!.end()
    await exitCode
    throw error
  } finally {
    process.off("SIGINT", ignore)
  }
}

/** A shell's exit code for a program that does not exist. */
const NOT_FOUND = 127

async function writeChunks(child: ChildProcess, lines: Iterable<string>, exitCode: Promise<unknown>): Promise<void> {
  const input = child.stdin!
  let hasEnded = false
  void exitCode.then(() => {
    hasEnded = true
  })
  for (const text of chunks(lines)) {
    if (hasEnded || input.destroyed) return
    if (!input.write(text)) await Promise.race([once(input, "drain"), exitCode]).catch(() => {})
  }
  input.end()
}

/** Joins lines into chunks of some kilobytes, because one write per line takes longer than generating the line. */
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
