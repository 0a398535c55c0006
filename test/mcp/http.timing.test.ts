import { request } from "node:http"
import { connect as openSocket } from "node:net"
import { expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { connectHttp, type Served, serveHttp } from "./http-client.ts"

test.each([
  ["SIGTERM", "nothing"],
  ["SIGINT", "nothing"],
  ["SIGTERM", "a sync"],
] as const)("ends within 2 s of %s, with connections and streams open and %s running", async (signal, going) => {
  const home = tempDir()
  const busy = going === "a sync"
  for (let i = 0; busy && i < 40; i++)
    claudeSession(home, {
      id: `${String(i).padStart(8, "0")}-5555-4555-8555-555555555555`,
      start: "2026-11-03T10:00:00Z",
      turns: Array.from({ length: 100 }, (_, n) => ({ user: `turn ${n} ${"word ".repeat(300)}` })),
    })
  const served = await serveHttp(home, { stdin: "ignore" })
  const client = await connectHttp(served, "2025-11-25")
  const { session } = client
  expect(await openStream(served, { "mcp-session-id": session!, "mcp-protocol-version": "2025-11-25" })).toBe(200)
  const half = openSocket(served.port, "127.0.0.1")
  half.on("error", () => {})
  await new Promise<void>((resolve) => half.write("POST /mcp HTTP/1.1\r\nContent-Le", () => resolve()))
  if (busy) client.call("dex_search", { query: "word" }).catch(() => {})
  else await client.call("dex_stats")
  const started = performance.now()
  served.child.kill(signal)
  const code = await served.exited
  expect(performance.now() - started).toBeLessThan(2_000)
  // Null: it killed itself because a thread was inside the database; every write is a transaction.
  expect(busy ? [0, null] : [0]).toContain(code)
  expect(served.stderr()).not.toMatch(/fatal|assert/i)
})

function openStream({ port, token }: Served, headers: Record<string, string>): Promise<number | undefined> {
  const stream = request({
    host: "127.0.0.1",
    port,
    path: "/mcp",
    headers: { accept: "text/event-stream", authorization: `Bearer ${token}`, ...headers },
  })
  stream.on("error", () => {})
  return new Promise((resolve) => {
    stream.on("response", (response) => {
      response.on("error", () => {})
      resolve(response.statusCode)
    })
    stream.end()
  })
}
