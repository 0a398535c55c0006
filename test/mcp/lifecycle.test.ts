import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { DEX, dex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { connect } from "./client.ts"

const CLOSES = Number(process.env.DEX_MCP_CLOSES ?? 20)

const call = (id: number, name: string, input: object) =>
  JSON.stringify({ jsonrpc: "2.0", id, method: "tools/call", params: { name, arguments: input } })

test(
  `is gone within 2 s of stdin closing, ${CLOSES} of ${CLOSES}, with whatever is running`,
  async () => {
    const home = tempDir()
    smallHome(home)
    const slow: number[] = []
    for (let i = 0; i < CLOSES; i++) {
      // Each time there is something to read, and a call that waits for it.
      claudeSession(home, {
        id: `${String(i).padStart(8, "0")}-5555-4555-8555-555555555555`,
        start: "2026-11-03T10:00:00Z",
        turns: Array.from({ length: 200 }, (_, n) => ({ user: `turn ${n} ${"word ".repeat(500)}` })),
      })
      const client = await connect(home)
      if (i % 3 > 0) client.send(call(i, "dex_search", { query: "word" }))
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

test("what was asked before stdin closed is still answered", async () => {
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
  // Whoever holds the other end of stdin lives on, so that it does not close.
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
  const isAlive = () => {
    try {
      process.kill(pid, 0)
      return true
    } catch {
      return false
    }
  }
  onTestFinished(() => {
    if (isAlive()) process.kill(pid, "SIGKILL")
  })
  await new Promise((resolve) => parent.stdout!.once("data", resolve))
  parent.kill("SIGKILL")
  expect(isAlive()).toBe(true)
  await expect.poll(isAlive, { timeout: 5_000, interval: 50 }).toBe(false)
})

test("a cancelled call is not answered, and the next one is", async () => {
  const home = tempDir()
  smallHome(home)
  await dex(home, ["sync"])
  const client = await connect(home)
  await client.call("dex_stats")
  const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 41 } }
  for (let i = 0; i < 5; i++) client.send(`${call(41, "dex_search", { query: "token" })}\n${JSON.stringify(cancel)}`)
  const asked = performance.now()
  expect((await client.call("dex_guide")).isError).toBeUndefined()
  expect(performance.now() - asked).toBeLessThan(200)
  await client.call("dex_search", { query: "token" })
  client.child.stdin!.end()
  await client.exited
  expect(client.lines.filter((line) => JSON.parse(line).id === 41)).toEqual([])
})

test("nothing but JSON-RPC reaches stdout, whatever prints, warns, rejects or throws", async () => {
  const home = tempDir()
  smallHome(home)
  const noise = join(home, "noise.mjs")
  // Begins when the server has taken stdout for itself; in threads at once.
  writeFileSync(
    noise,
    `import { isMainThread } from "node:worker_threads"
const first = process.stdout.write
const timer = setInterval(() => {
  if (isMainThread && process.stdout.write === first) return
  const where = isMainThread ? "main" : "thread"
  console.log("noise log " + where)
  console.info("noise info")
  console.table([{ noise: 1 }])
  process.stdout.write("noise write " + where + "\\n")
  process.emitWarning("noise warning")
  if (!isMainThread) return
  Promise.reject(new Error("noise rejection"))
  setTimeout(() => { throw new Error("noise exception") })
}, 5)
timer.unref()`,
  )
  const client = await connect(home, { env: { NODE_OPTIONS: `--import ${noise}` } })
  for (let i = 0; i < 100; i++) {
    await client.call("dex_search", { query: `token ${i}` })
    await client.call("dex_get", { ids: ["zzzz"] })
    client.send("{ not json")
  }
  expect(client.lines.length).toBeGreaterThanOrEqual(300) // the last line may still be on its way
  for (const line of client.lines) expect(JSON.parse(line)).toMatchObject({ jsonrpc: "2.0" })
  for (const said of ["log main", "log thread", "write main", "write thread", "info", "rejection", "exception"])
    expect(client.stderr()).toContain(`noise ${said}`)
})
