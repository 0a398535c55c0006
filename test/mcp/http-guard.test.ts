import { chmodSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { connect as openSocket } from "node:net"
import { Server } from "@modelcontextprotocol/server"
import { expect, test } from "vitest"
import { createApp } from "../../src/serve/http/app.ts"
import { createTokenBucket, foreignHeader, isLoopback } from "../../src/serve/http/guard.ts"
import { dex } from "../support/dex.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { runRefused } from "../support/warm.ts"
import { type Answer, JSON_POST, type Served, serveHttp, serveHttpOnce, tokenFile } from "./http-client.ts"

const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"]
const INITIALIZE = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "initialize",
  params: { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } },
})

const home = sharedTempDir()
const shared = serveHttpOnce(home)

type Case = {
  path: string
  method: string
  token: string
  place: string
  known: boolean
  ours: boolean
  headers: Record<string, string>
}

/** Every route of the router, and paths that it does not have. */
function paths(): string[] {
  const { app } = createApp({ token: "x", log: () => {}, createServer: () => new Server({ name: "x", version: "1" }) })
  const declared = new Set(app.routes.map(({ path }) => path).filter((path) => !path.includes("*")))
  expect([...declared].sort()).toEqual(["/healthz", "/mcp", "/suggestions"])
  return [...declared, "/", "/mcp/", "/healthz/", "//mcp", "/%6dcp", "/healthz/../mcp", "/no/such?access_token=TOKEN"]
}

function cases({ port, token }: Served): Case[] {
  const tokens: [string, boolean, string | undefined][] = [
    ["none", false, undefined],
    ["empty", false, "Bearer "],
    ["wrong", false, `Bearer ${"x".repeat(token.length)}`],
    ["shortened", false, `Bearer ${token.slice(0, -1)}`],
    ["lengthened", false, `Bearer ${token}x`],
    ["twice", false, `Bearer ${token} ${token}`],
    ["another scheme", false, `Basic ${Buffer.from(`dex:${token}`).toString("base64")}`],
    ["no scheme", false, token],
    ["right", true, `Bearer ${token}`],
  ]
  const host = `127.0.0.1:${port}`
  const places: [string, boolean, Record<string, string>][] = [
    ["by address", true, { host }],
    ["by name, from its own origin", true, { host: `LocalHost:${port}`, origin: `http://localhost:${port}` }],
    ["another host", false, { host: "evil.example" }],
    ["another host, right port", false, { host: `evil.example:${port}` }],
    ["a name that begins right", false, { host: `localhost.evil.example:${port}` }],
    ["no port", false, { host: "127.0.0.1" }],
    ["another port", false, { host: `127.0.0.1:${port + 1}` }],
    ["a host that is no host", false, { host: `127.0.0.1:${port}/@evil.example` }],
    ["another origin", false, { host, origin: "https://evil.example" }],
    ["null origin", false, { host, origin: "null" }],
    ["empty origin", false, { host, origin: "" }],
    ["an origin on another port", false, { host, origin: "http://localhost:3000" }],
    ["an origin of another scheme", false, { host, origin: `https://127.0.0.1:${port}` }],
    ["two origins", false, { host, origin: `http://${host}, https://evil.example` }],
  ]
  const callers = places.flatMap(([place, ours, headers]) =>
    tokens.map(([name, known, authorization]) => ({
      token: name,
      place,
      known,
      ours,
      headers: { ...JSON_POST, ...headers, ...(authorization !== undefined && { authorization }) },
    })),
  )
  return paths().flatMap((path) =>
    METHODS.flatMap((method) => callers.map((caller) => ({ path: path.replace("TOKEN", token), method, ...caller }))),
  )
}

function wrongIn({ path, method, known, ours }: Case, { status, headers, body }: Answer): string | undefined {
  if (Object.keys(headers).some((name) => name.startsWith("access-control"))) return "lets other origins read"
  if (!ours) return status === 403 && body === "" ? undefined : `${status} "${body}" for a foreign page`
  if (path === "/healthz") {
    const lives = method === "GET" || method === "HEAD"
    if (status !== (lives ? 200 : 405)) return `${status}`
    return ["", "ok\n", "Method not allowed.\n"].includes(body) ? undefined : `says "${body}"`
  }
  if (!known) return status === 401 && body === "" ? undefined : `${status} "${body}" without the token`
  return [401, 403, 500].includes(status) ? `${status} with the token` : undefined
}

test("malformed HTTP gets no data", async () => {
  const { port, token } = shared()
  const say = (text: string) =>
    new Promise<string>((resolve, reject) => {
      const socket = openSocket(port, "127.0.0.1", () => socket.write(text))
      let heard = ""
      socket.on("data", (chunk) => {
        heard += chunk
        if (isComplete(heard)) socket.end()
      })
      socket.on("close", () => resolve(heard))
      socket.on("error", reject)
    })
  const right = `Host: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nConnection: close\r\n`
  const initialize = `${right}Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: ${INITIALIZE.length}\r\n\r\n${INITIALIZE}`
  expect(await say(`POST /mcp HTTP/1.1\r\n${initialize}`)).toContain('"serverInfo"')
  for (const [text, status] of [
    [`POST /mcp HTTP/1.1\r\n${initialize.replace(/^Host.*\r\n/, "")}`, 400],
    [`POST /mcp HTTP/1.0\r\n${initialize.replace(/^Host.*\r\n/, "")}`, 403],
    [`POST /mcp HTTP/1.1\r\nHost: evil.example\r\n${initialize}`, 403],
    [`POST /mcp HTTP/1.1\r\nOrigin: https://evil.example\r\n${initialize}`, 403],
    [`POST http://evil.example/mcp HTTP/1.1\r\nHost: evil.example\r\n\r\n`, 403],
    [`CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example:443\r\n\r\n`, undefined],
    [`GET /mcp HTTP/1.1\r\nHost: evil.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`, 403],
    [`GET /mcp HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\r\n`, 401],
    ["GET /mcp\r\n\r\n", 403],
    ["mcp\r\n\r\n", 400],
  ] as const) {
    const heard = await say(text)
    expect(heard, text).not.toContain("serverInfo")
    expect(/^HTTP\/1\.\d (\d+)/.exec(heard)?.[1], text).toBe(status === undefined ? undefined : String(status))
  }
})

/** According to its declared length, or its last chunk. */
function isComplete(answer: string): boolean {
  const end = answer.indexOf("\r\n\r\n") + 4
  if (end < 4) return false
  const length = /^content-length: (\d+)/im.exec(answer.slice(0, end))?.[1]
  return length === undefined ? answer.endsWith("0\r\n\r\n") : answer.length - end >= Number(length)
}

test("listens on this machine's own address only", async () => {
  const { port } = shared()
  if (!existsSync("/proc/net/tcp")) return console.log("NOT RUN: this system does not list its sockets in /proc")
  const at = `:${port.toString(16).toUpperCase().padStart(4, "0")}`
  const listening = ["/proc/net/tcp", "/proc/net/tcp6"]
    .filter((file) => existsSync(file))
    .flatMap((file) => readFileSync(file, "utf8").split("\n"))
    .map((line) => line.trim().split(/\s+/))
    .filter(([, local, , state]) => state === "0A" && local?.endsWith(at))
    .map(([, local]) => local)
  expect(listening).toEqual([`0100007F${at}`])
})

test("an address that others can reach is refused, unless TLS ends in front of it under a name", async () => {
  const home = tempDir()
  for (const host of ["0.0.0.0", "192.0.2.7", "::", "dex.example.com"]) {
    const refused = await runRefused(home, ["serve", "--port", "0", "--host", host])
    expect(refused).toMatchObject({ code: 2, stdout: "" })
    expect(refused.stderr).toContain("--behind-tls dex.example.com")
  }
  expect(await runRefused(home, ["serve", "--port", "0", "--behind-tls", "https://x/"])).toMatchObject({ code: 2 })
  const served = await serveHttp(home, { args: ["--host", "0.0.0.0", "--behind-tls", "dex.example.com"] })
  const status = async (headers: Record<string, string>) => (await served.ask({ path: "/nothing", headers })).status
  expect(await status({ host: "dex.example.com" })).toBe(404)
  expect(await status({ host: "dex.example.com", origin: "https://dex.example.com" })).toBe(404)
  expect(await status({ host: "dex.example.com", origin: "http://dex.example.com" })).toBe(403)
  expect(await status({ host: "dex.example.com.evil.example" })).toBe(403)
  expect(await status({ host: `0.0.0.0:${served.port}` })).toBe(403)
  expect(await status({ host: "dex.example.com", authorization: "" })).toBe(401)
})

test("the token is made once, for its owner only, and never printed", async () => {
  const home = tempDir()
  const [first, second] = await Promise.all([serveHttp(home), serveHttp(home)])
  expect(first.token).toMatch(/^[\w-]{43}$/)
  expect(second.token).toBe(first.token)
  expect((await second.ask({ path: "/nothing", headers: { authorization: `Bearer ${first.token}` } })).status).toBe(404)
  expect(statSync(tokenFile(home)).mode & 0o777).toBe(0o600)
  for (const { stdout, stderr } of [first, second]) expect(stdout() + stderr()).not.toContain(first.token)

  chmodSync(tokenFile(home), 0o640)
  const open = await dex(home, ["serve", "--port", "0"])
  expect(open).toMatchObject({ code: 2, stdout: "" })
  expect(open.stderr).toContain(`chmod 600 ${tokenFile(home)}`)
  chmodSync(tokenFile(home), 0o600)
  writeFileSync(tokenFile(home), "short\n")
  const short = await dex(home, ["serve", "--port", "0"])
  expect(short).toMatchObject({ code: 2, stdout: "" })
  expect(short.stderr).not.toContain("short\n")
})

test("says what to do about a port that is taken, and about invalid options", async () => {
  expect((await runRefused(home, ["serve", "--help"])).stdout).toContain("--port N")
  const { port } = shared()
  const taken = await dex(home, ["serve", "--port", String(port)])
  expect(taken).toMatchObject({ code: 2, stdout: "" })
  expect(taken.stderr).toContain(`Port ${port} on 127.0.0.1 is in use`)
  for (const args of [["--port", "70000"], ["--port", "a"], ["--host", "127.0.0.1"], ["--prot", "1"], ["x"]])
    expect(await runRefused(home, ["serve", ...args])).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringMatching(/^dex: /),
    })
})

test("no route gives a byte without the token, and none answers a foreign Host or Origin", async () => {
  // This is the last test that uses this server: with the token it comes near the rate limit.
  const served = shared()
  const all = cases(served)
  expect(all.length).toBeGreaterThan(5_000)
  const wrong: string[] = []
  let initialized = 0
  const queue = all.values()
  await Promise.all(
    Array.from({ length: 8 }, async () => {
      for (const one of queue) {
        const hasBody = !["GET", "HEAD", "TRACE"].includes(one.method)
        const answer = await served.bare({ ...one, ...(hasBody && { body: INITIALIZE }) })
        if (answer.status === 200 && answer.body.includes('"serverInfo"')) initialized++
        const what = wrongIn(one, answer)
        if (what !== undefined) wrong.push(`${one.method} ${one.path}, token ${one.token}, ${one.place}: ${what}`)
      }
    }),
  )
  expect(wrong).toEqual([])
  // The matrix is meaningful: the requested data does come, from both places, by every spelling of the one path.
  expect(initialized).toBe(6)
  expect(served.stdout()).toBe("")
  expect(served.stderr()).not.toContain(served.token)
})

test("a caller that loops is asked to wait, and one without the token does not use up its share", async () => {
  let time = 0
  const { app } = createApp({
    token: "secret-token",
    log: () => {},
    createServer: () => new Server({ name: "x", version: "1" }),
    rate: { burst: 3, perSecond: 0.5 },
    now: () => time,
  })
  const ask = (token: string) => app.request("/nothing", { headers: { authorization: `Bearer ${token}` } })
  for (let i = 0; i < 10; i++) expect((await ask("other")).status).toBe(401)
  for (let i = 0; i < 3; i++) expect((await ask("secret-token")).status).toBe(404)
  const refused = await ask("secret-token")
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "2"])
  expect((await app.request("/healthz")).status).toBe(200)
  time += 1_999
  expect((await ask("secret-token")).status).toBe(429)
  time += 1
  expect((await ask("secret-token")).status).toBe(404)
  expect((await ask("secret-token")).status).toBe(429)

  const served = await serveHttp(tempDir())
  let requests = 0
  let status = 0
  while (status !== 429 && requests < 20_000)
    for (const answer of await Promise.all(Array.from({ length: 16 }, () => served.ask({ path: "/nothing" })))) {
      requests++
      status = Math.max(status, answer.status)
    }
  expect(status).toBe(429)
  expect(requests).toBeGreaterThan(300)
})

test("a bucket fills at its rate, never above its size, and not if the clock goes back", () => {
  let time = 0
  const wait = createTokenBucket({ burst: 2, perSecond: 10 }, () => time)
  expect([wait(), wait(), wait()]).toEqual([0, 0, 100])
  time = 40
  expect(wait()).toBe(60)
  time = 20
  expect(wait()).toBe(60)
  time = 1_000_000
  expect([wait(), wait(), wait()]).toEqual([0, 0, 100])
})

test("recognises loopback addresses, and foreign Host and Origin headers", () => {
  for (const host of ["localhost", "127.0.0.1", "127.8.9.10", "::1", "[::1]"]) expect(isLoopback(host), host).toBe(true)
  for (const host of ["127.0.0.1.evil.example", "0.0.0.0", "::", "10.0.0.1", "localhost.evil.example", ""])
    expect(isLoopback(host), host).toBe(false)
  const foreign = foreignHeader({ host: "::1", port: 80 })
  expect(foreign({ host: "[::1]" })).toBeUndefined()
  expect(foreign({ host: "[::1]:80", origin: "http://[::1]" })).toBeUndefined()
  expect(foreign({})).toBe("Host")
  expect(foreign({ host: "[::2]" })).toBe("Host")
  expect(foreign({ host: "localhost", origin: "http://localhost:81" })).toBe("Origin")
})
