import { describe, expect, onTestFinished, test } from "vitest"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/search/answer.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { API, share } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

type Found = { results: { id: string; snippet: string }[]; total: number; notes: string[] }

describe.skipIf(!hasPostgres)("a team's history", () => {
  async function hub() {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const [ann, bob, eve] = [
      await newMember(team, tenant, "ann"),
      await newMember(team, tenant, "bob"),
      await newMember(team, tenant, "eve"),
    ]
    await newProject(team, tenant, API, { own: [ann], write: [bob] })
    const server = await startHub(hubEnv(team))
    const tokens = { ann: await tokenFor(team, ann), bob: await tokenFor(team, bob), eve: await tokenFor(team, eve) }
    const ask = async (who: keyof typeof tokens, tool: string, input: object) =>
      (await request(server.url, tokens[who], "POST", `/v1/tools/${tool}`, input)).body as Found
    const search = (who: keyof typeof tokens, query: string) => ask(who, "search", { query })
    /** Waits until the index is up to date. */
    const found = (who: keyof typeof tokens, query: string, total: number) =>
      expect.poll(async () => (await search(who, query)).results?.length).toBe(total)
    return { team, tenant, ann, bob, eve, ...server, tokens, ask, search, found }
  }

  test("can be searched, listed and read by members with access, with the author's name", async () => {
    const { team, ann, ask, search, found } = await hub()
    await share(team, ann, "race", ["why does the refresh token race", "the mutex is released too early"])
    await found("bob", "refresh token race", 1)
    const { results } = await search("bob", "refresh token race")
    expect(results[0]).toMatchObject({ id: "ann/claude_code:race" })
    expect(results[0]!.snippet).toContain("**refresh** **token**")
    expect(JSON.stringify(await ask("bob", "show", { ids: ["ann/claude_code:race"] }))).toContain("released too early")
    expect(JSON.stringify(await ask("bob", "list", {}))).toContain("About race")
    expect(JSON.stringify(await ask("bob", "timeline", { id: "ann/claude_code:race#1" }))).toContain("refresh token")
    // Eve was granted nothing.
    expect(await search("eve", "refresh token race")).toMatchObject({ results: [], total: 0 })
    expect(JSON.stringify(await ask("eve", "show", { ids: ["ann/claude_code:race"] }))).not.toContain("released")
    expect(JSON.stringify(await ask("eve", "list", {}))).not.toContain("About race")
  })

  test("forgotten or private conversations are found by nobody else, and newly granted ones are found at once", async () => {
    const { team, tenant, ann, eve, url, tokens, found, search } = await hub()
    await share(team, ann, "one", ["a zebrafinch sings"])
    await share(team, ann, "two", ["another zebrafinch sings"])
    await found("bob", "zebrafinch", 2)
    await share(team, ann, "two", ["another zebrafinch sings"], { visibility: "private" })
    expect((await search("bob", "zebrafinch")).total).toBe(1)
    expect((await search("eve", "zebrafinch")).total).toBe(0)
    await team.asOwner(
      "insert into hub.project_grant (tenant, project, member, level) select $1, id, $2, 'read' from hub.project",
      [tenant, eve.member],
    )
    expect((await search("eve", "zebrafinch")).total).toBe(1)
    await request(url, tokens.ann, "DELETE", "/v1/conversations/claude_code/one")
    expect((await search("bob", "zebrafinch")).results).toEqual([])
    await found("ann", "zebrafinch", 1)
  })

  test("a search that found nothing finds the conversation once the index has it", async () => {
    const { team, ann, search, found } = await hub()
    await share(team, ann, "one", ["a zebrafinch sings"])
    await found("bob", "zebrafinch", 1)
    await share(team, ann, "two", ["a quokka sleeps"])
    await search("bob", "quokka")
    await found("bob", "quokka", 1)
  })

  test("a search reveals no word of a conversation that the member may not read: no count, correction or completion", async () => {
    const { team, ann, search, found } = await hub()
    await share(team, ann, "secret", ["we will buy quokkatronics next week"], { visibility: "private" })
    await share(team, ann, "open", ["the sidebar flickers"])
    await found("ann", "quokkatronics", 1)
    for (const query of ["quokkatronics", "quokkatronic", "quokkatronisc", "quokka", "quok"]) {
      const answer = JSON.stringify(await search("bob", query))
      expect(answer.replaceAll(query, "")).not.toMatch(/quokkatr/)
      expect(JSON.parse(answer)).toMatchObject({ results: [], total: 0 })
    }
  })

  test("agents ask over MCP with their own token, in one request each", async () => {
    const { team, ann, url, tokens, found } = await hub()
    await share(team, ann, "race", ["why does the refresh token race", "the mutex is released too early"])
    await found("bob", "refresh token race", 1)
    const mcp = async (token: string | undefined, method: string, params: object) => {
      const response = await fetch(`${url}/mcp`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          accept: "application/json, text/event-stream",
          ...(token !== undefined && { authorization: `Bearer ${token}` }),
        },
        body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
      })
      return { status: response.status, text: await response.text() }
    }
    const call = (token: string) =>
      mcp(token, "tools/call", { name: "dex_search", arguments: { query: "refresh token" } })
    expect((await mcp(undefined, "tools/list", {})).status).toBe(401)
    expect((await mcp(tokens.bob, "tools/list", {})).text).toContain("dex_timeline")
    expect((await call(tokens.bob)).text).toContain("ann/claude_code:race")
    expect((await call(tokens.eve)).text).not.toContain("race")
    const other = await mcp(tokens.bob, "tools/call", { name: "dex_note", arguments: {} })
    expect(other.text).toContain("The tools are dex_search")
  })

  test("says that the index is being built, rather than reading everything", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const data = tempDir()
    const answers = createAnswers({ db: team.db, words: openFts5(data), folder: tempDir(), version: "0" })
    const follower = createFollower(team.db, data)
    onTestFinished(() => {
      answers.close()
      follower.close()
    })
    const ask = (tool: string, input: object) => answers.answer({ viewer: ann, tool, input })
    expect(await ask("search", { query: "zebrafinch" })).toMatchObject({ output: { results: [] } })
    await share(team, ann, "one", ["a zebrafinch sings"])
    expect(await ask("search", { query: "zebrafinch" })).toEqual({
      problem: { status: 503, code: "building", message: expect.stringContaining("Try again in a few minutes") },
    })
    expect(await ask("list", {})).toMatchObject({ output: { total: 1 } })
    while (!(await follower.step()));
    expect(await ask("search", { query: "zebrafinch" })).toMatchObject({ output: { total: 1 } })
  })

  test("a hub that cannot build its index is not ready, and says why", async () => {
    const team = await newTeam()
    const ann = await newMember(team, await newTenant(team), "ann")
    await newProject(team, ann.tenant, API, { own: [ann] })
    await share(team, ann, "one", ["a zebrafinch sings"])
    await team.asOwner("revoke select on hub.chunk from dex_hub_index")
    const { url, log } = await startHub(hubEnv(team))
    const ready = async () => {
      const response = await fetch(`${url}/readyz`)
      return [response.status, await response.text()]
    }
    const why = "This hub is building its search index. Use another one until it has.\n"
    // The indexer has tried and failed.
    await expect.poll(() => log.join()).toContain('"event":"follow"')
    expect(await ready()).toEqual([503, why])
    await team.asOwner("grant select on hub.chunk to dex_hub_index")
    await expect.poll(ready).toEqual([200, "ready\n"])
    const token = await tokenFor(team, ann)
    const found = await request(url, token, "POST", "/v1/tools/search", { query: "zebrafinch" })
    expect(found.body).toMatchObject({ total: 1 })
  })

  test("invalid questions are refused with the reason", async () => {
    const { url, tokens } = await hub()
    const status = async (tool: string, input: unknown) =>
      (await request(url, tokens.ann, "POST", `/v1/tools/${tool}`, input)).status
    expect(await status("forget", { ids: ["x"] })).toBe(404)
    expect(await status("search", { query: 5 })).toBe(400)
    expect(await status("search", {})).toBe(400)
    expect(await status("search", { query: "x" })).toBe(200)
  })
})
