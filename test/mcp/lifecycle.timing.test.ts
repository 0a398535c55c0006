import { spawn } from "node:child_process"
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { generateCorpus } from "../../bench/corpus.ts"
import { DEX, dex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { isAlive } from "../support/processes.ts"
import { tempDir } from "../support/temp.ts"
import { connect } from "./client.ts"
import { kindsOf } from "./kinds-of-calls.ts"

// `npm run torture` does more of everything.
const CLOSES = Number(process.env.DEX_MCP_CLOSES ?? 20)
const CONNECTS = Number(process.env.DEX_MCP_CONNECTS ?? 30)
const CALLS = Number(process.env.DEX_MCP_CALLS ?? 2_000)

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
      expect(client.stderr()).not.toMatch(/fatal|assert|abort/i)
      const took = performance.now() - closed
      if (took > 2_000) slow.push(took)
    }
    expect(slow).toEqual([])
  },
  CLOSES * 5_000 + 60_000,
)

test("requests from before stdin closed are still answered", async () => {
  const home = tempDir()
  smallHome(home)
  await dex(home, ["sync"])
  const client = await connect(home)
  client.send(call(7, "dex_search", { query: "mutex" }))
  client.child.stdin!.end()
  expect(await client.exited).toBe(0)
  expect(client.lines.map((line) => JSON.parse(line)).find(({ id }) => id === 7)?.result.structuredContent.total).toBe(
    1,
  )
})

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

test("a cancelled call is not answered, and the next one is answered immediately", async () => {
  const home = tempDir()
  smallHome(home)
  await dex(home, ["sync"])
  const client = await connect(home)
  await client.call("dex_stats")
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 41 } }
  for (let i = 0; i < 5; i++) client.send(`${call(41, "dex_search", { query: "token" })}\n${JSON.stringify(cancel)}`)
  const started = performance.now()
  expect((await client.call("dex_guide")).isError).toBeUndefined()
  expect(performance.now() - started).toBeLessThan(200)
  await client.call("dex_search", { query: "token" })
  client.child.stdin!.end()
  await client.exited
  expect(client.lines.filter((line) => JSON.parse(line).id === 41)).toEqual([])
})

test("a call that is cancelled during the first read is dropped immediately, and never runs", async () => {
  const home = tempDir()
  generateCorpus(join(home, ".claude"), { messages: 12_000, seed: 3 })
  const client = await connect(home)
  const took: number[] = []
  for (let i = 0; i < 9; i++) {
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 50 + i } }
    client.send(`${call(50 + i, "dex_search", { query: "zeppelin" })}\n${JSON.stringify(cancel)}`)
    const started = performance.now()
    await client.call("dex_guide")
    took.push(performance.now() - started)
  }
  expect(took.sort((a, b) => a - b)[4]).toBeLessThan(200)
  await client.call("dex_search", { query: "balloon" })
  client.child.stdin!.end()
  await client.exited
  expect(client.lines.filter((line) => typeof JSON.parse(line).id === "number")).toEqual([])
  const traces = readFileSync(join(home, ".dex", "traces", readdirSync(join(home, ".dex", "traces"))[0]!), "utf8")
  expect(traces).toContain("balloon")
  expect(traces).not.toContain("zeppelin")
})

/** Processes that were started with this home, at any depth. */
function processesOf(home: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      try {
        return readFileSync(`/proc/${pid}/environ`, "utf8").includes(`HOME=${home}\0`)
      } catch {
        return false // gone, or somebody else's
      }
    })
    .map(Number)
}

const residentMb = (pid: number) =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))![1]) / 1024
const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!

test.skipIf(!existsSync("/proc/self/environ"))(
  `${CONNECTS} connects leave no process behind, and the last takes as much memory as the first`,
  async () => {
    const home = tempDir()
    smallHome(home)
    await dex(home, ["sync"])
    const memory: number[] = []
    for (let i = 0; i < CONNECTS; i++) {
      const client = await connect(home, { era: i % 2 === 0 ? "2025-11-25" : "2026-07-28" })
      await client.call("dex_search", { query: "token" })
      await client.call("dex_get", { ids: ["11111111"] })
      expect(processesOf(home)).toEqual([client.child.pid])
      memory.push(residentMb(client.child.pid!))
      client.child.stdin!.end()
      await client.exited
    }
    expect(processesOf(home)).toEqual([])
    const third = Math.ceil(CONNECTS / 3)
    const [first, last] = [median(memory.slice(0, third)), median(memory.slice(-third))]
    console.log(`${CONNECTS} connects: ${first.toFixed(0)} MB in the first third, ${last.toFixed(0)} MB in the last`)
    expect(last).toBeLessThan(first * 1.1)
  },
  CONNECTS * 5_000 + 60_000,
)

test.skipIf(process.platform === "win32")(
  "calls leave nothing in memory, whatever their outcome",
  async () => {
    const home = tempDir()
    smallHome(home)
    await dex(home, ["sync"])
    const probe = join(home, "probe.mjs")
    writeFileSync(
      probe,
      `import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { isMainThread } from "node:worker_threads"
if (isMainThread) {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc")
  process.on("SIGUSR2", () => {
    collect()
    const { heapUsed, external } = process.memoryUsage()
    process.stderr.write("used " + (heapUsed + external) + "\\n")
  })
}`,
    )
    const client = await connect(home, { env: { NODE_OPTIONS: `--import ${probe}` } })
    const kinds = kindsOf(client)
    const usedMb: number[] = []
    for (let i = 0; i < CALLS; i += 20) {
      await Promise.all(Array.from({ length: 20 }, (_, n) => kinds[(i + n) % kinds.length]!()))
      if (i % 100 !== 0) continue
      const before = client.stderr().length
      process.kill(client.child.pid!, "SIGUSR2")
      await expect.poll(() => client.stderr().slice(before), { interval: 5 }).toMatch(/used \d+\n/)
      usedMb.push(Number(/used (\d+)/.exec(client.stderr().slice(before))![1]) / 2 ** 20)
    }
    const third = Math.ceil(usedMb.length / 3)
    const [before, after] = [median(usedMb.slice(third, 2 * third)), median(usedMb.slice(-third))]
    console.log(`${CALLS} calls: ${before.toFixed(1)} MB used in the second third, ${after.toFixed(1)} MB in the last`)
    expect(after).toBeLessThan(before + 1.5)
  },
  60_000 + CALLS * 100,
)
