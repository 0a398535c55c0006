import { once } from "node:events"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo, Socket } from "node:net"
import { inspect } from "node:util"
import { describe, expect, onTestFinished, test } from "vitest"
import {
  type NetRequest,
  openConnections,
  pauseBeforeRetry,
  removeKey,
  retryAfterMs,
  send,
} from "../../src/net/client.ts"

const KEY = "sk-test-0123456789abcdefghij"

type Answer = (request: IncomingMessage, response: ServerResponse) => void

async function serving(answer: Answer) {
  const sockets = new Set<Socket>()
  const requests: string[] = []
  const server = createServer((request, response) => {
    requests.push(`${request.method} ${request.headers.host}${request.url}`)
    answer(request, response)
  })
  server.keepAliveTimeout = 600_000
  server.on("connection", (socket) => sockets.add(socket))
  server.listen(0, "127.0.0.1")
  await once(server, "listening")
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, port, sockets, requests }
}

/** Answers the first request on a connection, and resets a connection that is used again. */
async function closingWhenIdle() {
  const used = new Set<Socket>()
  const server = await serving((request, response) => {
    if (used.has(request.socket)) return request.socket.resetAndDestroy()
    used.add(request.socket)
    response.end("ok")
  })
  const connections = openConnections()
  onTestFinished(connections.close)
  const request: NetRequest = { url: server.url, maxBytes: 100, connections }
  expect(await (await send(request)).text()).toBe("ok")
  return { ...server, request }
}

const refused = (request: NetRequest) =>
  send(request)
    .then((reply) => reply.text())
    .then(expect.unreachable, (error: unknown) => error)

describe("a connection that the server closed while it was idle", () => {
  test("is replaced by a new one, and the request is sent again", async () => {
    const { request, requests, sockets } = await closingWhenIdle()
    expect(await (await send({ ...request, body: "again" })).text()).toBe("ok")
    expect([requests.length, sockets.size]).toEqual([3, 2])
  })

  test("is not used for a request that must not be repeated", async () => {
    const { request, requests, sockets } = await closingWhenIdle()
    expect(await (await send({ ...request, body: "only once", isUnrepeatable: true })).text()).toBe("ok")
    expect([requests.length, sockets.size]).toEqual([2, 2])
  })

  test("is not to blame if a new connection is reset", async () => {
    const { url, requests } = await serving((request) => request.socket.resetAndDestroy())
    expect(await refused({ url, body: "x", maxBytes: 100 })).toMatchObject({ reason: "network", code: "ECONNRESET" })
    expect(requests).toHaveLength(1)
  })
})

describe("a limit", () => {
  test("of bytes ends an answer that has more", async () => {
    const { url } = await serving((_, response) => response.end("x".repeat(1_001)))
    expect((await (await send({ url, maxBytes: 1_001 })).text()).length).toBe(1_001)
    expect(await refused({ url, maxBytes: 1_000 })).toMatchObject({ name: "NetError", reason: "size" })
  })

  test.each<[string, Answer]>([
    ["never answers", () => {}],
    ["stops in the middle", (_, response) => response.writeHead(200).write("half")],
  ])("of time ends a request to a server that %s", async (_, answer) => {
    const { url } = await serving(answer)
    expect(await refused({ url, maxBytes: 100, timeoutMs: 50 })).toMatchObject({ reason: "timeout" })
  })

  test.each<[string, Answer]>([
    ["before it is answered", () => {}],
    ["while its answer comes", (_, response) => response.writeHead(200).write("half")],
  ])("is the caller's signal, also %s", async (_, answer) => {
    const stop = new AbortController()
    const { url } = await serving((request, response) => {
      answer(request, response)
      stop.abort()
    })
    expect(await refused({ url, maxBytes: 100, timeoutMs: 60_000, signal: stop.signal })).toMatchObject({
      reason: "stopped",
    })
    await expect(pauseBeforeRetry(60_000, stop.signal)).rejects.toMatchObject({ reason: "stopped" })
    const { url: unused, requests } = await serving(answer)
    expect(await refused({ url: unused, maxBytes: 100, signal: stop.signal })).toMatchObject({ reason: "stopped" })
    expect(requests).toEqual([])
  })
})

test("an answer that breaks off is an error, not a short answer", async () => {
  const { url } = await serving((request, response) => {
    response.writeHead(200, { "content-length": 100 }).write("half", () => request.socket.resetAndDestroy())
  })
  expect(await refused({ url, maxBytes: 100 })).toMatchObject({ reason: "network", code: "ECONNRESET" })
})

test("a redirect is not followed", async () => {
  const other = await serving((_, response) => response.end())
  const { url } = await serving((_, response) => response.writeHead(307, { location: other.url }).end())
  expect((await send({ url, maxBytes: 100, key: KEY })).status).toBe(307)
  expect(other.requests).toEqual([])
})

test("a request goes to the address that was checked, under the requested name", async () => {
  const { port, requests } = await serving((_, response) => response.end("ok"))
  const url = `http://hooks.example:${port}/in?a=1`
  const reply = await send({ url, address: "127.0.0.1", body: "{}", isUnrepeatable: true, maxBytes: 100 })
  expect(await reply.text()).toBe("ok")
  expect(requests).toEqual([`POST hooks.example:${port}/in?a=1`])
})

describe("a key", () => {
  test("is not sent if others on the way could read it", async () => {
    for (const url of ["http://models.example/v1", "http://localhost.example/", "http://127.0.0.1.example/"])
      expect(await refused({ url, key: KEY, maxBytes: 100 })).toMatchObject({
        reason: "key_in_clear",
        message: expect.stringContaining("Use an https address"),
      })
  })

  test("is in one header, and in no error", async () => {
    const seen: unknown[] = []
    const { url } = await serving((request) => {
      seen.push(request.headers.authorization)
      request.socket.resetAndDestroy()
    })
    const error = await refused({ url, key: KEY, body: "the text", maxBytes: 100 })
    expect(seen).toEqual([`Bearer ${KEY}`])
    const shown = inspect(error, { depth: 20, showHidden: true })
    expect(shown).not.toContain(KEY)
    expect(shown).not.toContain("the text")
  })

  test("is removed from a server's message, even in pieces", () => {
    const words = `no ${KEY}, ${KEY.slice(4)} sk-t***ghij Bearer:${KEY.slice(0, 9)} fine`
    expect(removeKey(words, KEY)).toBe("no [key] [key] [key] [key] fine")
    expect(removeKey("nothing to hide", undefined)).toBe("nothing to hide")
  })
})

test.each([
  ["7", 7_000],
  ["0.5", 500],
  ["Thu, 01 Jan 1970 00:01:00 GMT", 50_000],
  ["Thu, 01 Jan 1970 00:00:01 GMT", 0],
  ["-5", undefined],
  ["soon", undefined],
  [undefined, undefined],
])("Retry-After: %s means %s ms", (value, ms) => {
  expect(retryAfterMs({ "retry-after": value }, 10_000)).toBe(ms)
})
