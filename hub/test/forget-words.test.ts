import { describe, expect, test } from "vitest"
import { openCluster } from "../src/search/opensearch/client.ts"
import { forgetPushed } from "../src/store/push.ts"
import { receiptsOf } from "../src/store/receipts.ts"
import { removeLostDisk } from "../src/store/word-copies.ts"
import { openTenantKey } from "../src/store/word-index.ts"
import { filesWith } from "./support/bytes.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { followAll, newIndexer, putInCluster } from "./support/opensearch.ts"
import { hasPostgres } from "./support/postgres.ts"
import { startNodes } from "./support/start-opensearch.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

const PROJECT = "git.test/acme/api"

describe.skipIf(!hasPostgres)("what is forgotten", () => {
  test("leaves the disks of all nodes, and the receipt waits for one that is away", async () => {
    const nodes = await startNodes(3)
    const team = await newTeam()
    const tenant = await newTenant(team, "acme")
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, PROJECT, { own: [ann] })
    await putInCluster(team, tenant)
    const cluster = openCluster({ addresses: nodes.map(({ address }) => address), prefix: "t", shards: 1 })
    const indexer = newIndexer(team.db, cluster)
    const push = (id: string, text: string) => {
      const messages = [saying(1, text), saying(2, "ok", { role: "assistant" })]
      return pushOne(team, ann, { project: PROJECT, head: headNamed(id, messages), messages })
    }
    for (let i = 0; i < 20; i++) await push(`other${i}`, `a wombat ${i}`)
    await push("secret", "a quokka")
    await followAll(indexer)
    const key = await openTenantKey(team.db, tenant)
    const withWord = () =>
      nodes.filter(({ data }) => filesWith(data, key.word("quokka")).length > 0).map(({ name }) => name)
    const health = { method: "GET" as const, path: "/_cluster/health/t-*", query: { wait_for_status: "green" } }
    await cluster.ask(health)
    await expect.poll(withWord).toHaveLength(2)
    const copies = await team.asOwner<{ name: string }>("select name from hub.word_copy order by name")
    expect(copies.map(({ name }) => name)).toEqual(withWord())

    const away = nodes.find(({ name }) => name === withWord()[0])!
    away.kill()
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "secret" }])
    const receipt = async () => (await receiptsOf(team.db, ann))[0]!
    expect((await receipt()).words_wait_for).toContain(away.name)
    const work = async () => {
      await indexer.step().catch(() => false) // while the cluster finds out who is away
      return receipt()
    }
    await expect.poll(async () => (await work(), indexer.lags()[0]?.lag)).toBe(0)
    expect((await receipt()).words_gone_at).toBeUndefined()
    expect(filesWith(away.data, key.word("quokka")).length).toBeGreaterThan(0)
    await away.start()
    await expect.poll(work, { timeout: 500_000, interval: 300 }).toMatchObject({ words_gone_at: expect.any(String) })
    expect(withWord()).toEqual([])
    expect((await receipt()).words_wait_for).toBeUndefined()

    const [{ name: lost }] = (await team.asOwner("select name from hub.word_copy limit 1")) as [{ name: string }]
    expect(await removeLostDisk(team.asOwner, tenant, lost)).toBe(true)
  }, 600_000)
})
