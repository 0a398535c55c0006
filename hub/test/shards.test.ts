import { existsSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { readIndex } from "../../src/store/index/search-index.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/shards/answer.ts"
import { shardFile } from "../src/shards/files.ts"
import { createFollower } from "../src/shards/follow.ts"
import type { Viewer } from "../src/store/connection.ts"
import { consentTo } from "../src/store/projects.ts"
import { forgetPushed } from "../src/store/push.ts"
import { hasPostgres } from "./support/postgres.ts"
import { share } from "./support/share.ts"
import { newMember, newTeam, newTenant } from "./support/team.ts"

const [API, WEB, DOC] = ["git.test/acme/api", "git.test/acme/web", "git.test/acme/doc"]

type Found = {
  results: { id: string; score_final: number }[]
  total: number
  conversations?: number
  shards?: { searched: number; of: number }
  notes: string[]
}

describe.skipIf(!hasPostgres)("several shards of a tenant", () => {
  /** Shards with room for this many messages before the next project is put into a new one. */
  async function tenantWith(shardMessages: number) {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    const data = tempDir()
    const follower = createFollower(team.db, data)
    const answers = createAnswers({ db: team.db, data, folder: tempDir(), version: "0" })
    onTestFinished(() => {
      answers.close()
      follower.close()
    })
    const put = async (project: string, id: string, texts: string[], by = ann) => {
      await consentTo(team.db, by, project, ["said"], shardMessages)
      await share(team, by, id, texts, { project })
    }
    const search = async (input: object, viewer: Viewer = ann) => {
      while (!(await follower.step()));
      const answer = await answers.answer({ viewer, tool: "search", input })
      if ("problem" in answer) throw new Error(answer.problem.message)
      return answer.output as Found
    }
    const shardOf = async (key: string) =>
      (await team.asOwner<{ shard: number }>("select shard from hub.project where key = $1", [key]))[0]?.shard
    /** How many messages in each shard's own file contain this, regardless of who may read them. */
    const inFiles = (shards: number[], words: string) =>
      Promise.all(
        shards.map(async (shard) => {
          const index = readIndex(shardFile(data, { tenant, shard }))
          if (typeof index === "string") return index
          const { total } = await index.count({ match: [{ words }] })
          index.close()
          return total
        }),
      )
    return { team, tenant, ann, data, follower, put, search, shardOf, inFiles }
  }

  test("a project goes to the newest shard while it has room, and then to a new one", async () => {
    const { put, shardOf, data, tenant, follower } = await tenantWith(2)
    await put(API, "a", ["one", "two"])
    await put(WEB, "b", ["one"])
    await put(DOC, "c", ["one"])
    expect([await shardOf(API), await shardOf(WEB), await shardOf(DOC)]).toEqual([0, 1, 1])
    // A project stays in its shard, regardless of how much is added.
    await put(API, "d", ["one", "two", "three"])
    expect(await shardOf(API)).toBe(0)
    while (!(await follower.step()));
    expect(follower.lags()).toEqual([
      { tenant, shard: 0, lag: 0 },
      { tenant, shard: 1, lag: 0 },
    ])
    for (const folder of [`tenant-${tenant}`, `tenant-${tenant}-shard-1`])
      expect(existsSync(join(data, folder, "index.db"))).toBe(true)
  })

  test("results from all of them are found once, best first, and the totals cover all", async () => {
    const { put, search, inFiles } = await tenantWith(1)
    await put(API, "a", ["a quokka sleeps"])
    await put(WEB, "b", ["a quokka sleeps and another quokka watches the quokka"])
    await put(DOC, "c", ["nothing of the kind", "but at the end: a quokka"])
    const found = await search({ query: "quokka" })
    expect(found.results.map(({ id }) => id).sort()).toEqual(["a", "b", "c"].map((id) => `ann/claude_code:${id}`))
    const scores = found.results.map((one) => one.score_final)
    expect(scores).toEqual(scores.toSorted((a, b) => b - a))
    expect(found).toMatchObject({ total: 3, conversations: 3 })
    expect(found.shards).toBeUndefined()
    expect(await inFiles([0, 1, 2], "quokka")).toEqual([1, 1, 1])
    expect((await search({ query: "quokka", by: "message" })).results).toHaveLength(3)
    // A page continues where the previous one ended.
    const pages = [await search({ query: "quokka", limit: 2 }), await search({ query: "quokka", limit: 2, offset: 2 })]
    expect(pages.flatMap(({ results }) => results.map(({ id }) => id))).toEqual(found.results.map(({ id }) => id))
    // A word that is in only one of them, and one that is mistyped.
    expect((await search({ query: "watches" })).results).toHaveLength(1)
    expect((await search({ query: "quokak" })).results).toHaveLength(3)
  })

  test("a question that names a project goes to its shard; the others need not exist", async () => {
    const { team, tenant, put, search } = await tenantWith(1)
    await put(API, "a", ["a quokka sleeps"])
    await put(WEB, "b", ["another quokka sleeps"])
    await search({ query: "quokka" })
    // A shard that no node has built.
    await team.asOwner("insert into hub.shard (tenant, id, node) values ($1, 2, 'away')", [tenant])
    await put(DOC, "c", ["a quokka sleeps"])
    expect(await search({ query: "quokka", project: "acme/web" })).toMatchObject({ results: { length: 1 }, total: 1 })
    expect((await search({ query: "quokka project:acme/web" })).shards).toBeUndefined()
    const all = await search({ query: "quokka" })
    expect(all).toMatchObject({ results: { length: 2 }, total: 2, shards: { searched: 2, of: 3 } })
    expect(all.notes).toContainEqual(expect.stringContaining("Searched 2 of 3 shards"))
    // If a filter excludes everything, the note counts all shards.
    const none = await search({ query: "quokka", project: "acme/web", role: "assistant" })
    expect(none.results).toEqual([])
  })

  test("a conversation that moves to another project moves to its shard; what is forgotten leaves both", async () => {
    const { team, ann, put, search, inFiles } = await tenantWith(1)
    await put(API, "a", ["a quokka sleeps"])
    await put(WEB, "b", ["a wombat digs"])
    expect((await search({ query: "quokka", project: "acme/api" })).total).toBe(1)
    await put(WEB, "a", ["a quokka sleeps", "and wakes"])
    expect((await search({ query: "quokka", project: "acme/api" })).total).toBe(0)
    expect(await inFiles([0, 1], "quokka")).toEqual([0, 1])
    expect((await search({ query: "quokka" })).total).toBe(1)
    expect((await search({ query: "quokka", project: "acme/web" })).total).toBe(1)
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "a" }])
    expect((await search({ query: "quokka" })).total).toBe(0)
    expect(await inFiles([0, 1], "quokka")).toEqual([0, 0])
  })

  test("only the shards that have something for the member are asked", async () => {
    const { team, tenant, put, search } = await tenantWith(1)
    const bob = await newMember(team, tenant, "bob")
    await put(API, "a", ["a quokka sleeps"])
    await put(WEB, "b", ["a quokka sleeps"], bob)
    await team.asOwner("update hub.shard set node = 'away' where id = 1")
    expect(await search({ query: "quokka" })).toMatchObject({ results: { length: 1 } })
    expect((await search({ query: "quokka" })).shards).toBeUndefined()
    const cid = await newMember(team, tenant, "cid")
    expect(await search({ query: "quokka" }, cid)).toMatchObject({ results: [], total: 0 })
  })
})
