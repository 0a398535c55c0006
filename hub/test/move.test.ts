import { existsSync } from "node:fs"
import { describe, expect, test } from "vitest"
import { shardFolder } from "../src/shards/files.ts"
import type { AuditLine } from "../src/store/audit.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { asOperator, type FoundByNode, nodeEnv, searchAt, startNode } from "./support/nodes.ts"
import { hasPostgres } from "./support/postgres.ts"
import { pushOver } from "./support/push-over.ts"
import { whoLeft } from "./support/queue.ts"
import { hubEnv, startHub, tokenFor } from "./support/server.ts"
import { API } from "./support/share.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const MAX_MS = 300_000
const SOON = { interval: 200 }

type Listed = { tenant: string; shard: number; node: string; moving_to: string | null }
const listed = async (env: Record<string, string>): Promise<Listed[]> =>
  (await asOperator(env, ["shard", "list"]))
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Listed)

describe.skipIf(!hasPostgres)("dex-hub shard move", () => {
  test("loses nothing while people push and search, and every answer is complete", {
    timeout: MAX_MS,
  }, async () => {
    const team = await newTeam()
    const tenant = await newTenant(team, "acme")
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, API, { own: [ann] })
    const token = await tokenFor(team, ann)
    const main = await startNode(team, "main")
    const taken: string[] = []
    const answers: (FoundByNode & { least: number })[] = []
    let isWorking = true
    /** The number of results before the move. Everyone finds at least as many from then on. */
    let floor = 0
    const pusher = async (n: number) => {
      for (let round = 0; isWorking; round++) {
        const messages = [saying(1, `wombat of ${n} in round ${round}`)]
        await pushOver({ url: () => main.url, token }, headNamed(`p${n}-${round}`, messages), messages)
        taken.push(`p${n}-${round}`)
      }
    }
    const searcher = async (at: { url: string }) => {
      while (isWorking) {
        const least = floor
        answers.push({ ...(await searchAt(at, token, { query: "wombat", limit: 3 })), least })
      }
    }
    const placed = () => team.asOwner("select node, moving_to from hub.shard")
    const pushing = [pusher(0), pusher(1)]
    const found = (at: { url: string }) =>
      searchAt(at, token, { query: "wombat" }).then(
        ({ total }) => total,
        () => 0,
      )
    await expect.poll(() => found(main), SOON).toBeGreaterThan(5)
    const two = await startNode(team, "two")
    const work = Promise.all([...pushing, searcher(main), searcher(two)])
    await expect.poll(() => answers.length, SOON).toBeGreaterThan(20)
    floor = await found(main)
    expect(await asOperator(main.env, ["shard", "move", "acme/0", "two"])).toContain("Until then, main answers")
    await expect.poll(placed, SOON).toEqual([{ node: "two", moving_to: null }])
    expect(await listed(main.env)).toMatchObject([{ tenant: "acme", shard: 0, node: "two", moving_to: null }])
    const before = answers.length
    await expect.poll(() => answers.length, SOON).toBeGreaterThan(before + 20)
    // Its file is removed from the old node while people keep working.
    await expect.poll(() => existsSync(shardFolder(main.env.DEX_HUB_DATA!, { tenant, shard: 0 })), SOON).toBe(false)
    isWorking = false
    await work
    expect(answers.filter(({ shards }) => shards)).toEqual([])
    expect(answers.filter(({ total, least }) => total < least)).toEqual([])
    expect(answers.at(-1)!.least).toBeGreaterThan(5)
    for (const node of [main, two]) await expect.poll(() => found(node), SOON).toBe(taken.length)
    const names = async (at: { url: string }) => {
      const { results } = await searchAt(at, token, { query: "wombat", limit: 100 })
      return results.map(({ id }) => id)
    }
    expect(await names(main)).toEqual(await names(two))

    // And back, while nobody works: open handles of the deleted file are not used again.
    await asOperator(two.env, ["shard", "move", "acme/0", "main"])
    await expect.poll(placed, SOON).toEqual([{ node: "main", moving_to: null }])
    await two.kill()
    expect(await found(main)).toBe(taken.length)
    for (const { log } of [main, two]) expect(log.join()).not.toContain('"error"')
  })

  test("is recorded in the audit log of the shard's tenant, and so is a cancelled move", async () => {
    const team = await newTeam()
    await newTenant(team, "acme")
    await newTenant(team, "other")
    await team.asOwner("insert into hub.node (name, url) values ('main', 'http://main'), ('two', 'http://two')")
    await team.asOwner("update hub.shard set node = 'main'")
    const env = hubEnv(team)
    const move = (node: string, code = 0) => asOperator(env, ["shard", "move", "acme/0", node], code)
    const moves = async (tenant: string) =>
      (await asOperator(env, ["audit", "--tenant", tenant]))
        .split("\n")
        .filter((line) => line.includes('"shard_move"'))
        .map((line) => JSON.parse(line) as AuditLine)
    // The shard is already there, so nothing changes; refused moves are not recorded either.
    await move("main")
    await move("three", 1)
    expect(await moves("acme")).toEqual([])
    await move("two")
    await move("main")
    const line = { at: expect.any(String), member: null, action: "shard_move", target: "acme/0" }
    expect(await moves("acme")).toEqual([
      { ...line, detail: { from: "main", to: "two" } },
      { ...line, detail: { from: "main", to: "main" } },
    ])
    expect(await moves("other")).toEqual([])
  })

  test("the node that has the shard answers who wrote a line; one that dies meanwhile changes nothing", {
    timeout: MAX_MS,
  }, async () => {
    const { team, tenant, bob } = await whoLeft()
    const blame = async () => {
      const { code, stdout, stderr } = await bob.run(["blame", "src/queue.ts:3", "--team"])
      return code === 0 ? stdout : stderr
    }
    await expect.poll(blame, SOON).toMatch(/^ {2}ann\/claude_code:11111111#/)
    const before = await blame()
    const env = await nodeEnv(team, "two")
    const shard = `${tenant}/0`
    expect(await asOperator(env, ["shard", "move", shard, "two"], 1)).toContain("There is no node")
    const { kill } = await startHub(env)
    await expect.poll(() => team.asOwner("select from hub.node where name = 'two'"), SOON).toHaveLength(1)
    await kill()
    await asOperator(env, ["shard", "move", shard, "two"])
    expect(await listed(env)).toMatchObject([{ node: "main", moving_to: "two" }])
    expect(await blame()).toBe(before)
    await team.asOwner("update hub.node set seen_at = now() - interval '5 minutes' where name = 'two'")
    expect(await asOperator(hubEnv(team), ["check"], 1)).toMatch(
      new RegExp(`PROBLEM {2}Shard ${shard} moves to two, which was last seen 3\\d\\d seconds ago; main still answers`),
    )
    expect(await asOperator(env, ["shard", "move", shard, "two"], 1)).toContain("was last seen")
    // The move can be cancelled, and the node continues when it runs again.
    expect(await asOperator(env, ["shard", "move", shard, "main"])).toContain("stays on main")
    expect(await listed(env)).toMatchObject([{ node: "main", moving_to: null }])
    const again = await startHub(env)
    await expect
      .poll(() => asOperator(env, ["shard", "move", shard, "two"]).catch(String), SOON)
      .toContain("will build")
    await expect
      .poll(() => team.asOwner("select node, moving_to from hub.shard"), SOON)
      .toEqual([{ node: "two", moving_to: null }])
    expect(await blame()).toBe(before)
    await again.kill()
    expect(await blame()).toContain("does not answer")
    await startHub(env)
    await expect.poll(blame, SOON).toBe(before)
  })
})
