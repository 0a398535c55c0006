import { Hono } from "hono"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { DEX, dex } from "../../test/support/dex.ts"
import { tempDir } from "../../test/support/temp.ts"
import { serveApp } from "../src/http/serve.ts"
import { createAnswers } from "../src/shards/answer.ts"
import { createFollower } from "../src/shards/follow.ts"
import { ShardUnavailableError } from "../src/shards/merged.ts"
import { type CallNode, createNodeCaller } from "../src/shards/node-call.ts"
import type { ShardQuestion } from "../src/shards/remote.ts"
import { type FoundByNode, searchAt, startNode } from "./support/nodes.ts"
import { hasPostgres } from "./support/postgres.ts"
import { request, startHub, tokenFor } from "./support/server.ts"
import { share } from "./support/share.ts"
import { inShard, newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const [API, WEB] = ["git.test/acme/api", "git.test/acme/web"]
const MAX_MS = 300_000
const SOON = { interval: 200 }

describe.skipIf(!hasPostgres)("several nodes", () => {
  /** Ann has a conversation in each of two shards, and bob has one of his own. */
  async function twoShards() {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob] = [await newMember(team, tenant, "ann"), await newMember(team, tenant, "bob")]
    await newProject(team, tenant, API, { own: [ann] })
    await newProject(team, tenant, WEB, { own: [ann], write: [bob] })
    await inShard(team, tenant, 1, [WEB])
    await share(team, ann, "a", ["a quokka sleeps", "it sleeps under a eucalyptus"], { project: API })
    await share(team, ann, "b", ["another quokka digs", "the quokka is awake"], { project: WEB })
    await share(team, bob, "c", ["a private quokka"], { project: WEB, visibility: "private" })
    const give = (shard: number, node: string) =>
      team.asOwner("update hub.shard set node = $2 where id = $1", [shard, node])
    return { team, tenant, ann, token: await tokenFor(team, ann), bob: await tokenFor(team, bob), give }
  }
  const QUESTIONS = [
    { query: "quokka" },
    { query: "quokka", by: "message" },
    { query: "quokka awake", project: "acme/web" },
    { query: "eucalyptus OR digs" },
    { query: "quokak" },
    { query: "quokka", role: "assistant" },
  ]

  test("any node answers any question as a single node would, and keeps working without the other", {
    timeout: MAX_MS,
  }, async () => {
    const { team, token, bob, give } = await twoShards()
    const main = await startNode(team, "main")
    const answersAt = async (at: { url: string }) => {
      const answers: unknown[] = []
      for (const input of QUESTIONS)
        for (const who of [token, bob]) answers.push(await searchAt(at, who, input).then(comparable))
      return answers
    }
    const isWhole = (at: { url: string }) =>
      expect.poll(() => searchAt(at, token, { query: "quokka" }).catch(String), SOON).toMatchObject({ total: 3 })
    await isWhole(main)
    const alone = await answersAt(main)
    const two = await startNode(team, "two")
    await give(1, "two")
    await isWhole(main)
    await isWhole(two)
    expect(await answersAt(main)).toEqual(alone)
    expect(await answersAt(two)).toEqual(alone)
    expect(JSON.stringify(await searchAt(main, token, { query: "private" }))).not.toContain("claude_code:c")

    const answers: FoundByNode[] = []
    let isAsking = true
    const asking = [1, 2, 3].map(async () => {
      while (isAsking) answers.push(await searchAt(main, token, { query: "quokka" }))
    })
    await expect.poll(() => answers.length, SOON).toBeGreaterThan(10)
    await two.kill()
    await expect.poll(() => answers.filter(({ shards }) => shards).length, SOON).toBeGreaterThan(10)
    expect(await searchAt(main, token, { query: "quokka" })).toMatchObject({
      total: 1,
      shards: { searched: 1, of: 2 },
      notes: expect.arrayContaining([expect.stringContaining("Searched 1 of 2 shards")]),
    })
    // A question about what the living node has misses nothing.
    expect((await searchAt(main, token, { query: "quokka", project: "acme/api" })).shards).toBeUndefined()
    // A question about what only the dead node has says that nothing was searched.
    const web = { query: "quokka", project: "acme/web" }
    expect((await request(main.url, token, "POST", "/v1/tools/search", web)).status).toBe(503)
    const again = await startHub(two.env)
    await isWhole(main)
    await isWhole(again)
    isAsking = false
    await Promise.all(asking)
    // Each answer was complete, or said that it was not.
    expect(answers.filter(({ total, shards }) => total !== 3 && !shards)).toEqual([])
    expect(await answersAt(main)).toEqual(alone)
    expect(await answersAt(again)).toEqual(alone)
    expect(main.log.join()).not.toContain('"error"')
  })

  test("people and agents never read that nothing was found if nothing was searched", {
    timeout: MAX_MS,
  }, async () => {
    const { team, token, give } = await twoShards()
    const main = await startNode(team, "main")
    const two = await startNode(team, "two")
    await give(0, "two")
    await give(1, "two")
    const ask = (tool: string, input: object) => request(main.url, token, "POST", `/v1/tools/${tool}`, input)
    await expect.poll(() => searchAt(main, token, { query: "quokka" }).catch(String), SOON).toMatchObject({ total: 3 })
    await two.kill()
    const passages = { query: "quokka", by: "message", limit: 5, offset: 0 }
    for (const [tool, input] of [
      ["search", { query: "quokka" }],
      ["passages", passages],
    ] as const) {
      const { status, headers, body } = await ask(tool, input)
      expect([tool, status]).toEqual([tool, 503])
      expect(Number(headers.get("retry-after"))).toBeGreaterThan(0)
      expect(body).toMatchObject({
        error: { code: "node_missing", message: expect.stringContaining("The search did not take place") },
      })
    }
    const call = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "dex_search", arguments: { query: "quokka" } },
    }
    const answer = await fetch(`${main.url}/mcp`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify(call),
    })
    const output = await answer.text()
    expect(output).toContain("The search did not take place")
    expect(output).toMatch(/"isError":\s*true/)
    expect(output).not.toMatch(/nothing (was )?found|no results/i)
    const home = tempDir()
    await dex(home, ["hub", "login", main.url, "--token-stdin"], {}, DEX, token)
    const typed = await dex(home, ["search", "quokka", "--team"])
    expect(typed.code).not.toBe(0)
    expect(typed.stderr).toContain("The search did not take place")
    const again = await startHub(two.env)
    await expect.poll(() => searchAt(again, token, { query: "quokka" }).catch(String), SOON).toMatchObject({ total: 3 })
  })

  test("a node that hangs is left out, and asked again once it continues", { timeout: MAX_MS }, async () => {
    const { team, token, give } = await twoShards()
    const main = await startNode(team, "main")
    const two = await startNode(team, "two")
    await give(0, "main")
    await give(1, "two")
    const found = () => searchAt(main, token, { query: "quokka" }).catch(String)
    await expect.poll(found, SOON).toMatchObject({ total: 3 })
    two.child.kill("SIGSTOP")
    await expect.poll(found, SOON).toMatchObject({ total: 1, shards: { searched: 1, of: 2 } })
    two.child.kill("SIGCONT")
    await expect.poll(found, SOON).toMatchObject({ total: 3 })
  })

  test("dex ask says that a shard did not answer", { timeout: MAX_MS }, async () => {
    const { team, token, give } = await twoShards()
    const main = await startNode(team, "main")
    const two = await startNode(team, "two")
    await give(0, "main")
    await give(1, "two")
    await expect.poll(() => searchAt(main, token, { query: "quokka" }).catch(String), SOON).toMatchObject({ total: 3 })
    const home = tempDir()
    expect(await dex(home, ["hub", "login", main.url, "--token-stdin"], {}, DEX, token)).toMatchObject({ code: 0 })
    const ask = async () => JSON.parse((await dex(home, ["ask", "where does it sleep", "--team", "--json"])).stdout)
    expect((await ask()).note ?? "").not.toContain("shards")
    await two.kill()
    expect((await ask()).note).toContain("Searched 1 of 2 shards; the others did not answer.")
  })

  test("the second wall works if another node forgets the first", async () => {
    const { team, ann, give } = await twoShards()
    await give(0, "two")
    await give(1, "two")
    const [data, folder] = [tempDir(), tempDir()]
    const follower = createFollower(team.db, data, { name: "two" })
    while (!(await follower.step()));
    const parts = { db: team.db, data, folder, version: "0" }
    const far = createAnswers(parts)
    const rows = await team.asOwner<{ id: string }>("select id::text from hub.conversation")
    const names = rows.map(({ id }) => id)
    const answersOf = async (isForgotten: boolean) => {
      const call: CallNode = async (_node, _route, question) => {
        const sent = JSON.parse(JSON.stringify(question)) as ShardQuestion
        const scope = { ...sent.scope, by: "all", names }
        return far.answerShard(isForgotten ? { ...sent, scope } : sent)
      }
      const near = createAnswers({ ...parts, data: tempDir(), others: { self: "main", call } })
      onTestFinished(near.close)
      return near.answer({ viewer: ann, tool: "search", input: { query: "quokka" } })
    }
    onTestFinished(() => {
      far.close()
      follower.close()
    })
    const right = await answersOf(false)
    expect(right).toMatchObject({ drops: 0, output: { results: { length: 2 }, total: 3 } })
    const wrong = await answersOf(true)
    expect(wrong).toMatchObject({ drops: 1, output: { results: { length: 2 } } })
    expect(JSON.stringify(wrong)).not.toContain("private quokka")
  })

  test("only nodes can use the routes between nodes", { timeout: MAX_MS }, async () => {
    const { team, tenant, ann, token } = await twoShards()
    const two = await startNode(team, "two")
    await expect.poll(() => searchAt(two, token, { query: "quokka" }).catch(String), SOON).toMatchObject({ total: 3 })
    const scope = { by: "test", member: ann.member, version: 1 }
    const count = { tenant, shard: 0, method: "count", args: [{ match: [{ words: "quokka" }] }], scope }
    const address = { name: "two", url: two.url }
    const ask = (key: Buffer, to = address, question: object = count) =>
      createNodeCaller(key)(to, "index", question, 10_000)
    // The first wall's names are required, and only these conversations are in the answer.
    expect(await ask(team.masterKey)).toEqual({ missing: "scope" })
    expect(await ask(team.masterKey, address, { ...count, scope: { ...scope, names: [] } })).toEqual({
      answer: { total: 0, total_is_at_least: false },
    })
    await expect(ask(Buffer.alloc(32))).rejects.toThrow(ShardUnavailableError)
    await expect(ask(team.masterKey, { ...address, name: "main" })).rejects.toThrow(ShardUnavailableError)
    for (const path of ["/internal/index", "/internal/lines"])
      for (const who of [token, undefined]) expect((await request(two.url, who, "POST", path, count)).status).toBe(401)
    const now = Date.now()
    const clock = vi.spyOn(Date, "now").mockImplementation(() => now - 120_000)
    const late = ask(team.masterKey)
    clock.mockRestore()
    await expect(late).rejects.toThrow(ShardUnavailableError)
    // Signed for another request.
    let headers: Record<string, string> = {}
    const listener = new Hono().post("/internal/index", (c) => {
      headers = c.req.header()
      return c.json({})
    })
    const serving = await serveApp(listener, { host: "127.0.0.1", port: 0 })
    onTestFinished(async () => void (await serving.close()))
    await ask(team.masterKey, { name: "two", url: `http://127.0.0.1:${serving.port}` })
    const replay = async (path: string, question: object) => {
      const { "content-length": _, host: __, connection: ___, ...signed } = headers
      const body = JSON.stringify(question)
      return (await fetch(two.url + path, { method: "POST", headers: signed, body })).status
    }
    expect(await replay("/internal/index", { ...count, shard: 1 })).toBe(401)
    expect(await replay("/internal/lines", count)).toBe(401)
    expect(await replay("/internal/index", count)).toBe(200)
  })
})

/** Everything that does not differ between two runs. */
function comparable({ results, total, shards, notes }: FoundByNode) {
  return { results, total, shards, notes }
}
