import { execFileSync } from "node:child_process"
import { existsSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { DAY_MS } from "../src/core/dates.ts"
import { CACHE_DIR } from "./home.ts"
import { makeHookHome } from "./hook-home.ts"
import type { Chat } from "./set.ts"
import type { HistoryTask } from "./sets/sde.ts"

// Is the commit that decided a bug report's right fix named, by its hash or its subject? The bench's programs make each task's
// repository: the deciding commit, usually one about something else, and the one that broke the rule. They are two months old.

const COMMITTED_DAYS = 60
/** Short hashes that dex prints have at least this many characters. */
const HASH_LENGTH = 7

export type HistoryFigures = {
  tasks: number
  /** By the hook at the prompt; by `dex search` with the report; by `dex why` and `dex suggest` about the broken file. */
  hook: number
  search: number
  why: number
  suggest: number
  /** Tasks at which the hook said anything. */
  spoken: number
  failures: string[]
}

export async function measureHistory(chats: Chat[], tasks: HistoryTask[], repository: string): Promise<HistoryFigures> {
  const sum: HistoryFigures = { tasks: tasks.length, hook: 0, search: 0, why: 0, suggest: 0, spoken: 0, failures: [] }
  const original = clone(repository)
  const dir = join(CACHE_DIR, `sde-history-${process.pid}`)
  for (const { text, subject, build, module } of tasks) {
    makeRepository(build, original, join(dir, "boltons"))
    const home = await makeHookHome(dir, chats, () => undefined)
    const hash = git(home.project, "log", "--format=%H", "--fixed-strings", `--grep=${subject}`, "-1")
    if (hash === "") throw new Error(`${build} did not commit ${subject}`)
    const isNamed = (printed: string) => printed.includes(hash.slice(0, HASH_LENGTH)) || printed.includes(subject)
    const suggested = await home.dex(["suggest", "--file", module]) // also makes dex read the commits from now on
    await home.dex(["sync"])
    const said = await home.say(text)
    if (said !== "") sum.spoken++
    if (isNamed(said)) sum.hook++
    if (isNamed(await home.dex(["search", text, "--json"]))) sum.search++
    if (isNamed(await home.dex(["why", module, "--facts"]))) sum.why++
    if (isNamed(suggested)) sum.suggest++
    sum.failures.push(...home.failures())
  }
  rmSync(dir, { recursive: true, force: true })
  return sum
}

function clone(bundle: string): string {
  const target = join(CACHE_DIR, "sde-boltons")
  if (!existsSync(target)) {
    const partial = `${target}.${process.pid}`
    rmSync(partial, { recursive: true, force: true })
    execFileSync("git", ["clone", "--quiet", "--no-checkout", bundle, partial], { stdio: "ignore" })
    renameSync(partial, target)
  }
  return target
}

function makeRepository(build: string, original: string, target: string): void {
  const date = new Date(Date.now() - COMMITTED_DAYS * DAY_MS).toISOString()
  const env = { ...process.env, SDEBENCH_BOLTONS_HOST: original, GIT_AUTHOR_DATE: date, GIT_COMMITTER_DATE: date }
  execFileSync("python3", ["-B", build, target], { env, stdio: ["ignore", "ignore", "inherit"] })
}

function git(folder: string, ...args: string[]): string {
  return execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" }).trim()
}
