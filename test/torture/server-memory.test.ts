import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { connect } from "../mcp/client.ts"
import { kindsOf } from "../mcp/kinds-of-calls.ts"
import { dex } from "../support/dex.ts"
import { smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"

// `npm run torture -- server` makes more calls and connections.
const CALLS = Number(process.env.DEX_MCP_CALLS ?? 2_000)
const CONNECTS = Number(process.env.DEX_MCP_CONNECTS ?? 30)

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
  `${CONNECTS} connections leave no process behind, and the last one takes as much memory as the first`,
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
  300_000 + CONNECTS * 5_000,
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
  300_000 + CALLS * 100,
)
