import { setTimeout as pause } from "node:timers/promises"
import { describe, expect, test } from "vitest"
import { generator } from "../../bench/corpus.ts"
import { type HubClient, isHubError, openHub } from "../../src/hub-client/client.ts"
import { chunksOf, pushDigest } from "../../src/hub-client/wire.ts"
import { indexWordsInOrder } from "../../src/store/index/tokenizer.ts"
import { batchedSearch, type Cluster, ClusterUnavailable, openCluster } from "../src/search/opensearch/client.ts"
import { hashedBeginning } from "../src/search/opensearch/document.ts"
import { differingConversations } from "../src/search/opensearch/indexer.ts"
import { openTenantHistory } from "../src/store/history.ts"
import type { TenantKey } from "../src/store/keyring.ts"
import { openTenantKey } from "../src/store/word-index.ts"
import { filesWith } from "./support/bytes.ts"
import { headNamed, saying } from "./support/laptop.ts"
import { followAll, newIndexer, putInCluster } from "./support/opensearch.ts"
import { hasPostgres, openTest, run, testServer } from "./support/postgres.ts"
import { startProxy } from "./support/proxy.ts"
import { hubEnv, startHub, type TestHub, tokenFor } from "./support/server.ts"
import { startNodes } from "./support/start-opensearch.ts"
import { newMember, newProject, newTeam, newTenant } from "./support/team.ts"

// Whatever fails of three nodes of OpenSearch, two hubs and PostgreSQL while people push, search and forget: nothing that was
// acknowledged is lost or there twice, no search is silently incomplete, and the index equals one that is built anew.

const FAULTS = Number(process.env.DEX_FAULTS ?? 3)
const SEED = Number(process.env.DEX_SEED ?? 1)
/** How long processes are paused; by default one to six seconds. */
const PAUSE_SECONDS = Number(process.env.DEX_PAUSE_SECONDS ?? 0)
const PROJECT = "git.test/acme/api"
const PREFIX = "t"
const PUSHERS = 3
const SEARCHERS = 2
/** The messages of a group are found by one search. */
const GROUP_SIZE = 30
/** So that a node that is silent is noticed soon. OpenSearch waits for 10 seconds, three times. */
const IMPATIENT = {
  "cluster.fault_detection.leader_check.timeout": "2s",
  "cluster.fault_detection.leader_check.retry_count": "2",
  "cluster.fault_detection.follower_check.timeout": "2s",
  "cluster.fault_detection.follower_check.retry_count": "2",
  "cluster.publish.timeout": "10s",
}

/** What was pushed of a conversation. All its messages contain the word of its group. */
type Pushed = {
  id: string
  group: string
  messages: number
  acknowledged: number
  forgetAt?: number
  forgottenAt?: number
}
type Found = { results: { id: string; message_index: number }[]; total: number }
type Outcome = { answered: number; unavailable: number; others: string[] }

async function world() {
  const server = await testServer()
  const transports: Awaited<ReturnType<typeof startProxy>>[] = []
  const nodes = await startNodes(
    3,
    async (port) => {
      const proxy = await startProxy(port)
      transports.push(proxy)
      return proxy.port
    },
    IMPATIENT,
  )
  const team = await newTeam()
  const tenant = await newTenant(team, "acme")
  const ann = await newMember(team, tenant, "ann")
  await newProject(team, tenant, PROJECT, { own: [ann] })
  await putInCluster(team, tenant)
  const proxies = await Promise.all(nodes.map(({ address }) => startProxy(Number(new URL(address).port))))
  const env = hubEnv(team, {
    DEX_HUB_SEARCH_URL: proxies.map(({ port }) => `http://127.0.0.1:${port}`).join(),
    DEX_HUB_SEARCH_PREFIX: PREFIX,
    DEX_HUB_KEYS_URL: team.keys,
  })
  const hubs: TestHub[] = []
  const envs: Record<string, string>[] = []
  for (let i = 0; i < 2; i++) {
    const hub = await startHub(env)
    hubs.push(hub)
    envs.push({ ...env, DEX_HUB_PORT: new URL(hub.url).port })
  }
  const front = await startProxy(...hubs.map(({ url }) => Number(new URL(url).port)))
  const token = await tokenFor(team, ann)
  const client = (maxTries = 4) => openHub({ address: `http://127.0.0.1:${front.port}`, token, maxTries })
  const direct = () => openCluster({ addresses: nodes.map(({ address }) => address), prefix: PREFIX, shards: 1 })
  const sql = <Row extends object>(text: string, values: unknown[] = []) => run<Row>(team.owner, text, values)
  const key = await openTenantKey(team.db, tenant)
  return { server, transports, nodes, team, tenant, ann, proxies, hubs, envs, token, client, direct, sql, key }
}
type World = Awaited<ReturnType<typeof world>>

/** Pushes like a laptop, from the beginning each time. */
async function push(hub: HubClient, { id, group, messages }: Pushed): Promise<void> {
  const texts = Array.from({ length: messages }, (_, i) => `${group} ${wordOf(id)} part ${i + 1}`)
  const all = texts.map((text, i) => saying(i + 1, text, { at: Date.parse("2026-10-02T10:00:00Z") + i }))
  const head = headNamed(id, all)
  const chunks = [...chunksOf(all)]
  const hashes = chunks.map(({ hash }) => hash)
  const digest = pushDigest(head, "project", hashes)
  const { source } = head
  const [plan] = await hub.plan({ project: PROJECT, conversations: [{ source, id, digest, chunks: hashes }] })
  if (plan!.state === "have") return
  if (plan!.state !== "send") throw new Error(JSON.stringify(plan))
  for (const chunk of chunks) if (plan!.chunks.includes(chunk.hash)) await hub.sendChunk(PROJECT, { source, id }, chunk)
  await hub.commit({ project: PROJECT, digest, chunks: hashes, parent_rev: plan!.rev, visibility: "project", head })
}

/** A word that only one conversation contains. */
function wordOf(id: string): string {
  return `quokka${id}`
}

/** What people did so far, and what they must find. */
function createPeople({ client }: World, random: () => number) {
  const all: Pushed[] = []
  const seen = new Map<string, Set<string>>()
  const problems: string[] = []
  let outcome: Outcome = { answered: 0, unavailable: 0, others: [] }

  const note = (error: unknown, what: string) => {
    if (!isHubError(error)) throw error
    if (error.trouble === "busy" && error.retryAfterMs !== undefined) outcome.unavailable++
    else outcome.others.push(`${what}: ${error.message}`)
  }
  const search = async (hub: HubClient, group: string) => {
    const [before, startedAt] = [new Set(seen.get(group)), Date.now()]
    const input = { query: group, by: "message", limit: 100 }
    const { results, total } = await hub.ask<Found>("search", input)
    outcome.answered++
    const found = results.map(({ id, message_index }) => `${id.replace("ann/claude_code:", "")}#${message_index}`)
    if (new Set(found).size !== found.length) problems.push(`${group}: twice in ${found}`)
    const conversations = new Map(all.filter((one) => one.group === group).map((one) => [one.id, one]))
    let isStill = true
    for (const one of conversations.values()) {
      if (one.forgetAt !== undefined && (one.forgottenAt === undefined || one.forgottenAt > startedAt)) isStill = false
      if (
        one.forgottenAt !== undefined &&
        one.forgottenAt < startedAt &&
        found.some((id) => id.startsWith(`${one.id}#`))
      )
        problems.push(`${one.id} was forgotten and is found`)
      if (one.forgetAt !== undefined) for (const id of [...before]) if (id.startsWith(`${one.id}#`)) before.delete(id)
    }
    if (isStill && total !== found.length) problems.push(`${group}: ${total} counted, ${found.length} found`)
    for (const id of before) if (!found.includes(id)) problems.push(`${id} was found before, and then not: ${found}`)
    for (const id of found) if (!conversations.has(id.split("#")[0]!)) problems.push(`${id} was never pushed`)
    seen.set(group, new Set([...before, ...found]))
    return found.sort()
  }
  const groupOf = (n: number) => `wombat${Math.floor(n / (GROUP_SIZE / 3))}`
  const pushNext = async (hub: HubClient) => {
    const mayGrow = all.filter(
      (one) => one.messages < 3 && one.messages === one.acknowledged && one.forgetAt === undefined,
    )
    const grown = mayGrow.length > 0 && random() < 0.4 ? mayGrow[Math.floor(random() * mayGrow.length)] : undefined
    const one = grown ?? { id: `c${all.length}`, group: groupOf(all.length), messages: 0, acknowledged: 0 }
    if (!grown) all.push(one)
    one.messages++
    for (;;)
      try {
        await push(hub, one)
        one.acknowledged = one.messages
        return
      } catch (error) {
        note(error, "push")
        await pause(200)
      }
  }
  const forgetOne = async (hub: HubClient) => {
    const one = all.find(
      (each) => each.forgetAt === undefined && each.messages === each.acknowledged && each.messages > 1,
    )
    if (!one) return
    one.forgetAt = Date.now()
    for (;;)
      try {
        await hub.remove({ source: "claude_code", id: one.id })
        one.forgottenAt = Date.now()
        return
      } catch (error) {
        note(error, "forget")
        await pause(200)
      }
  }
  /** Works until `isDone`. */
  const work = async (isDone: () => boolean) => {
    outcome = { answered: 0, unavailable: 0, others: [] }
    let pushed = 0
    const each = async (run: (hub: HubClient) => Promise<unknown>) => {
      const hub = client()
      while (!isDone()) {
        await run(hub)
        await pause(50 + random() * 200)
      }
      hub.close()
    }
    const pushing = async (hub: HubClient) => {
      await pushNext(hub)
      pushed++
    }
    const searching = (hub: HubClient) =>
      search(hub, groupOf(random() * all.length)).catch((error: unknown) => note(error, "search"))
    const forgetting = (async () => {
      const hub = client()
      await forgetOne(hub)
      hub.close()
    })()
    await Promise.all([
      ...Array.from({ length: PUSHERS }, () => each(pushing)),
      ...Array.from({ length: SEARCHERS }, () => each(searching)),
      forgetting,
    ])
    return { pushed, ...outcome }
  }
  return { all, problems, search, work, groups: () => [...new Set(all.map(({ group }) => group))] }
}
type People = ReturnType<typeof createPeople>

/** Each returns what heals it. `seconds` is how long processes are paused. */
const KINDS: Record<string, (world: World, pick: (count: number) => number) => Promise<() => Promise<unknown>>> = {
  "a node is killed": async ({ nodes }, pick) => {
    const node = nodes[pick(3)]!
    node.kill()
    return node.start
  },
  "two nodes are killed": async ({ nodes }, pick) => {
    const kept = pick(3)
    const killed = nodes.filter((_, i) => i !== kept)
    for (const node of killed) node.kill()
    return () => Promise.all(killed.map((node) => node.start()))
  },
  "a node is paused": async ({ nodes }, pick) => {
    const node = nodes[pick(3)]!
    node.signal("SIGSTOP")
    return async () => node.signal("SIGCONT")
  },
  "a hub is killed": async ({ hubs, envs }, pick) => {
    const i = pick(2)
    await hubs[i]!.kill()
    return async () => {
      hubs[i] = await startHub(envs[i]!)
    }
  },
  "a hub is paused": async ({ hubs }, pick) => {
    const { child } = hubs[pick(2)]!
    child.kill("SIGSTOP")
    return async () => child.kill("SIGCONT")
  },
  "PostgreSQL is killed": async ({ server }) => {
    server.signal!("SIGKILL")
    return server.again!
  },
  "PostgreSQL is paused": async ({ server }) => {
    server.signal!("SIGSTOP")
    return async () => server.signal!("SIGCONT")
  },
  "the disks are full": async ({ direct, nodes: _ }) => {
    const block = async (value: boolean | null) => {
      const cluster = direct()
      const body = { "index.blocks.read_only_allow_delete": value }
      await cluster.ask({ method: "PUT", path: `/${PREFIX}-*/_settings`, body })
      await cluster.close()
    }
    await block(true)
    return () => block(null)
  },
  "the hubs reach no node": async ({ proxies }) => {
    for (const proxy of proxies) proxy.cut()
    return async () => proxies.forEach((proxy) => void proxy.heal())
  },
  "the hubs hear from no node": async ({ proxies }) => {
    for (const proxy of proxies) proxy.silence()
    return async () => proxies.forEach((proxy) => void proxy.heal())
  },
  "the nodes reach one of them no more": async ({ transports }, pick) => {
    const proxy = transports[pick(3)]!
    proxy.cut()
    return async () => proxy.heal()
  },
  "the nodes hear from one of them no more": async ({ transports }, pick) => {
    const proxy = transports[pick(3)]!
    proxy.silence()
    return async () => proxy.heal()
  },
  "the nodes do not reach each other": async ({ transports }) => {
    for (const proxy of transports) proxy.cut()
    return async () => transports.forEach((proxy) => void proxy.heal())
  },
  "the index has an older version": async ({ direct, sql }) => {
    const cluster = direct()
    const [index] = Object.keys(await cluster.ask<object>({ method: "GET", path: `/${PREFIX}-*` }))
    await cluster.ask({ method: "PUT", path: `/${index}/_mapping`, body: { _meta: { format: 0 } } })
    await cluster.close()
    await sql("update hub.word_index set holder = null, until = '-infinity'")
    return async () => {}
  },
}
/** A client that tries again must notice nothing. */
const UNNOTICED = ["a node is killed", "a hub is killed", "the index has an older version"]

async function untilGreen({ direct }: World): Promise<void> {
  const cluster = direct()
  const query = { wait_for_status: "green", wait_for_nodes: "3", timeout: "5s" }
  const path = `/_cluster/health/${PREFIX}-*`
  const isGreen = async () =>
    cluster.ask({ method: "GET", path, query }).then(
      () => true,
      () => false,
    )
  await expect.poll(isGreen, { timeout: 200_000, interval: 200 }).toBe(true)
  await cluster.close()
}

/** Both hubs find all that was acknowledged, each as often as it should. */
async function untilFound({ hubs, token }: World, { all, search, groups }: People): Promise<void> {
  for (const { url } of hubs) {
    const hub = openHub({ address: url, token })
    for (const group of groups()) {
      const kept = all.filter((one) => one.group === group && one.forgetAt === undefined)
      const expected = kept.flatMap(({ id, messages }) => Array.from({ length: messages }, (_, i) => `${id}#${i + 1}`))
      const found = () => search(hub, group).catch((error: Error) => error.message)
      await expect.poll(found, { timeout: 200_000, interval: 200, message: group }).toEqual(expected.sort())
    }
    hub.close()
  }
}

/** Tries again while the cluster does not answer in time: a busy machine may be slower than people would wait. */
async function patiently<T>(work: () => Promise<T>): Promise<T> {
  for (;;)
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof ClusterUnavailable)) throw error
      await pause(500)
    }
}

/** Everything in an index that can be asked: each document, and the score of each word in it. */
async function contentsOf(cluster: Cluster, tenant: number, key: TenantKey, { all, groups }: People) {
  const search = batchedSearch(cluster, `${cluster.prefix}-${tenant}`)
  const texts = [...groups(), ...all.map(({ id }) => wordOf(id)), "part 1 2 3"]
  const words = [...new Set(indexWordsInOrder(texts).flat())]
  const fields = ["conversation", "kind", "number", "at", "shared", "state"]
  const size = 10_000
  const everything = {
    query: { exists: { field: "number" } },
    size,
    docvalue_fields: fields,
    sort: [{ conversation: "asc" }, { number: "asc" }],
  }
  const terms = words.flatMap((word) => [
    { term: { words: key.word(word) } },
    { term: { beginnings: hashedBeginning(key, word.slice(0, 5)) } },
  ])
  const answers = await Promise.all([everything, ...terms.map((query) => ({ query, size }))].map(search))
  const [documents, ...ofWords] = answers.map(({ hits }) => hits.hits)
  return {
    documents: documents!.map(({ _id, ...rest }) => ({
      id: _id,
      ...("fields" in rest ? { fields: rest.fields } : {}),
    })),
    words: ofWords.map((hits) => hits.map(({ _id, _score }) => `${_id} ${_score}`).sort()),
  }
}

/** The index equals one that is built anew, and PostgreSQL has what was acknowledged. The hubs are paused meanwhile. */
async function compare(world: World, people: People): Promise<void> {
  const { hubs, team, tenant, direct, sql, key, nodes } = world
  const db = openTest(team)
  const cluster = direct()
  expect(await patiently(() => differingConversations(db, cluster, tenant))).toEqual([])
  const taken = async () => {
    for (const { child } of hubs) child.kill("SIGSTOP")
    // One of them may be in the middle of a transaction.
    const statement = "set lock_timeout = '1s'; update hub.word_index set holder = null, until = '-infinity'"
    const isTaken = await sql(statement).then(
      () => true,
      () => false,
    )
    if (!isTaken) for (const { child } of hubs) child.kill("SIGCONT")
    return isTaken
  }
  await expect.poll(taken, { interval: 500 }).toBe(true)
  // The indexer of another prefix would take the disks of the first one for clean.
  await sql(`create table public.kept_copy as table hub.word_copy;
    create table public.kept_receipt as select tenant, id from hub.receipt where words_gone_at is null`)
  const fresh = openCluster({ addresses: nodes.map(({ address }) => address), prefix: "fresh", shards: 1 })
  const indexer = newIndexer(db, fresh)
  await patiently(() => followAll(indexer))
  const expected = await patiently(() => contentsOf(fresh, tenant, key, people))
  expect(await patiently(() => contentsOf(cluster, tenant, key, people))).toEqual(expected)
  const live = people.all.filter((one) => one.forgetAt === undefined)
  expect(expected.documents.length).toBeGreaterThanOrEqual(live.reduce((sum, { messages }) => sum + messages, 0))
  await indexer.close()
  await fresh.ask({
    method: "DELETE",
    path: `/${Object.keys(await fresh.ask<object>({ method: "GET", path: "/fresh-*" }))}`,
  })
  await Promise.all([cluster.close(), fresh.close()])
  await sql(`delete from hub.word_copy; insert into hub.word_copy table public.kept_copy;
    update hub.receipt set words_gone_at = null where (tenant, id) in (table public.kept_receipt);
    drop table public.kept_copy, public.kept_receipt`)
  for (const { child } of hubs) child.kill("SIGCONT")
  const history = openTenantHistory(db, tenant)
  for (const { id, acknowledged } of live)
    expect(await history.messages({ owner: "ann", source: "claude_code", id }), id).toHaveLength(acknowledged)
}

describe.skipIf(!hasPostgres || process.env.DEX_TEST_DATABASE_URL !== undefined)("faults of a cluster", () => {
  test(
    "lose nothing, double nothing and shorten no answer silently, and what is forgotten leaves all disks",
    async () => {
      const random = generator(SEED)
      const pick = (count: number) => Math.floor(random() * count)
      const place = await world()
      const people = createPeople(place, random)
      let isDone = false
      const first = people.work(() => isDone)
      await pause(3_000)
      isDone = true
      await first
      await expect.poll(() => place.sql("select in_files from hub.word_index")).toEqual([{ in_files: false }])
      await untilFound(place, people)
      let order: string[] = []
      const totals = { faults: 0, pushed: 0, answered: 0, unavailable: 0 }
      for (let fault = 0; fault < FAULTS; fault++) {
        if (order.length === 0) order = Object.keys(KINDS).sort(() => random() - 0.5)
        const kind = order.pop()!
        await untilGreen(place)
        let isHealed = false
        const working = people.work(() => isHealed)
        await pause(500)
        const heal = await KINDS[kind]!(place, pick)
        const isPause = kind.endsWith("paused") && PAUSE_SECONDS > 0
        await pause(isPause ? PAUSE_SECONDS * 1000 : 1_000 + random() * 5_000)
        await heal()
        await pause(1_000)
        isHealed = true
        const { pushed, answered, unavailable, others } = await working
        await untilGreen(place)
        await untilFound(place, people)
        await compare(place, people)
        expect(people.problems).toEqual([])
        console.log(
          `${fault + 1}. ${kind}: ${pushed} pushed, ${answered} searches, ${unavailable} times 503, ${others.length} times ${[...new Set(others)].join("; ")}`,
        )
        if (UNNOTICED.includes(kind)) expect([unavailable, others]).toEqual([0, []])
        Object.assign(totals, {
          faults: totals.faults + 1,
          pushed: totals.pushed + pushed,
          answered: totals.answered + answered,
          unavailable: totals.unavailable + unavailable,
        })
      }
      const forgotten = people.all.filter((one) => one.forgottenAt !== undefined)
      const waiting = () => place.sql("select id from hub.receipt where words_gone_at is null")
      await expect.poll(waiting, { timeout: 900_000, interval: 1_000 }).toEqual([])
      const withWord = ({ id }: Pushed) => {
        const [[word] = []] = indexWordsInOrder([wordOf(id)])
        return place.nodes.filter(({ data, logs }) =>
          [data, logs].some((dir) => filesWith(dir, place.key.word(word!)).length > 0),
        )
      }
      for (const one of forgotten) expect(withWord(one), one.id).toEqual([])
      expect(withWord(people.all.find((one) => one.forgetAt === undefined)!)).not.toEqual([])
      console.log(`${JSON.stringify(totals)}, ${forgotten.length} forgotten`)
    },
    1_200_000 + FAULTS * 400_000,
  )
})
