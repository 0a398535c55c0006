import { type ChildProcess, spawn } from "node:child_process"
import { loadavg } from "node:os"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { expect, onTestFinished, test } from "vitest"
import { createHomeWithFixes, failureInput, unknownReadInput } from "../support/solved.ts"
import { tempDir } from "../support/temp.ts"

/** 10 in CI, 100 with `npm run torture -- hooks`. */
const THINGS = Number(process.env.DEX_HOOKS ?? 10)
const BUSY = 16
/** The number of agents that work at the same time. */
const AGENTS = 5
/** The time between two events of an agent, in which it waits for its model and runs tools. */
const AGENT_MS = 3_000
/** The time after which agents stop a hook. */
const LIMIT_MS = 1_000

test.skipIf(process.platform === "win32")(
  `next to ${BUSY} busy programs hooks end in time, and ${THINGS} suggestions are shown at the event or the next one`,
  async () => {
    const home = tempDir()
    await createHomeWithFixes(home, THINGS)
    keepBusy()
    await setTimeout(1_000)
    const calls: Called[] = []
    let atOnce = 0
    let atNext = 0
    for (let first = 0; first < THINGS; first += AGENTS) {
      const unsaid: number[] = []
      for (let i = first; i < Math.min(first + AGENTS, THINGS); i++) {
        const event = await hook(home, "PostToolUseFailure", failureInput(`session-${i}`, i))
        calls.push(event)
        if (event.said.includes(`token${i}.ts`)) atOnce++
        else unsaid.push(i)
      }
      await setTimeout(AGENT_MS)
      for (const i of unsaid) {
        const next = await hook(home, "PreToolUse", unknownReadInput(`session-${i}`))
        calls.push(next)
        if (next.said.includes(`token${i}.ts`)) atNext++
      }
    }
    const took = calls.map(({ ms }) => ms).sort((a, b) => a - b)
    const p = (share: number) => took[Math.ceil(share * took.length) - 1]!.toFixed(0)
    console.log(
      `of ${THINGS} things worth saying ${atOnce} were said at the event, ${atNext} at the next; ` +
        `${calls.length} hooks: median ${p(0.5)}, p95 ${p(0.95)}, slowest ${p(1)} ms; load average ${loadavg()[0]!.toFixed(1)}`,
    )
    expect(calls.filter(({ code }) => code !== 0)).toEqual([])
    expect(atOnce + atNext).toBeGreaterThanOrEqual(0.8 * THINGS)
    expect(took.filter((ms) => ms > LIMIT_MS)).toEqual([])
  },
  THINGS * 20_000 + 120_000,
)

/** Starts each busy program in its own session: Linux divides processor time between sessions, so each gets as much as a hook. */
function keepBusy(): void {
  const busy = Array.from({ length: BUSY }, () =>
    spawn("sh", ["-c", "while :; do :; done"], { stdio: "ignore", detached: true }),
  )
  onTestFinished(() => {
    for (const program of busy) program.kill("SIGKILL")
  })
}

type Called = { code: number | null; said: string; ms: number }

function hook(home: string, event: string, stdin: string): Promise<Called> {
  const started = performance.now()
  const child: ChildProcess = spawn(join(home, ".dex", "bin", "dex-hook"), ["claude_code", event], {
    env: { PATH: process.env.PATH, HOME: home, DEX_PROACTIVE_MODE: "speak" },
    stdio: ["pipe", "pipe", "ignore"],
  })
  let said = ""
  child.stdout!.on("data", (text) => {
    said += text
  })
  child.stdin!.on("error", () => {}) // it ended before it had read everything
  child.stdin!.end(stdin)
  return new Promise((ended) => child.on("close", (code) => ended({ code, said, ms: performance.now() - started })))
}
