import { spawnSync } from "node:child_process"
import { fstatSync, readFileSync, writeSync } from "node:fs"
import { limitsInStatusLine } from "../agents/claude-code/limits.ts"
import { dexHome } from "../config/home.ts"
import { parseObject } from "../core/record.ts"
import { readLimits, saveLimits } from "../tools/usage/limits-file.ts"
import { limitsLine } from "../usage/limits.ts"
import { type LineState, usageLine } from "../usage/line.ts"

/** How long to wait for the agent's JSON. Who keeps the input open without writing gets the line anyway. */
const INPUT_MS = 200
const MAX_INPUT_BYTES = 1 << 20
const COMMAND_TIMEOUT_MS = 5_000

/**
 * Runs `dex usage --line`. A status line calls it every few seconds, so it opens only two small files. If an agent passes its JSON,
 * the limits of its plan are stored. `before` is a status line command that gets the same input, and whose output comes first.
 * Returns the exit code.
 */
export async function printUsageLine(env: Record<string, string | undefined>, before?: string): Promise<number> {
  const home = dexHome(env)
  const now = Date.now()
  const input = await readInput()
  const replaced = before === undefined ? "" : outputOf(before, input ?? "")
  const reported = input === undefined ? undefined : limitsInStatusLine(parseObject(input), now)
  const limits = reported ? saveLimits(home.limits, "claude_code", reported) : readLimits(home.limits).claude_code
  const state = readState(home.usageLine)
  if (!state && !limits && replaced === "") {
    process.stderr.write("dex: No usage is recorded yet. Run `dex usage` once; after that every sync updates it.\n")
    return 1
  }
  const line = [...(limits ? limitsLine(limits, now) : []), ...(state ? [usageLine(state, now)] : [])].join(" · ")
  try {
    writeSync(1, `${replaced}${line}${line === "" ? "" : "\n"}`) // creating process.stdout takes a millisecond
  } catch {
    // the reader has closed the pipe
  }
  return 0
}

function readState(file: string): LineState | undefined {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as LineState
  } catch {
    return undefined // the file is missing or damaged; the next sync writes it
  }
}

/** The agent's JSON. Undefined if nobody passes any: a terminal, or an input that stays open and empty. */
function readInput(): Promise<string | undefined> {
  try {
    const stat = fstatSync(0)
    if (stat.isFile()) return Promise.resolve(stat.size > MAX_INPUT_BYTES ? undefined : readFileSync(0, "utf8"))
    if (!stat.isFIFO() && !stat.isSocket()) return Promise.resolve(undefined)
  } catch {
    return Promise.resolve(undefined) // the input is closed
  }
  return new Promise((resolve) => {
    const pieces: Buffer[] = []
    let bytes = 0
    const end = (isWhole: boolean) => {
      clearTimeout(timer)
      resolve(isWhole && bytes > 0 ? Buffer.concat(pieces).toString("utf8") : undefined)
    }
    const timer = setTimeout(end, INPUT_MS, false)
    process.stdin
      .on("data", (piece: Buffer) => {
        bytes += piece.length
        if (bytes <= MAX_INPUT_BYTES) pieces.push(piece)
      })
      .on("end", () => end(bytes <= MAX_INPUT_BYTES))
      .on("error", () => end(false))
  })
}

/** The output of the status line command that dex replaced. The user set it up, for a shell. */
function outputOf(command: string, input: string): string {
  const { stdout } = spawnSync(command, {
    shell: true,
    input,
    timeout: COMMAND_TIMEOUT_MS,
    encoding: "utf8",
    stdio: ["pipe", "pipe", "ignore"],
  })
  return stdout ? `${stdout.replace(/\n+$/, "")}\n` : ""
}
