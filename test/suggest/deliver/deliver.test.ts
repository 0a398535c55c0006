import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { createServer as createTlsServer } from "node:https"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Webhook } from "standardwebhooks"
import { expect, onTestFinished, test, vi } from "vitest"
import { tryLock } from "../../../src/store/sqlite/lock.ts"
import { MAX_WAITING } from "../../../src/store/suggestions/outbox.ts"
import { openSuggestions } from "../../../src/store/suggestions/suggestions.ts"
import { MAX_BODY_BYTES, webhookBody } from "../../../src/suggest/deliver/body.ts"
import { DELAYS_MS, type DeliveryParts, deliverDue } from "../../../src/suggest/deliver/deliver.ts"
import { newSecret, signedHeaders } from "../../../src/suggest/deliver/sign.ts"
import { keepDelivering } from "../../../src/tools/subscriptions/delivery.ts"
import { itemOf, NOW, subscriptionOf, suggestionOf } from "../../support/suggestions.ts"
import { tempDir } from "../../support/temp.ts"
import { receiver } from "./receiver.ts"

const SECRET = newSecret()

function delivering(url: string, more: Partial<DeliveryParts> = {}) {
  const suggestions = openSuggestions(join(tempDir(), "suggest.db"))
  onTestFinished(() => suggestions.close())
  suggestions.subscribe(subscriptionOf("sub", { deliver: "webhook", url }), SECRET)
  const clock = { now: NOW }
  const parts: DeliveryParts = {
    suggestions,
    now: () => clock.now,
    version: "test",
    allowedHosts: () => [new URL(url).host],
    mayLeave: () => true,
    ...more,
  }
  const make = (id: string, of: Parameters<typeof suggestionOf>[1] = {}) =>
    suggestions.save(suggestionOf(id, { status: "pending", ...of }), { subscription: "sub" })
  return { suggestions, clock, parts, make }
}

test("the receiver gets the suggestion once, signed so that a Standard Webhooks library accepts it", async () => {
  const { url, received } = await receiver()
  const now = Date.now()
  const { parts, make, suggestions, clock } = delivering(url)
  clock.now = now
  make("abc", {
    moment: { at: now, file: "/home/someone/api/src/a.ts", prompt: "what was typed", error: "what was printed" },
  })
  expect(await deliverDue(parts)).toEqual({ delivered: 1, again: 0, dead: 0 })
  expect(await deliverDue(parts)).toEqual({ delivered: 0, again: 0, dead: 0 })
  expect(received).toHaveLength(1)
  const [{ headers, body }] = received as [(typeof received)[0]]
  expect(new Webhook(SECRET).verify(body, headers as Record<string, string>)).toEqual({
    type: "suggestion.created",
    timestamp: new Date(now).toISOString(),
    data: {
      id: "abc",
      sequence: 1,
      subscription: "sub",
      project: "api",
      event: "failed_command",
      file: "src/a.ts",
      items: [
        {
          number: 1,
          kind: "fix",
          title: "Cannot find module 'zod'",
          summary: "npm install zod",
          reason: "The same error was solved on 3 Oct.",
          ref: "claude_code:aaaa-1111#12",
          relevance: 0.8,
        },
      ],
    },
  })
  expect(headers["webhook-id"]).toBe("msg_abc")
  expect(body).not.toMatch(/what was|someone/)
  expect(suggestions.get("abc")?.status).toBe("shown")
})

test("our signature equals the library's, and of 10,000 messages with one flipped bit none is accepted", () => {
  const library = new Webhook(SECRET)
  const body = webhookBody({
    ...suggestionOf("abc"),
    seq: 1,
    would: false,
    items: [{ ...itemOf(), number: 1, status: "shown" }],
  })
  const at = Date.now()
  const headers = signedHeaders(SECRET, "msg_abc", at, body)
  expect(headers["webhook-signature"]).toBe(library.sign("msg_abc", new Date(at), body))
  expect(() => library.verify(body, headers)).not.toThrow()
  const fields = ["webhook-id", "webhook-timestamp", "webhook-signature"] as const
  let believed = 0
  for (let i = 0; i < 10_000; i++) {
    const field = i % 2 === 0 ? undefined : fields[i % 3]
    const original = field === undefined ? body : headers[field]!
    const bytes = Buffer.from(original, "latin1")
    // The version of a signature is before its comma. Other versions are ignored, as the specification requires.
    const bit = (i * 7919) % (bytes.length * 8)
    bytes[bit >> 3]! ^= 1 << (bit & 7)
    const flipped = bytes.toString("latin1")
    try {
      library.verify(
        field === undefined ? flipped : body,
        field === undefined ? headers : { ...headers, [field]: flipped },
      )
      // Base64 ignores the last bits of its last character: the same signature, written differently.
      const same =
        field === "webhook-signature" &&
        Buffer.from(flipped.slice(3), "base64").equals(Buffer.from(original.slice(3), "base64"))
      if (!same) believed++
    } catch {
      // refused, as it should be
    }
  }
  expect(believed).toBe(0)
})

test("a failed delivery is repeated on Svix's schedule with the same id, then stored as dead", async () => {
  const { url, received } = await receiver((_, response) => void response.writeHead(500).end())
  const { parts, clock, make, suggestions } = delivering(url)
  make("abc")
  const at: number[] = []
  for (let i = 0; i < DELAYS_MS.length; i++) {
    const sent = received.length
    clock.now = suggestions.nextDue()! - 1
    if (i > 0) await deliverDue(parts)
    expect(received).toHaveLength(sent)
    clock.now++
    at.push(clock.now - NOW)
    expect(await deliverDue(parts)).toMatchObject(i < 7 ? { again: 1 } : { dead: 1 })
  }
  expect(at.map((ms, i) => (ms - (at[i - 1] ?? 0)) / 1000)).toEqual([0, 5, 300, 1800, 7200, 18_000, 36_000, 36_000])
  expect(new Set(received.map(({ headers }) => headers["webhook-id"]))).toEqual(new Set(["msg_abc"]))
  expect(new Set(received.map(({ headers }) => headers["webhook-timestamp"])).size).toBe(8)
  expect(suggestions.nextDue()).toBeUndefined()
  expect(suggestions.outbox()).toEqual({ waiting: 0, delivered: 0, dead: 1, last_problem: "500" })
  expect(suggestions.retryDead(clock.now)).toBe(1)
  expect(await deliverDue(parts)).toMatchObject({ again: 1 })
})

test("a redirect is a failure and is not followed; 410 ends the subscription and its queue", async () => {
  const elsewhere = await receiver()
  let status = 302
  const { url } = await receiver((_, response) => void response.writeHead(status, { Location: elsewhere.url }).end())
  const { parts, clock, make, suggestions } = delivering(url, {
    allowedHosts: () => [new URL(url).host, elsewhere.host],
  })
  for (const code of [301, 302, 303, 307, 308]) {
    status = code
    make(`r${code}`)
    clock.now = NOW
    await deliverDue(parts)
    expect(suggestions.outbox().last_problem).toBe(`${code}: redirects are not followed`)
  }
  expect(elsewhere.connections()).toBe(0)
  status = 410
  clock.now += 60_000
  await deliverDue(parts)
  expect(suggestions.subscriptions()[0]).toMatchObject({
    enabled: false,
    disabled_because: expect.stringContaining("410"),
  })
  expect(suggestions.outbox()).toMatchObject({ waiting: 0, dead: 5 })
  expect(make("later")).toMatchObject({ kept: false })
})

test("a receiver that never answers, hangs up or does not exist costs its time and no more", async () => {
  const silent = await receiver(() => {})
  const { parts, make, suggestions } = delivering(silent.url, { timeoutMs: 200 })
  make("abc")
  expect(await deliverDue(parts)).toMatchObject({ again: 1 })
  expect(suggestions.outbox().last_problem).toBe("no answer within 0.2 s")

  const rude = await receiver((_, response) => void response.socket?.destroy())
  const second = delivering(rude.url)
  second.make("abc")
  expect(await deliverDue(second.parts)).toMatchObject({ again: 1 })
  expect(second.suggestions.outbox().last_problem).toBe("ECONNRESET")

  const endless = await receiver((_, response) => {
    response.writeHead(200)
    const more = () => {
      if (!response.destroyed) response.write("x".repeat(65_536), () => setImmediate(more))
    }
    more()
  })
  const third = delivering(endless.url)
  third.make("abc")
  expect(await deliverDue(third.parts)).toMatchObject({ delivered: 1 })

  const closed = delivering("http://127.0.0.1:1/x")
  closed.make("abc")
  expect(await deliverDue(closed.parts)).toMatchObject({ again: 1 })
  expect(closed.suggestions.outbox().last_problem).toBe("ECONNREFUSED")
})

test("a receiver that does not answer does not delay others", async () => {
  const silent = await receiver(() => {})
  const { parts, make, suggestions } = delivering(silent.url, { timeoutMs: 1_500 })
  for (let i = 0; i < 40; i++) make(`s${i}`)
  const lively = await receiver()
  suggestions.subscribe(subscriptionOf("lively", { deliver: "webhook", url: lively.url }), SECRET)
  for (let i = 0; i < 40; i++)
    suggestions.save(suggestionOf(`l${i}`, { moment: { at: NOW } }), { subscription: "lively" })
  const stop = new AbortController()
  lively.server.on("request", () => {
    if (lively.received.length === 39) stop.abort()
  })
  await deliverDue({ ...parts, allowedHosts: () => [silent.host, lively.host] }, stop.signal)
  expect(lively.received.length).toBeGreaterThanOrEqual(39)
  expect(silent.received.length).toBe(4)
})

test("if it is stopped before a receiver answered, it hangs up at once, and the message is still due", async () => {
  const stop = new AbortController()
  const { url, server } = await receiver(() => stop.abort())
  const hungUp = new Promise<void>((resolve) => {
    server.on("connection", (socket) => socket.on("close", () => resolve()))
  })
  const { parts, make, suggestions } = delivering(url, { timeoutMs: 4_000 })
  make("abc")
  expect(await deliverDue(parts, stop.signal)).toEqual({ delivered: 0, again: 0, dead: 0 })
  await hungUp
  expect(suggestions.outbox()).toEqual({ waiting: 1, delivered: 0, dead: 0 })
  expect(suggestions.due(NOW, 8)).toMatchObject([{ id: "msg_abc", attempts: 0 }])
})

test("if it is stopped during a lookup, it does not wait and does not connect", async () => {
  const { url, connections } = await receiver()
  const stop = new AbortController()
  let answer = (_: { address: string }[]) => {}
  const lookup = () =>
    new Promise<{ address: string }[]>((resolve) => {
      answer = resolve
      stop.abort()
    })
  const named = url.replace("127.0.0.1", "hooks.example.test")
  const { parts, make, suggestions } = delivering(named, { lookup })
  make("abc")
  expect(await deliverDue(parts, stop.signal)).toEqual({ delivered: 0, again: 0, dead: 0 })
  suggestions.close()
  answer([{ address: "127.0.0.1" }])
  await new Promise(setImmediate)
  expect(connections()).toBe(0)
})

test("a process that stops delivering hands over only when nothing is being sent any more", async () => {
  const lockFile = join(tempDir(), "lock")
  const said: string[] = []
  let heard = () => {}
  const asked = new Promise<void>((resolve) => {
    heard = resolve
  })
  const { url } = await receiver(() => heard())
  const { parts, make, suggestions } = delivering(url, { timeoutMs: 4_000 })
  make("abc")
  const stop = keepDelivering({ ...parts, suggestions: () => suggestions }, lockFile, (line) => void said.push(line))
  await asked
  const stopped = stop()
  expect(tryLock(lockFile)).toBeUndefined()
  await stopped
  suggestions.close()
  const lock = tryLock(lockFile)
  expect(lock).toBeDefined()
  lock?.release()
  expect(said).toEqual([])
})

test("proxies of the environment are not used", async () => {
  const { url, received } = await receiver()
  const proxy = await receiver()
  const { parts, make } = delivering(url)
  onTestFinished(() => void vi.unstubAllEnvs())
  for (const name of ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "NODE_USE_ENV_PROXY"])
    vi.stubEnv(name, name.startsWith("NODE") ? "1" : `http://${proxy.host}`)
  make("abc")
  await deliverDue(parts)
  expect([received.length, proxy.connections()]).toEqual([1, 0])
})

test("with TLS the name is checked against the certificate, while the connection goes to the checked address", async () => {
  const dir = tempDir()
  try {
    execFileSync(
      "openssl",
      [
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
        "-keyout",
        join(dir, "key"),
        "-out",
        join(dir, "cert"),
        "-subj",
        "/CN=hooks.example.test",
        "-addext",
        "subjectAltName=DNS:hooks.example.test",
      ],
      { stdio: "ignore" },
    )
  } catch {
    return console.log("NOT RUN: there is no openssl to make a certificate with")
  }
  const ca = readFileSync(join(dir, "cert"), "utf8")
  const names: (string | false | null | undefined)[] = []
  let requests = 0
  const server = createTlsServer({ key: readFileSync(join(dir, "key")), cert: ca }, (request, response) => {
    requests++
    request.resume().on("end", () => response.writeHead(204).end())
  })
  server.on("secureConnection", (socket) => names.push((socket as { servername?: string | false }).servername))
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  const asked: string[] = []
  const lookup = async (host: string) => {
    asked.push(host)
    return [{ address: "127.0.0.1" }]
  }
  const good = delivering(`https://hooks.example.test:${port}/x`, { lookup, ca })
  good.make("abc")
  expect(await deliverDue(good.parts)).toMatchObject({ delivered: 1 })
  expect([names, asked, requests]).toEqual([["hooks.example.test"], ["hooks.example.test"], 1])
  for (const [host, trust] of [
    ["other.example.test", { ca }],
    ["hooks.example.test", {}],
  ] as const) {
    const bad = delivering(`https://${host}:${port}/x`, { lookup, ...trust })
    bad.make("abc")
    expect(await deliverDue(bad.parts)).toMatchObject({ again: 1 })
    expect(bad.suggestions.outbox().last_problem).toMatch(/CERT|ALTNAME/)
  }
  expect(requests).toBe(1)
})

test("a body stays below 20 kB, says what it left out, and contains no secret", () => {
  const key = `AKIA${"Q".repeat(8)}ZXCV2345`
  const items = Array.from({ length: 20 }, (_, i) => ({
    ...itemOf({ title: `${i} password=hunter2hunter2 ${key}`, summary: "é".repeat(4_000), reason: "x".repeat(4_000) }),
    number: i + 1,
    status: "pending" as const,
  }))
  const body = webhookBody({ ...suggestionOf("abc"), seq: 1, would: false, items })
  expect(Buffer.byteLength(body)).toBeLessThan(MAX_BODY_BYTES)
  expect(body).not.toContain("hunter2hunter2")
  expect(body).not.toContain(key)
  const { data } = JSON.parse(body) as { data: { items: unknown[]; items_left_out: number } }
  expect(data.items.length).toBeGreaterThan(1)
  expect(data.items.length + data.items_left_out).toBe(20)
})

test("a suggestion that became private, forgotten or unsubscribed after it was queued is not sent", async () => {
  const { url, received } = await receiver()
  const { parts, make, suggestions } = delivering(url, { mayLeave: (project) => project !== "/home/someone/secret" })
  make("private", { moment: { project: "/home/someone/secret" } })
  make("forgotten", { items: [itemOf({ ref: "codex:gone#1" })] })
  make("half", { items: [itemOf({ ref: "codex:gone#1", title: "gone" }), itemOf({ title: "stays" })] })
  suggestions.forget([{ source: "codex", id: "gone" }])
  expect(await deliverDue(parts)).toEqual({ delivered: 1, again: 0, dead: 1 })
  expect(received.map(({ body }) => JSON.parse(body).data.items.map(({ title }: { title: string }) => title))).toEqual([
    ["stays"],
  ])
  make("late")
  suggestions.unsubscribe("sub")
  expect(await deliverDue(parts)).toEqual({ delivered: 0, again: 0, dead: 0 })
})

test("the queue is limited: beyond 10,000 waiting messages, one is stored as dead at once with the reason", () => {
  const { make, suggestions } = delivering("https://example.com/x")
  for (let i = 0; i < MAX_WAITING; i++) make(`s${i}`)
  expect(suggestions.outbox()).toMatchObject({ waiting: MAX_WAITING, dead: 0 })
  expect(make("more")).toMatchObject({ kept: true })
  expect(suggestions.outbox()).toEqual({
    waiting: MAX_WAITING,
    delivered: 0,
    dead: 1,
    last_problem: "10000 other deliveries were already waiting",
  })
})
