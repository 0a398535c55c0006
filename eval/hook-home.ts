import { execFile, spawn } from "node:child_process"
import { createHash } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { DAY_MS } from "../src/core/dates.ts"
import { uuidOf, writeTranscripts } from "./home.ts"
import type { Chat } from "./set.ts"

const DEX = fileURLToPath(new URL("../dist/dex.js", import.meta.url))
const SOURCE = "claude_code"
/** The conversations took place in as many days … */
const SPAN_DAYS = 180
/** … which ended this long ago. */
const QUIET_DAYS = 2
/** A later conversation about the same rule comes between 10 and 40 days after the earlier one. */
const [CHANGED_AFTER_DAYS, CHANGED_WITHIN_DAYS] = [10, 30]

/** A user's home and project folder, in which a built dex runs as people and agents start it. */
export type HookHome = {
  project: string
  /** Runs a command in the project folder, and returns what it printed. */
  dex(args: string[]): Promise<string>
  /** What the hook tells the agent at a prompt of a new session, empty if nothing. */
  say(prompt: string): Promise<string>
  /** Why hooks failed or were stopped. */
  failures(): string[]
}

/**
 * Makes a home in which these chats took place in the project folder, on different days before now; dex has read them and
 * learned from them. `changes` is the chat that a later chat changed, if any.
 */
export async function makeHookHome(
  dir: string,
  chats: Chat[],
  changes: (chat: string) => string | undefined,
): Promise<HookHome> {
  for (const name of [".claude", ".dex"]) rmSync(join(dir, name), { recursive: true, force: true })
  const project = join(dir, "boltons")
  mkdirSync(project, { recursive: true })
  const now = Date.now()
  const dayOf = (id: string): number => {
    const earlier = changes(id)
    if (earlier === undefined) return numberOf(id) % (SPAN_DAYS - CHANGED_AFTER_DAYS - CHANGED_WITHIN_DAYS)
    return dayOf(earlier) + CHANGED_AFTER_DAYS + (numberOf(id) % CHANGED_WITHIN_DAYS)
  }
  writeTranscripts(join(dir, ".claude"), chats, ({ id }) => ({
    cwd: project,
    startedAt: now - (SPAN_DAYS + QUIET_DAYS - dayOf(id)) * DAY_MS,
  }))
  const { DEX_HOME: _, CLAUDE_CONFIG_DIR: __, ...rest } = process.env
  // The longest time that a user can allow: what dex says must not depend on the speed of the machine.
  const env = { ...rest, HOME: dir, DEX_PROACTIVE_MODE: "speak", DEX_HOOK_MS: "900", DEX_TRACES: "off", NO_COLOR: "1" }
  const options = { cwd: project, env, maxBuffer: 64 * 1024 * 1024 }
  const dex = async (args: string[]) => {
    // Finding nothing is exit code 1.
    const { stdout } = await promisify(execFile)(process.execPath, [DEX, ...args], options).catch((error) => error)
    return stdout as string
  }
  let sessions = 0
  const say = async (prompt: string) => {
    const event = {
      session_id: uuidOf(`session ${++sessions}`),
      transcript_path: join(dir, "none.jsonl"),
      cwd: project,
      hook_event_name: "UserPromptSubmit",
      prompt,
    }
    const child = spawn(process.execPath, [DEX, "hook", SOURCE, "UserPromptSubmit"], {
      cwd: project,
      env,
      stdio: ["pipe", "pipe", "ignore"],
    })
    let printed = ""
    child.stdout.on("data", (text) => {
      printed += text
    })
    child.stdin.end(JSON.stringify(event))
    await new Promise((closed) => child.on("close", closed))
    return printed === "" ? "" : (JSON.parse(printed).hookSpecificOutput.additionalContext as string)
  }
  const log = join(dir, ".dex", "hook.log")
  const failures = () => (existsSync(log) ? readFileSync(log, "utf8").trim().split("\n") : [])
  await dex(["sync"])
  await dex(["decisions"]) // the first question makes dex learn
  return { project, dex, say, failures }
}

function numberOf(name: string): number {
  return createHash("sha256").update(name).digest().readUInt32BE(0)
}
