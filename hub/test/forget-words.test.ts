import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { buffer } from "node:stream/consumers"
import { setTimeout as pause } from "node:timers/promises"
import { describe, expect, onTestFinished, test } from "vitest"
import { openCluster } from "../src/search/opensearch/client.ts"
import { forgetPushed } from "../src/store/push.ts"
import { receiptsOf } from "../src/store/receipts.ts"
import { removeLostDisk } from "../src/store/word-copies.ts"
import { openTenantKey } from "../src/store/word-index.ts"
import { filesWith } from "./support/bytes.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { followAll, newIndexer, putInCluster } from "./support/opensearch.ts"
import { hasPostgres } from "./support/postgres.ts"
import { hubEnv, request, startHub, tokenFor } from "./support/server.ts"
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

  test("stays forgotten if the hub that was writing it is paused for two minutes, and continues when the receipt is closed", async () => {
    const [node] = await startNodes(1)
    const team = await newTeam()
    const tenant = await newTenant(team, "acme")
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, PROJECT, { own: [ann] })
    await putInCluster(team, tenant)
    const held = await holdable(node!.address)
    const env = (address: string) => hubEnv(team, { DEX_HUB_SEARCH_URL: address, DEX_HUB_SEARCH_PREFIX: "t" })
    const first = await startHub(env(held.address))
    const token = await tokenFor(team, ann)
    const search = async (url: string, query: string) => {
      const { body } = await request(url, token, "POST", "/v1/tools/search", { query, by: "message" })
      return (body as { total?: number }).total
    }
    const push = (id: string, ...texts: string[]) => {
      const messages = texts.map((text, i) => saying(i + 1, text))
      return pushOne(team, ann, { project: PROJECT, head: headNamed(id, messages), messages })
    }
    await push("other", "a wombat")
    await push("secret", "a quokka")
    await expect.poll(() => team.asOwner("select in_files from hub.word_index")).toEqual([{ in_files: false }])
    expect(await search(first.url, "quokka")).toBe(1)
    const key = await openTenantKey(team.db, tenant)
    const cluster = openCluster({ addresses: [node!.address], prefix: "t", shards: 1 })
    onTestFinished(() => cluster.close())
    const onDisk = async () => {
      await cluster.ask({ method: "POST", path: "/t-*/_flush", query: { force: true } })
      return [node!.data, node!.logs].flatMap((folder) => filesWith(folder, key.word("quokka")))
    }
    expect(await onDisk()).not.toEqual([])
    const second = await startHub(env(node!.address))

    const late = held.hold()
    await push("secret", "a quokka", "one more quokka")
    await late.sent
    first.child.kill("SIGSTOP")
    const pausedAt = Date.now()
    const { body } = await request(second.url, token, "DELETE", "/v1/conversations/claude_code/secret")
    expect(body).toMatchObject({ forgotten: 1 })
    await expect
      .poll(async () => (await receiptsOf(team.db, ann))[0], { timeout: 400_000, interval: 500 })
      .toMatchObject({ words_gone_at: expect.any(String) })
    expect(await onDisk()).toEqual([])
    await pause(Math.max(0, pausedAt + 120_000 - Date.now()))

    const { items } = JSON.parse(await late.release()) as { items: Record<string, { status: number }>[] }
    const statuses = items.flatMap((item) => Object.values(item).map(({ status }) => status))
    expect([...new Set(statuses)]).toEqual([404])
    first.child.kill("SIGCONT")
    await push("later", "a wombat")
    for (const { url } of [first, second]) await expect.poll(() => search(url, "wombat")).toBe(2)
    for (const { url } of [first, second]) expect(await search(url, "quokka")).toBe(0)
    await cluster.ask({ method: "POST", path: "/t-*/_refresh" })
    // Two messages, and the position.
    expect(await cluster.ask({ method: "GET", path: "/t-*/_count" })).toMatchObject({ count: 3 })
    expect(await onDisk()).toEqual([])
  }, 900_000)
})

/** A proxy that can hold the next request with words until it is released, whoever still waits for the answer. */
async function holdable(target: string) {
  let holding: { sent: PromiseWithResolvers<void>; released: PromiseWithResolvers<void> } | undefined
  let answered: PromiseWithResolvers<string> | undefined
  const server = createServer(async (incoming, outgoing) => {
    const sent = await buffer(incoming)
    const mine = sent.includes('"words"') && incoming.url!.includes("_bulk") ? holding : undefined
    if (mine) {
      holding = undefined
      mine.sent.resolve()
      await mine.released.promise
    }
    const headers = { "content-type": incoming.headers["content-type"] ?? "application/json" }
    const hasBody = incoming.method !== "GET" && incoming.method !== "HEAD"
    const answer = await fetch(target + incoming.url, {
      method: incoming.method!,
      headers,
      ...(hasBody && { body: sent as Uint8Array<ArrayBuffer> }),
    })
    const received = Buffer.from(await answer.arrayBuffer())
    if (mine) answered?.resolve(received.toString("utf8"))
    outgoing.on("error", () => {})
    outgoing.writeHead(answer.status, { "content-type": answer.headers.get("content-type") ?? "application/json" })
    outgoing.end(received)
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => void server.close())
  return {
    address: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hold: () => {
      const mine = { sent: Promise.withResolvers<void>(), released: Promise.withResolvers<void>() }
      holding = mine
      answered = Promise.withResolvers<string>()
      const { promise } = answered
      return {
        sent: mine.sent.promise,
        /** Returns the answer. */
        release: () => {
          mine.released.resolve()
          return promise
        },
      }
    },
  }
}
