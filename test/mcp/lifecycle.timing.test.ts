import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { DEX, dex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { connect } from "./client.ts"

// `npm run torture -- mcp` does more.
const CLOSES = Number(process.env.DEX_MCP_CLOSES ?? 20)

const call = (id: number, name: string, input: object) =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } })

test(
  `is gone within 2 s of stdin closing, ${CLOSES} of ${CLOSES}, with whatever is running`,
  async () => {
    const home = tempDir()
    smallHome(home)
    const timers = join(home, "timers.mjs")
    writeFileSync(timers, "setInterval(() => {}, 100)")
    const slow: number[] = []
    for (let i = 0; i < CLOSES; i++) {
      // Each time there is something to read, and a call that waits for it.
      claudeSession(home, {
        id: `${String(i).padStart(8, "0")}-5555-4555-8555-555555555555`,
        start: "2026-11-03T10:00:00Z",
        turns: Array.from({ length: 200 }, (_, n) => ({ user: `turn ${n} ${"word ".repeat(500)}` })),
      })
      const client = await connect(home, i % 2 === 0 ? {} : { env: { NODE_OPTIONS: `--import ${timers}` } })
      if (i % 3 > 0) client.send(call(i, "dex_search", { query: "turn" }))
      if (i % 3 > 1) await client.call("dex_stats")
      const closed = performance.now()
      client.child.stdin!.end()
      await client.exited
      const took = performance.now() - closed
      expect(client.stderr()).not.toMatch(/fatal|assert|abort/i)
      if (took > 2_000 && took > 2_000 * ((await waitingProgram()) / WAITS_MS)) slow.push(took)
    }
    expect(slow).toEqual([])
  },
  300_000 + CLOSES * 5_000,
)

/** The server waits this long for what it is reading. */
const WAITS_MS = 1_200

/** How long a program that does nothing else takes to wait for so long and to end: more on a machine that is busy now. */
function waitingProgram(): Promise<number> {
  const program = `process.stdin.on("end", () => setTimeout(() => process.exit(), ${WAITS_MS})).resume(); console.log()`
  const child = spawn(process.execPath, ["-e", program], { stdio: ["pipe", "pipe", "ignore"] })
  return new Promise((resolve) => {
    child.stdout.once("data", () => {
      const closed = performance.now()
      child.stdin.end()
      child.on("close", () => resolve(performance.now() - closed))
    })
  })
}

test("is gone within 5 s of its parent being killed, though stdin stays open", async () => {
  const home = tempDir()
  const program = join(home, "parent.mjs")
  writeFileSync(
    program,
    `import { spawn } from "node:child_process"
const child = spawn(process.execPath, [${JSON.stringify(DEX)}, "serve"], { stdio: "inherit" })
process.stderr.write(\`pid \${child.pid}\\n\`)
setInterval(() => {}, 1000)`,
  )
  // The process at the other end of stdin survives, so that stdin does not close.
  const ping = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" })
  const holder = spawn(process.execPath, ["-e", `console.log(${JSON.stringify(ping)}); setInterval(() => {}, 1000)`], {
    stdio: ["ignore", "pipe", "ignore"],
  })
  onTestFinished(() => void holder.kill("SIGKILL"))
  const parent = spawn(process.execPath, [program], {
    env: { PATH: process.env.PATH ?? "", HOME: home },
    stdio: [holder.stdout, "pipe", "pipe"],
  })
  const pid = await new Promise<number>((resolve) =>
    parent.stderr!.on("data", (chunk) => {
      const found = /pid (\d+)/.exec(String(chunk))
      if (found) resolve(Number(found[1]))
    }),
  )
  onTestFinished(() => {
    if (isAlive(pid)) process.kill(pid, "SIGKILL")
  })
  await new Promise((resolve) => parent.stdout!.once("data", resolve))
  parent.kill("SIGKILL")
  expect(isAlive(pid)).toBe(true)
  await expect.poll(() => isAlive(pid), { timeout: 5_000, interval: 50 }).toBe(false)
})

const cancelled = (id: number) =>
  `${call(id, "dex_search", { query: "zeppelin" })}\n${JSON.stringify({ jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: id } })}`

test("a cancelled call does not delay the next, even during the first read", async () => {
  const read = tempDir()
  smallHome(read)
  await dex(read, ["sync"])
  const unread = tempDir()
  generateCorpus(join(unread, ".claude"), { messages: 12_000, seed: 3 })
  for (const home of [read, unread]) {
    const client = await connect(home)
    const answered = async () => {
      const started = performance.now()
      expect((await client.call("dex_guide")).isError).toBeUndefined()
      return performance.now() - started
    }
    const [alone, after]: number[][] = [[], []]
    for (let id = 50; id < 59; id++) {
      alone!.push(await answered())
      client.send(cancelled(id))
      after!.push(await answered())
    }
    // On a busy machine the same call takes longer without a cancelled one, too.
    expect(median(after!)).toBeLessThan(Math.max(200, 4 * median(alone!)))
  }
})

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!
