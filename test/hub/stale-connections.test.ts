import { once } from "node:events"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { expect, onTestFinished, test } from "vitest"
import { openHub } from "../../src/hub-client/client.ts"

/** A server that closes all its idle connections at the moment they are used again. */
async function closing() {
  const stale = new Set<Socket>()
  const sockets = new Set<Socket>()
  const requests: string[] = []
  let held: (() => void)[] = []
  const answer = (request: IncomingMessage) =>
    request.url === "/v1/login" ? { methods: ["token"] } : { token: "t", member: { name: "ann", role: "member" } }
  const server = createServer(async (request, response) => {
    if (stale.has(request.socket)) return request.socket.resetAndDestroy()
    requests.push(`${request.method} ${request.url}`)
    // Four at once, so that each has its own connection.
    if (requests.length <= 4)
      await new Promise<void>((resolve) => {
        held.push(resolve)
        if (held.length === 4) for (const go of held) go()
      })
    if (request.url?.includes("fails")) return request.socket.resetAndDestroy()
    response.end(JSON.stringify(answer(request)))
  })
  server.on("connection", (socket) => sockets.add(socket))
  server.keepAliveTimeout = 600_000
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const growStale = () => {
    for (const socket of sockets) stale.add(socket)
    held = []
  }
  return { address, requests, growStale, sockets }
}

test("a call on an idle connection that was closed is sent again on a new one, however many idle ones there are", async () => {
  const { address, requests, growStale, sockets } = await closing()
  const hub = openHub({ address, token: "x" })
  onTestFinished(() => hub.close())
  await Promise.all([hub.me(), hub.me(), hub.me(), hub.me()])
  expect(sockets.size).toBe(4)
  growStale()
  expect(await hub.me()).toMatchObject({ member: { name: "ann" } })
  expect(requests).toHaveLength(5)
})

test("a call that must not be repeated is sent once, on a new connection", async () => {
  const { address, requests, growStale } = await closing()
  const hub = openHub({ address, token: "x" })
  onTestFinished(() => hub.close())
  await Promise.all([hub.me(), hub.me(), hub.me(), hub.me()])
  growStale()
  expect(await hub.redeem("code")).toBe("t")
  const failing = openHub({ address: `${address}/fails`, token: "x" })
  onTestFinished(() => failing.close())
  const before = requests.length
  for (const call of [() => failing.redeem("c"), () => failing.beginDeviceLogin(), () => failing.askDeviceLogin("l")])
    await expect(call()).rejects.toMatchObject({ trouble: "offline" })
  expect(requests.slice(before)).toHaveLength(3)
})

test("a hub that takes too long is reported as such", async () => {
  const server = createServer(() => {})
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const address = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const hub = openHub({ address, token: "x", timeoutMs: 50 })
  onTestFinished(() => hub.close())
  await expect(hub.me()).rejects.toMatchObject({
    trouble: "offline",
    message: expect.stringMatching(/no answer in time/),
  })
})
