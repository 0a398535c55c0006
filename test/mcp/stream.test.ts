import { mkdirSync, readFileSync } from "node:fs"
import { type ClientRequest, type IncomingMessage, request } from "node:http"
import { join } from "node:path"
import { Webhook } from "standardwebhooks"
import { expect, onTestFinished, test } from "vitest"
import { createStreams } from "../../src/serve/http/suggestions.ts"
import { openSuggestions } from "../../src/store/suggestions/suggestions.ts"
import { receiver } from "../suggest/deliver/receiver.ts"
import { itemOf, subscriptionOf, suggestionOf } from "../support/suggestions.ts"
import { synced } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"
import { type Served, serveHttp } from "./http-client.ts"

type Event = { id: string; suggestion: string }

function kept(home: string) {
  mkdirSync(join(home, ".dex"), { recursive: true, mode: 0o700 })
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  onTestFinished(() => suggestions.close())
  const tell = (id: string, subscription: string, more: Parameters<typeof suggestionOf>[1] = {}) =>
    suggestions.save(suggestionOf(id, { status: "pending", ...more }), { subscription })
  return { suggestions, tell }
}

/** A real stream; `next` returns its events one by one. */
function listen({ port, token }: Served, path = "/suggestions", lastId?: string) {
  const events: Event[] = []
  const waiting: ((event: Event) => void)[] = []
  let text = ""
  const sent: ClientRequest = request({
    host: "127.0.0.1",
    port,
    path,
    headers: { authorization: `Bearer ${token}`, ...(lastId !== undefined && { "last-event-id": lastId }) },
  })
  onTestFinished(() => void sent.destroy())
  const response = new Promise<IncomingMessage>((resolve) => sent.on("response", resolve))
  void response.then((incoming) => {
    incoming.on("error", () => {})
    incoming.on("data", (chunk) => {
      text += chunk
      for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
        const found = /^id: (\d+)\nevent: suggestion\ndata: (.*)$/.exec(text.slice(0, end))
        text = text.slice(end + 2)
        if (!found) continue
        const event = { id: found[1]!, suggestion: JSON.parse(found[2]!).data.id as string }
        const next = waiting.shift()
        if (next) next(event)
        else events.push(event)
      }
    })
  })
  sent.on("error", () => {})
  sent.end()
  const next = () =>
    new Promise<Event>((resolve) => (events.length > 0 ? resolve(events.shift()!) : waiting.push(resolve)))
  return { response, next, end: () => sent.destroy() }
}

test("streams the suggestions of a subscription as they come, and continues after the last event that was seen", async () => {
  const home = tempDir()
  const { suggestions, tell } = kept(home)
  suggestions.subscribe(subscriptionOf("live", { deliver: "sse" }))
  suggestions.subscribe(subscriptionOf("other", { deliver: "sse" }))
  suggestions.subscribe(subscriptionOf("poll"))
  tell("waits", "live")
  tell("polled", "poll")
  suggestions.save(suggestionOf("hook"))
  const served = await serveHttp(home)
  const first = listen(served, "/suggestions?subscription=live")
  const { headers, statusCode } = await first.response
  expect([statusCode, headers["content-type"]]).toEqual([200, "text/event-stream; charset=utf-8"])
  expect(await first.next()).toEqual({ id: "1", suggestion: "waits" })
  tell("elsewhere", "other")
  tell("new", "live", { items: [itemOf({ title: "with\nlines\u2028 and \u001b signs" })] })
  expect(await first.next()).toEqual({ id: "5", suggestion: "new" })
  tell("newer", "live")
  expect(await first.next()).toEqual({ id: "6", suggestion: "newer" })
  expect(suggestions.get("new")?.status).toBe("shown")
  expect(suggestions.get("polled")?.status).toBe("pending")
  first.end()
  tell("missed", "live")
  tell("missed-too", "live")
  const again = listen(served, "/suggestions?subscription=live", "6")
  expect([await again.next(), await again.next()]).toEqual([
    { id: "7", suggestion: "missed" },
    { id: "8", suggestion: "missed-too" },
  ])
  const late = listen(served, "/suggestions", "1")
  expect([await late.next(), await late.next()].map(({ suggestion }) => suggestion)).toEqual(["elsewhere", "new"])
})

test("a new client gets pending suggestions once; a foreign id is refused", async () => {
  const home = tempDir()
  const { suggestions, tell } = kept(home)
  suggestions.subscribe(subscriptionOf("live", { deliver: "sse" }))
  tell("a", "live")
  const served = await serveHttp(home)
  const first = listen(served)
  expect((await first.next()).suggestion).toBe("a")
  const second = listen(served)
  tell("b", "live")
  expect([(await first.next()).suggestion, (await second.next()).suggestion]).toEqual(["b", "b"])
  for (const id of ["x", "-1", "1e3", "9".repeat(16)])
    expect((await served.ask({ path: "/suggestions", headers: { "last-event-id": id } })).status, id).toBe(400)
  expect((await served.ask({ path: "/suggestions", method: "HEAD" })).status).toBe(200)
  expect((await served.ask({ path: "/suggestions", method: "POST" })).status).toBe(405)
})

/** A stream without a network: the reader decides when to read. */
async function streamOf(home: string, mayBeSent = async (_project: string) => true) {
  const suggestions = openSuggestions(join(home, ".dex", "suggest.db"))
  onTestFinished(() => suggestions.close())
  const streams = createStreams({ suggestions: () => suggestions, mayBeSent, log: (line) => expect.fail(line) })
  const { body } = await streams(new Request("http://127.0.0.1/suggestions"))
  const reader = body!.getReader()
  const next = async () => {
    const { value } = await reader.read()
    return /^id: (\d+)$/m.exec(new TextDecoder().decode(value))?.[1]
  }
  expect(await next()).toBeUndefined() // how soon to reconnect
  return { next, end: () => reader.cancel() }
}

test("a suggestion that a client did not take counts as pending, and waits for the next client", async () => {
  const home = tempDir()
  const { suggestions, tell } = kept(home)
  suggestions.subscribe(subscriptionOf("live", { deliver: "sse" }))
  for (let i = 1; i <= 40; i++) tell(`s${i}`, "live")
  const waiting = () => suggestions.list({ status: "pending", limit: 100 }).length
  const first = await streamOf(home)
  expect(waiting()).toBe(40)
  expect([await first.next(), await first.next(), await first.next()]).toEqual(["1", "2", "3"])
  // The third was sent; only the request for the fourth shows whether it was received.
  expect(waiting()).toBe(38)
  await first.end()
  const second = await streamOf(home)
  for (let i = 3; i <= 40; i++) expect(await second.next()).toBe(String(i))
  const more = second.next()
  tell("more", "live")
  expect(await more).toBe("41")
  expect(waiting()).toBe(1)
  await second.end()
})

test("suggestions that are forgotten or become private while a client does not read are not streamed to it", async () => {
  const home = tempDir()
  const { suggestions, tell } = kept(home)
  suggestions.subscribe(subscriptionOf("live", { deliver: "sse" }))
  const open = new Set(["/a", "/b"])
  tell("first", "live", { moment: { project: "/a" } })
  tell("forgotten", "live", { moment: { project: "/a" }, items: [itemOf({ ref: "codex:gone#1" })] })
  tell("private", "live", { moment: { project: "/b" } })
  tell("last", "live", { moment: { project: "/a" } })
  const { next, end } = await streamOf(home, async (project) => open.has(project))
  expect(await next()).toBe("1")
  suggestions.forget([{ source: "codex", id: "gone" }])
  open.delete("/b")
  expect(await next()).toBe("4")
  await end()
})

test("a private project's suggestions are not streamed", async () => {
  const home = await synced()
  const projects = JSON.parse((await dex(home, ["stats", "--json"])).stdout).projects as string[]
  const [secret] = projects as [string]
  expect(await dex(home, ["private", secret])).toMatchObject({ code: 0 })
  const { suggestions, tell } = kept(home)
  suggestions.subscribe(subscriptionOf("live", { deliver: "sse", project: secret }))
  tell("secret", "live", { moment: { project: secret } })
  tell("open", "live")
  const served = await serveHttp(home)
  expect((await listen(served).next()).suggestion).toBe("open")
  expect(suggestions.get("secret")?.status).toBe("pending")
})

test("at most 32 streams are open, and a closed one makes room", async () => {
  const served = await serveHttp(tempDir())
  const open = Array.from({ length: 32 }, () => listen(served))
  for (const one of open) expect((await one.response).statusCode).toBe(200)
  expect((await served.ask({ path: "/suggestions" })).status).toBe(503)
  open[0]!.end()
  let status = 503
  for (let i = 0; i < 200 && status === 503; i++) status = (await served.ask({ path: "/suggestions" })).status
  expect(status).toBe(200)
})

test("a running server delivers webhooks too, and to a host on this machine only if the user allowed it", async () => {
  const home = tempDir()
  let heard: (body: string) => void = () => {}
  const got = new Promise<string>((resolve) => {
    heard = resolve
  })
  const { url, host, received } = await receiver(({ body }, response) => {
    response.writeHead(204).end()
    heard(body)
  })
  const refused = await dex(home, ["subscribe", "file:src/**", "--url", url])
  expect(refused).toMatchObject({
    code: 2,
    stdout: "",
    stderr: expect.stringContaining(`dex config set deliver.allow_hosts ${host}`),
  })
  expect(await dex(home, ["config", "set", "deliver.allow_hosts", host])).toMatchObject({ code: 0 })
  const subscribed = JSON.parse((await dex(home, ["subscribe", "file:src/**", "--url", url, "--json"])).stdout)
  const { tell } = kept(home)
  await serveHttp(home)
  tell("told", subscribed.id, { moment: { at: Date.now() } })
  const body = await got
  expect(new Webhook(subscribed.secret).verify(body, received[0]!.headers as Record<string, string>)).toMatchObject({
    data: { id: "told" },
  })
  expect(readFileSync(join(home, ".dex", "config.json"), "utf8")).not.toContain("whsec_")
})
