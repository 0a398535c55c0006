import { connect, type Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { syncedOnce } from "../support/synced.ts"
import { connectHttp, serveHttpOnce } from "./http-client.ts"

const shared = serveHttpOnce(syncedOnce())

/** Opens this many connections at once, each with these first bytes, and counts how many of them the server has closed. */
async function crowd(port: number, count: number, bytes: string): Promise<{ closed(): number }> {
  const sockets: Socket[] = []
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
  })
  let closed = 0
  const open = () =>
    new Promise<void>((resolve) => {
      const socket = connect(port, "127.0.0.1", () => {
        if (bytes !== "") socket.write(bytes)
        resolve()
      })
      sockets.push(socket)
      socket.on("error", () => resolve())
      socket.on("close", () => {
        closed++
        resolve()
      })
      socket.resume()
    })
  for (let i = 0; i < count; i += 50) await Promise.all(Array.from({ length: Math.min(50, count - i) }, open))
  return { closed: () => closed }
}

test.each([
  ["idle connections", ""],
  ["headers that never end", "POST /mcp HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
  ["requests without a token, kept open", "GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:PORT\r\n\r\n"],
])("however many strangers connect with %s, the owner is answered", async (_, bytes) => {
  const served = shared()
  const before = await connectHttp(served, "2025-11-25")
  const stream = served.ask({ path: "/suggestions", headers: { accept: "text/event-stream" } })
  expect((await stream).status).toBe(200)
  const strangers = await crowd(served.port, 600, bytes.replace("PORT", String(served.port)))
  for (let i = 0; i < 5; i++) {
    const owner = await connectHttp(served, "2025-11-25")
    const found = await owner.call("dex_search", { query: "mutex" })
    expect(found.structuredContent).toMatchObject({ total: 1 })
  }
  expect((await before.call("dex_stats")).isError ?? false).toBe(false)
  expect(strangers.closed()).toBeGreaterThan(500)
})

test("a connection that sends nothing is closed within seconds", async () => {
  const served = shared()
  const strangers = await crowd(served.port, 3, "")
  await expect.poll(strangers.closed).toBe(3)
})
