import { request } from "node:http"
import { describe, expect, test } from "vitest"
import { claudeSession } from "../support/home.ts"
import { syncedOnce } from "../support/synced.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"
import { connect } from "./client.ts"
import { connectHttp, JSON_POST, type Served, serveHttp, serveHttpOnce } from "./http-client.ts"

const ERAS = ["2025-06-18", "2025-11-25", "2026-07-28"]
const LONGEST = 1 << 20

/** HTTP clients are not in the session that the server was started from, so all of this must work with one set. */
const SESSION = { CLAUDE_CODE_SESSION_ID: "11111111-1111-4111-8111-111111111111" }
const home = syncedOnce()
const shared = serveHttpOnce(home, { env: SESSION })

describe.each(ERAS)("over HTTP in protocol %s", (era) => {
  test("has the tools of stdio, and answers like stdio and the command line", async () => {
    const served = shared()
    const client = await connectHttp(served, era)
    const stdio = await connect(home, { era })
    expect((await client.request("tools/list")).result).toEqual((await stdio.request("tools/list")).result)

    const found = await client.call("dex_search", { query: "mutex" })
    expect(found.structuredContent?.total).toBe(1)
    const printed = (await dex(home, ["search", "mutex", "--json"])).stdout
    const { structuredContent, ...rest } = await stdio.call("dex_search", { query: "mutex" })
    expect(JSON.stringify(found.structuredContent)).toBe(JSON.stringify(structuredContent))
    expect(`${JSON.stringify(found.structuredContent)}\n`).toBe(printed)
    expect(textIn(found)).toBe(textIn(rest))

    expect((await client.call("dex_get", { ids: ["zzzz"] })).isError).toBe(true)
    expect((await client.request("tools/call", { name: "no_such_tool" })).error?.code).toBe(-32602)
    expect(served.stdout()).toBe("")
  })

  test("finds messages that were written since", async () => {
    const client = await connectHttp(shared(), era)
    await client.call("dex_stats")
    const word = `xylophone${ERAS.indexOf(era)}`
    claudeSession(home, {
      id: `${era.replaceAll("-", "")}-9999-4999-8999-999999999999`,
      start: "2026-11-12T10:00:00Z",
      turns: [{ user: `The ${word} is out of tune` }],
    })
    const total = async () => (await client.call("dex_search", { query: word })).structuredContent?.total
    await expect.poll(total, { interval: 300 }).toBe(1)
  })
})

function textIn(result: { content?: unknown }): string {
  const [first] = result.content as { text: string }[]
  return first!.text.replace(/fresh_as_of: .*/, "")
}

test("the caller is not in the session that the server was started from", async () => {
  const timeline = { id: "current" }
  const stdio = await connect(home, { env: SESSION })
  expect((await stdio.call("dex_timeline", timeline)).isError).toBeUndefined()
  const client = await connectHttp(shared(), "2026-07-28")
  expect((await client.call("dex_timeline", timeline)).isError).toBe(true)
})

test("a session lives until it is ended, and an unknown one must start again", async () => {
  const served = shared()
  const client = await connectHttp(served, "2025-11-25")
  const other = await connectHttp(served, "2025-11-25")
  expect(client.session).toMatch(/^[\x21-\x7e]{20,}$/)
  expect(client.session).not.toBe(other.session)
  const end = { method: "DELETE", headers: { "mcp-session-id": client.session!, "mcp-protocol-version": "2025-11-25" } }
  expect((await served.ask(end)).status).toBe(200)
  expect((await client.send({ id: 7, method: "ping" })).status).toBe(404)
  expect((await served.ask(end)).status).toBe(404)
  expect((await other.request("ping")).result).toEqual({})
  const lost = await served.ask({
    method: "POST",
    headers: JSON_POST,
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" }),
  })
  expect(lost.status).toBe(400)
})

test("with more than 200 sessions the least recently used one makes room", async () => {
  const served = await serveHttp(tempDir())
  const first = await connectHttp(served, "2025-11-25")
  const second = await connectHttp(served, "2025-11-25")
  // No more at a time than the rate limit allows.
  for (let i = 0; i < 199; i++) {
    if (i === 100) expect((await first.request("ping")).result).toEqual({})
    await begun(served)
  }
  expect((await second.send({ id: 9, method: "ping" })).status).toBe(404)
  expect((await first.send({ id: 9, method: "ping" })).status).toBe(200)
})

async function begun(served: Served): Promise<void> {
  const params = { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "test", version: "1" } }
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "initialize", params })
  for (;;) {
    const { status, headers } = await served.ask({ method: "POST", headers: JSON_POST, body })
    if (status === 200) return
    expect(status).toBe(429)
    await new Promise((resolve) => setTimeout(resolve, Number(headers["retry-after"]) * 1000))
  }
}

test("refuses a body that is too long, declared or not, and anything that is not a message, and continues", async () => {
  const served = shared()
  const post = (body: string, headers: Record<string, string> = {}) =>
    served.ask({ method: "POST", headers: { ...JSON_POST, ...headers }, body }).then(({ status }) => status)
  expect(await post("x".repeat(LONGEST + 1))).toBe(413)
  expect(await post("x".repeat(LONGEST + 1), { "transfer-encoding": "chunked" })).toBe(413)
  expect(await post("x".repeat(LONGEST))).toBe(400)
  expect(await post("{")).toBe(400)
  expect(await post("")).toBe(400)
  for (const body of [
    "[]",
    "null",
    "5",
    '"x"',
    "{}",
    '{"jsonrpc":"2.0"}',
    '[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
  ])
    expect(await post(body), body).toBe(400)
  expect(await post("{}", { "content-type": "text/plain" })).toBe(415)
  expect((await served.ask({ method: "PUT" })).headers.allow).toBe("POST, GET, DELETE")
  const client = await connectHttp(served, "2026-07-28")
  expect((await client.call("dex_guide")).isError).toBeUndefined()
})

test("a client that disconnects in the middle of its request or of its answer does no harm", async () => {
  const served = shared()
  const client = await connectHttp(served, "2025-11-25")
  const body = JSON.stringify({
    jsonrpc: "2.0",
    id: 1,
    method: "tools/call",
    params: { name: "dex_search", arguments: { query: "mutex" } },
  })
  const hangUp = (written: number) =>
    new Promise<void>((resolve) => {
      const sent = request({
        host: "127.0.0.1",
        port: served.port,
        path: "/mcp",
        method: "POST",
        headers: {
          ...JSON_POST,
          authorization: `Bearer ${served.token}`,
          "mcp-session-id": client.session!,
          "content-length": body.length,
        },
      })
      sent.on("error", () => {})
      sent.on("close", () => resolve())
      sent.write(body.slice(0, written), () => setTimeout(() => sent.destroy(), written % 7))
    })
  for (let i = 0; i < 40; i++) await hangUp(i % 2 === 0 ? body.length : 10 + i)
  expect((await client.call("dex_search", { query: "mutex" })).structuredContent?.total).toBe(1)
  expect(served.child.exitCode).toBe(null)
  expect(served.stdout()).toBe("")
  expect(served.stderr()).not.toContain("should not happen")
})
