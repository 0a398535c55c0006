import { randomBytes } from "node:crypto"
import { existsSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, onTestFinished, test } from "vitest"
import { RANK_WEIGHTS } from "../../src/search/rank.ts"
import type { MemberAccess } from "../../src/store/index/index-scope.ts"
import type { IndexFilter } from "../../src/store/index/query.ts"
import { indexWordsInOrder } from "../../src/store/index/tokenizer.ts"
import { tempDir } from "../../test/support/temp.ts"
import { createAnswers } from "../src/search/answer.ts"
import type { TeamWords } from "../src/search/engine.ts"
import { createFollower } from "../src/search/follow.ts"
import { openFts5 } from "../src/search/fts5.ts"
import {
  type Cluster,
  type ClusterRequest,
  type DocumentWrite,
  openCluster,
  refreshIndex,
  writeDocuments,
} from "../src/search/opensearch/client.ts"
import { createWordHasher } from "../src/search/opensearch/document.ts"
import { differingConversations } from "../src/search/opensearch/indexer.ts"
import { isTakenOver, takeIndex } from "../src/search/opensearch/indexes.ts"
import { openWords } from "../src/search/opensearch/team-words.ts"
import type { Viewer } from "../src/store/connection.ts"
import { openKeyring } from "../src/store/keyring.ts"
import { accessOf } from "../src/store/member-access.ts"
import { asOwner } from "../src/store/owner.ts"
import { forgetPushed } from "../src/store/push.ts"
import { indexAgain, moveToCluster, moveToFiles, takeLease } from "../src/store/word-index.ts"
import { ENGINES } from "./support/engines.ts"
import { headNamed, pushOne, saying } from "./support/laptop.ts"
import { followAll, newCluster, newIndexer, putInCluster } from "./support/opensearch.ts"
import { hasPostgres } from "./support/postgres.ts"
import { startProxy } from "./support/proxy.ts"
import { asOperator, hubEnv, request, startHub, tokenFor } from "./support/server.ts"
import { opensearchAddress } from "./support/start-opensearch.ts"
import { newMember, newProject, newTeam, newTenant, type Team } from "./support/team.ts"

const PROJECT = "git.test/acme/api"
const ALL_PROJECT = "_all"
const AT = Date.parse("2026-10-02T10:00:00Z")
const NOBODY: MemberAccess = { author: 0, org: false, projects: [], opened: [], withdrawn: [] }

/** Texts that are hard to split, to quote or to store. */
const TEXTS = [
  "the parser reads readFileSync and snake_case_name from src/index.ts",
  "Parsers parsing parsed: the reader did read, then readers READ",
  'a "quoted" word, it\'s <b>bold</b> \\ and {"json": [1, 2]} OR AND NOT NEAR(x) *',
  "ÀÉÎ café cafe naïve 東京都庁 はじめまして Привет мир ﬁne ǅ",
  "deadbeef1234 deadbee deadb dead 0a1b2c3d4e5f6a7b8c9d",
  `${"x".repeat(40_000)} long`,
  `${"word ".repeat(3_000)}end`,
  "\u0000nul \uD800 lone \u200B zero \u0301combining",
  "_all _source _id ~4 word~4 ~ ~~2 term~",
]

async function push(team: Team, author: Viewer, id: string, texts: string[], more: object = {}, project = PROJECT) {
  const messages = texts.map((text, i) => saying(i + 1, text, { at: AT + i }))
  const head = headNamed(id, messages, { title: { text: `about ${id}`, from: "person" }, ended_at: AT, ...more })
  return pushOne(team, author, { project, head, messages })
}

/** One tenant's words in both engines, as its only member finds them. */
async function both() {
  const team = await newTeam()
  const tenant = await newTenant(team)
  const ann = await newMember(team, tenant, "ann")
  await newProject(team, tenant, PROJECT, { own: [ann] })
  await newProject(team, tenant, ALL_PROJECT, { own: [ann] })
  for (const [i, text] of TEXTS.entries()) await push(team, ann, `t${i}`, [text, `reply ${i} about the parser`])
  await push(team, ann, "other", ["a parser in another project"], { kind: "subagent" }, ALL_PROJECT)
  const open = async (name: string) => {
    const { engine, follow } = await ENGINES[name]!(team, [tenant])
    await follow()
    const opened = (await engine.open(tenant))!
    return opened.within((await accessOf(team.db, ann, opened.followed)).access)
  }
  // First the files: the cluster takes the tenant over.
  const files = await open("FTS5")
  const cluster = await open("OpenSearch")
  return { team, tenant, ann, files, cluster }
}

const find = (words: TeamWords, filter: IndexFilter, limit = 300) =>
  words.find({ weights: RANK_WEIGHTS.columns, limit, ...filter })

test("words are split and stemmed as FTS5 does it, and only their hashes leave the hub", () => {
  const keyring = openKeyring(randomBytes(32))
  const key = keyring.tenantKey({ slug: "t", wrapped_key: keyring.newTenantKey("t") })
  const hash = createWordHasher(key)
  const check = (texts: string[]) => {
    const expected = indexWordsInOrder(texts).map((words) => words.map((word) => key.word(word)))
    expect(hash(texts).map((words) => words.map(({ word }) => word))).toEqual(expected)
  }
  check(TEXTS)
  fc.assert(fc.property(fc.array(fc.string({ unit: "binary", maxLength: 60 })), check), { numRuns: 300 })
  const other = keyring.tenantKey({ slug: "u", wrapped_key: keyring.newTenantKey("u") })
  expect(other.word("parser")).not.toBe(key.word("parser"))
})

describe.skipIf(!hasPostgres)("the words of a team in a cluster", () => {
  test("are found by the same queries as in files", async () => {
    const { files, cluster } = await both()
    const word = (words: string) => ({ words })
    const ref = { owner: "ann", source: "claude_code" as const, id: "t0" }
    const filters: IndexFilter[] = [
      ...[
        "parser",
        "parsing",
        "READ",
        "café",
        "cafe",
        "naive",
        "京都",
        "мир",
        "long",
        "snake_case_name",
        "~4",
        "_all",
      ].map((words) => ({ match: [word(words)] })),
      ...['"', "\\", "*", "OR", "NEAR(x", "", " ", "()", "~", "x".repeat(32_000), "x".repeat(40_000)].map((words) => ({
        match: [word(words)],
      })),
      { match: [word("snake case name")] },
      { match: [word("case snake")] },
      { match: [word("read file sync")] },
      { match: [word("word word word end")] },
      { match: [word("quoted word it s")] },
      { match: [word("reply 0"), word("reply 3")] },
      { match: [word("parser")], required: [word("another project")] },
      { match: [word("parser")], required: [word("")] },
      { match: [word("parser")], excluded: [word("reply")] },
      { match: [word("parser")], excluded: [word("")] },
      { match: [word("parser"), word("deadbeef1234")], required: [word("reply"), word("about the")] },
      { match: [word("parser")], sources: ["claude_code"] },
      { match: [word("parser")], sources: ["codex"] },
      { match: [word("parser")], sources: [] },
      { match: [word("parser")], kinds: ["subagent"] },
      { match: [word("parser")], excludedKinds: ["subagent"] },
      { match: [word("parser")], roles: ["user"] },
      { match: [word("parser")], roles: ["assistant"] },
      { match: [word("parser")], tools: ["Bash"] },
      { match: [word("parser")], collections: ["x"] },
      { match: [word("parser")], excludedCollections: ["x"] },
      { match: [word("parser")], projects: [ALL_PROJECT] },
      { match: [word("parser")], projects: ["*", "_all*", "git.test/acme/*"] },
      { match: [word("parser")], projects: [] },
      { match: [word("parser")], excludedProjects: [ALL_PROJECT] },
      { match: [word("parser")], excludedProjects: ["unknown", "a\0b"] },
      { match: [word("parser")], from: AT + 1 },
      { match: [word("parser")], to: AT },
      { match: [word("parser")], from: AT + 5, to: AT },
      { match: [word("parser")], conversations: [ref] },
      { match: [word("parser")], conversations: [{ ...ref, id: "a\0b" }] },
      { match: [word("parser")], conversations: [] },
      { match: [word("parser")], excludedConversations: [ref] },
      { match: [] },
      { match: [{ words: "deadb", prefix: true }] },
      { match: [{ words: "deadbe", prefix: true }] },
      { match: [{ words: "deadbeef", prefix: true }] },
      { match: [{ words: "deadbeef1234", prefix: true }] },
      { match: [{ words: "deadbeef12345", prefix: true }] },
      { match: [{ words: "0a1b2c3", prefix: true }] },
      { match: [{ words: "deadbee deadb", prefix: true }] },
      { match: [{ words: "deadb deadbee", prefix: true }] },
    ]
    expect(filters.length).toBeGreaterThan(60)
    for (const filter of filters) {
      const name = JSON.stringify(filter).slice(0, 200)
      const [expected, actual] = [await find(files, filter), await find(cluster, filter)]
      const idsOf = (hits: typeof expected) => hits.map(({ ref, number }) => `${ref.owner} ${ref.id} ${number}`).sort()
      expect(idsOf(actual), name).toEqual(idsOf(expected))
      expect(await cluster.count(filter), name).toEqual(await files.count(filter))
      expect(await cluster.countConversations(filter), name).toEqual(await files.countConversations(filter))
    }
    const terms = [word("parser"), word("reply"), word("snake case"), word("nothing")]
    expect(await cluster.sizes(terms)).toEqual(await files.sizes(terms))
    for (const all of [[[word("parser")], [word("reply"), word("snake")]], [[word("parser")]], []]) {
      const newest = (words: TeamWords) => words.newest({ all, limit: 20 })
      expect(new Set((await newest(cluster)).map(({ ref }) => ref.id))).toEqual(
        new Set((await newest(files)).map(({ ref }) => ref.id)),
      )
    }
    await expect(find(cluster, { match: [{ words: "dead", prefix: true }] })).rejects.toThrow(/from 5 characters on/)
    await expect(cluster.newest({ all: [[word("parser")]], inPrompts: true, limit: 1 })).rejects.toThrow(/separately/)
    await expect(find(cluster, { match: [word("parser")], newest: 10 })).rejects.toThrow(/parts/)
  })

  test("are found by nobody who names rights that they do not have, in any way", async () => {
    const { team, tenant, ann } = await both()
    const cluster = await newCluster()
    await team.asOwner("update hub.word_index set followed = null, until = '-infinity'")
    await followAll(newIndexer(team.db, cluster))
    const engine = openWords(team.db, cluster, openFts5(tempDir()))
    const { projects } = (await accessOf(team.db, ann, 0)).access
    const opened = (await engine.open(tenant))!
    const foundWith = async (access: Partial<MemberAccess>) => {
      const words = await opened.within({ ...NOBODY, ...access })
      const hits = await find(words, { match: [{ words: "parser" }] })
      expect((await words.sizes([])).messages > 0).toBe(hits.length > 0)
      return hits.length
    }
    const many = Array.from({ length: 70_000 }, (_, i) => 1_000_000 + i)
    expect(await foundWith({})).toBe(0)
    expect(await foundWith({ projects: many, opened: many.map(String) })).toBe(0)
    for (const text of ["*", "_all", '"', "1 OR 1", "1.1", "-1", "", '{"match_all":{}}', "position", "\u0000"])
      expect(await foundWith({ opened: [text] }), text).toBe(0)
    const all = await foundWith({ author: ann.member })
    expect(all).toBeGreaterThan(10)
    expect(await foundWith({ projects: [...many, ...projects] })).toBe(all)
    expect(await foundWith({ author: ann.member, withdrawn: many.map(String) })).toBe(all)
  })

  test("need at most three requests for a search, and no word or name is in one", async () => {
    const { team, tenant, ann } = await both()
    const real = await newCluster()
    const requests: ClusterRequest[] = []
    const cluster: Cluster = {
      ...real,
      ask: (request) => {
        requests.push(request)
        return real.ask(request)
      },
    }
    await team.asOwner("update hub.word_index set followed = null, until = '-infinity'")
    await followAll(newIndexer(team.db, cluster))
    const answers = createAnswers({
      db: team.db,
      words: openWords(team.db, cluster, openFts5(tempDir())),
      folder: tempDir(),
      version: "0",
    })
    expect(JSON.stringify(requests)).not.toMatch(/parser|snake|claude_code|acme|ann/)
    for (const query of [
      "parser",
      "the parser reads a file",
      '"another project" parser -reply',
      "parser project:acme",
      "readFileSync",
    ])
      for (const by of ["message", "conversation"]) {
        requests.length = 0
        const answer = await answers.answer({ viewer: ann, tool: "search", input: { query, by, explain: true } })
        const { results } = (answer as { output: { results: unknown[] } }).output
        expect(results.length, query).toBeGreaterThan(0)
        expect(requests.length, query).toBeLessThanOrEqual(3)
        expect(JSON.stringify(requests)).not.toMatch(/parser|snake|claude_code|acme|read/)
        expect(tenant).toBeGreaterThan(0)
      }
  })
})

describe.skipIf(!hasPostgres)("a cluster that does not answer, or only in part,", () => {
  test("makes a search fail with what to do, and never finds nothing", async () => {
    const { team, ann } = await both()
    const away = openCluster({ addresses: ["http://127.0.0.1:1"], prefix: "t", shards: 1 })
    onTestFinished(() => away.close())
    const real = await newCluster()
    const spoiled = (change: object): Cluster => ({
      ...real,
      ask: async <Answer>() =>
        ({ responses: Array(9).fill({ hits: { total: { value: 0 }, hits: [] }, ...change }) }) as Answer,
    })
    const clusters = [
      away,
      undefined,
      real, // it has no index of this tenant
      spoiled({ timed_out: true }),
      spoiled({ _shards: { failed: 1 } }),
      spoiled({ status: 503, error: { type: "search_phase_execution_exception" } }),
    ]
    for (const cluster of clusters) {
      const words = openWords(team.db, cluster, openFts5(tempDir()))
      const answers = createAnswers({ db: team.db, words, folder: tempDir(), version: "0" })
      const answer = await answers.answer({ viewer: ann, tool: "search", input: { query: "parser" } })
      expect(answer).toMatchObject({ problem: { status: 503, code: "search_unavailable" } })
    }
  })
})

describe.skipIf(!hasPostgres)("the writer of a tenant's index", () => {
  async function oneTenant() {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, PROJECT, { own: [ann] })
    await putInCluster(team, tenant)
    const real = await newCluster()
    const posted: string[] = []
    const cluster: Cluster = {
      ...real,
      ask: (request) => {
        const actions = request.lines?.match(/^\{"(?:index|delete)":\{"_id":"[\d.]+"/gm) ?? []
        posted.push(...actions)
        return real.ask(request)
      },
    }
    const words = openWords(team.db, cluster, openFts5(tempDir()))
    const idsFound = async (term: string) => {
      const opened = (await words.open(tenant))!
      const { access } = await accessOf(team.db, ann, opened.followed)
      const hits = await find(await opened.within(access), { match: [{ words: term }] })
      return hits.map(({ ref, number }) => `${ref.id} ${number}`).sort()
    }
    return { team, tenant, ann, cluster, real, posted, idsFound }
  }

  test("posts at most two documents for a conversation of 500 messages that grows by one, also after a restart", async () => {
    const { team, ann, cluster, posted, idsFound } = await oneTenant()
    const texts = Array.from({ length: 500 }, (_, i) => `wombat ${i}`)
    await push(team, ann, "long", texts)
    const first = newIndexer(team.db, cluster)
    await followAll(first)
    expect(posted.length).toBe(501)
    for (const isRestarted of [false, true]) {
      if (isRestarted) await first.close()
      posted.length = 0
      texts.push(`one more wombat ${isRestarted}`)
      await push(team, ann, "long", texts)
      await followAll(isRestarted ? newIndexer(team.db, cluster) : first)
      expect(posted.length).toBeLessThanOrEqual(2)
      expect((await idsFound("more")).length).toBe(isRestarted ? 2 : 1)
    }
    expect((await idsFound("wombat")).length).toBe(300)
  })

  test("removes what was changed, moved or forgotten", async () => {
    const { team, ann, cluster, idsFound } = await oneTenant()
    const indexer = newIndexer(team.db, cluster)
    await push(team, ann, "a", ["a wombat", "another wombat"])
    await push(team, ann, "b", ["a wombat"])
    await followAll(indexer)
    expect(await idsFound("wombat")).toEqual(["a 1", "a 2", "b 1"])
    const messages = [saying(1, "a quokka", { version: 2 })]
    await pushOne(team, ann, { project: PROJECT, head: headNamed("a", messages), messages })
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "b" }])
    await followAll(indexer)
    expect(await idsFound("wombat")).toEqual([])
    expect(await idsFound("quokka")).toEqual(["a 1"])
    expect(await idsFound("about")).toEqual([])
  })

  test("is another process ten seconds after the first one has gone; what the first one then writes is refused", async () => {
    const { team, tenant, ann, cluster, real, idsFound } = await oneTenant()
    await push(team, ann, "a", ["a wombat"])
    const stuck = newIndexer(team.db, {
      ...cluster,
      // It is paused before its second batch of words, until the other process has taken over.
      ask: async (request) => {
        if (isPaused && request.lines?.includes('"words"')) await resumed.promise
        return real.ask(request)
      },
    })
    let isPaused = false
    const resumed = Promise.withResolvers<void>()
    await followAll(stuck)
    const startedAt = Date.now()
    isPaused = true
    await push(team, ann, "late", ["a secret wombat"])
    const late = stuck.step()
    // A paused process renews nothing.
    await team.asOwner("update hub.word_index set holder = gen_random_uuid() where tenant = $1", [tenant])
    const next = newIndexer(team.db, cluster)
    await forgetPushed(team.db, ann, [{ source: "claude_code", id: "late" }])
    await expect.poll(async () => (await next.step()) && next.lags()[0]!.lag, { interval: 200 }).toBe(0)
    expect(Date.now() - startedAt).toBeLessThan(15_000)
    resumed.resolve()
    expect(await late).toBe(true)
    await real.ask({ method: "POST", path: `/${real.prefix}-*/_refresh` })
    const { count } = await real.ask<{ count: number }>({ method: "GET", path: `/${real.prefix}-*/_count` })
    // The message, its conversation's card, and the position.
    expect(count).toBe(3)
    expect(await idsFound("wombat")).toEqual(["a 1"])
    expect(await takeLease(team.db, tenant, "00000000-0000-4000-8000-000000000000")).toBeUndefined()
  })

  test("builds the index again if it is gone, or if PostgreSQL has gone back to an earlier state", async () => {
    const { team, tenant, ann, cluster, idsFound } = await oneTenant()
    for (const id of ["a", "b", "c"]) await push(team, ann, id, ["a wombat"])
    const first = newIndexer(team.db, cluster)
    await followAll(first)
    const [built] = Object.keys(await cluster.ask<object>({ method: "GET", path: `/${cluster.prefix}-${tenant}-i*` }))
    await cluster.ask({ method: "DELETE", path: `/${built}` })
    await first.close()
    await followAll(newIndexer(team.db, cluster))
    expect(await idsFound("wombat")).toEqual(["a 1", "b 1", "c 1"])
    const restored = newIndexer(team.db, cluster)
    await team.asOwner("delete from hub.conversation where native_id = 'c'")
    await team.asOwner("delete from hub.change where seq > 2")
    await team.asOwner("update hub.feed set seq = 2")
    await team.asOwner("update hub.word_index set until = '-infinity', followed = 2, holder = null")
    await followAll(restored)
    await push(team, ann, "d", ["a wombat"])
    await followAll(restored)
    expect(await idsFound("wombat")).toEqual(["a 1", "b 1", "d 1"])
  })

  test("finds and repairs 50 differences that somebody else made", async () => {
    const { team, tenant, ann, cluster, real, idsFound } = await oneTenant()
    for (let i = 0; i < 60; i++) await push(team, ann, `c${i}`, ["a wombat", "a second wombat"])
    const indexer = newIndexer(team.db, cluster)
    await followAll(indexer)
    expect(await differingConversations(team.db, cluster, tenant)).toEqual([])
    const before = await idsFound("wombat")
    const rows = await team.asOwner<{ id: number }>("select id from hub.conversation order by id")
    const words = { words: ["x"], beginnings: "", tags: [], project: "1", author: String(ann.member) }
    const documentIn = (conversation: number, more: object) => ({
      ...{ ...words, visibility: "org", conversation: String(conversation), kind: "0", number: 1, at: AT },
      ...{ shared: "other", state: "1", ...more },
    })
    const writes: DocumentWrite[] = rows.slice(0, 49).flatMap(({ id }, i) => {
      if (i % 4 === 0) return [{ id: `${id}.1` }]
      if (i % 4 === 1) return [{ id: `${id}.1` }, { id: `${id}.2` }]
      return [{ id: `${id}.${i % 4 === 2 ? 1 : 7}`, document: documentIn(id, { number: i % 4 === 2 ? 1 : 7 }) }]
    })
    writes.push({ id: "999999.1", document: documentIn(999_999, {}) })
    const path = `/_alias/${real.prefix}-${tenant}-w*`
    const found = await real.ask<Record<string, { aliases: object }>>({ method: "GET", path })
    const [[index, { aliases }]] = Object.entries(found) as [[string, { aliases: object }]]
    await writeDocuments(real, Object.keys(aliases)[0]!, 61, writes)
    await refreshIndex(real, index)
    const differing = await differingConversations(team.db, cluster, tenant)
    expect(differing.length).toBe(50)
    await asOwner(team.owner, (query) => indexAgain(query, tenant, differing))
    await expect
      .poll(async () => (await indexer.step()) && differingConversations(team.db, cluster, tenant), { interval: 100 })
      .toEqual([])
    expect(await idsFound("wombat")).toEqual(before)
  })

  test("is only one of two processes that take the index at the same moment", async () => {
    const { team, tenant, ann, cluster } = await oneTenant()
    await push(team, ann, "a", ["a wombat"])
    await followAll(newIndexer(team.db, cluster))
    const { history } = (
      await team.asOwner<{ history: string }>("select history from hub.tenant where id = $1", [tenant])
    )[0]!
    const take = () => takeIndex(cluster, tenant, { history, isPast: async () => true })
    const taken = await Promise.allSettled(Array.from({ length: 4 }, take))
    const failed = taken.flatMap((one) => (one.status === "rejected" ? [one.reason] : []))
    expect(failed.every(isTakenOver)).toBe(true)
    const found = await cluster.ask<Record<string, { aliases: object }>>({
      method: "GET",
      path: `/_alias/${cluster.prefix}-${tenant}-w*`,
    })
    expect(Object.values(found).flatMap(({ aliases }) => Object.keys(aliases)).length).toBe(1)
  })
})

describe.skipIf(!hasPostgres)("a tenant", () => {
  test("moves between the engines while it is searched and forgets, and its hub starts again after a few steps", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team)
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, PROJECT, { own: [ann] })
    const cluster = await newCluster()
    const data = tempDir()
    const files = openFts5(data)
    const words = openWords(team.db, cluster, files)
    onTestFinished(() => words.close())
    const found = async () => {
      const opened = await words.open(tenant)
      if (!opened) return undefined
      const { access } = await accessOf(team.db, ann, opened.followed)
      const within = await opened.within(access)
      return (await find(within, { match: [{ words: "wombat" }] })).map(({ ref }) => ref.id).sort()
    }
    /** What a hub does in some steps. */
    const work = async (steps: number) => {
      const [follower, indexer] = [createFollower(team.db, data), newIndexer(team.db, cluster)]
      for (let step = 0; step < steps; step++) {
        await follower.step()
        await indexer.step()
        // Whatever is being built, somebody has an index.
        expect(await found()).toBeDefined()
      }
      follower.close()
      await indexer.close()
    }
    const kept: string[] = []
    for (let i = 0; i < 12; i++) kept.push(`c${String(i).padStart(2, "0")}`)
    for (const id of kept) await push(team, ann, id, ["a wombat"])
    const first = createFollower(team.db, data)
    while (!(await first.step()));
    first.close()
    for (let round = 0; round < 3; round++)
      for (const isToCluster of [true, false]) {
        const move = () =>
          asOwner<unknown>(team.owner, (query) =>
            isToCluster ? moveToCluster(query, tenant) : moveToFiles(query, tenant),
          )
        expect(await move()).toBe(isToCluster ? undefined : "building")
        await work(1)
        await forgetPushed(team.db, ann, [{ source: "claude_code", id: kept.shift()! }])
        await work(2)
        await push(team, ann, `new${round}${isToCluster}`, ["a wombat"])
        kept.push(`new${round}${isToCluster}`)
        await expect.poll(async () => (await work(2), found()), { interval: 50 }).toEqual(kept.toSorted())
        if (isToCluster) {
          const isOnlyThere = () => existsSync(join(data, `team-${tenant}`)) === false
          await expect.poll(async () => (await work(1), isOnlyThere()), { interval: 50 }).toBe(true)
          continue
        }
        await expect
          .poll(async () => (await work(1), (await files.open(tenant))?.followed), { interval: 50 })
          .toBeDefined()
        expect(await move()).toBe("files")
        const indexes = () => cluster.ask<object>({ method: "GET", path: `/${cluster.prefix}-*` })
        await expect.poll(async () => (await work(1), Object.keys(await indexes())), { interval: 50 }).toEqual([])
        expect(await found()).toEqual(kept.toSorted())
      }
  })
})

describe.skipIf(!hasPostgres)("a hub", () => {
  test("goes on without its cluster, says so, and finds what was pushed meanwhile once it is back", async () => {
    const team = await newTeam()
    const tenant = await newTenant(team, "acme")
    const ann = await newMember(team, tenant, "ann")
    await newProject(team, tenant, PROJECT, { own: [ann] })
    const real = await newCluster()
    const target = new URL(await opensearchAddress())
    const proxy = await startProxy(Number(target.port))
    const env = hubEnv(team, {
      DEX_HUB_SEARCH_URL: `http://127.0.0.1:${proxy.port}`,
      DEX_HUB_SEARCH_PREFIX: real.prefix,
    })
    await moveToCluster(team.asOwner, tenant)
    await push(team, ann, "a", ["a wombat"])
    const { url } = await startHub(env)
    const token = await tokenFor(team, ann)
    const search = () => request(url, token, "POST", "/v1/tools/search", { query: "wombat" })
    const total = async () => ((await search()).body as { total?: number }).total
    const ready = async () => request(url, undefined, "GET", "/readyz")
    await expect
      .poll(
        async () =>
          (await real.ask<object[]>({ method: "GET", path: `/_cat/aliases/${real.prefix}-${tenant}?format=json` }))
            .length,
      )
      .toBe(1)
    await expect.poll(total).toBe(1)
    expect((await ready()).body).toBe("ready\n")
    const checked = await asOperator(env, ["check"])
    expect(checked).toMatch(/ok {7}the search index is nearly up to date/)
    expect(checked).toMatch(/ok {7}OpenSearch allows the indexes of the hub/)
    // One node allows fewer shards.
    const refused = await asOperator({ ...env, DEX_HUB_SEARCH_SHARDS: "1024" }, ["check"], 1)
    expect(refused).toMatch(/OpenSearch refuses an index as the hub needs it \(400 validation_exception\)/)
    expect(Object.keys(await real.ask<object>({ method: "GET", path: `/${real.prefix}-check-*` }))).toEqual([])
    proxy.cut()
    const away = await search()
    expect(away).toMatchObject({ status: 503, body: { error: { code: "search_unavailable" } } })
    expect(away.headers.get("retry-after")).toMatch(/^\d+$/)
    await expect.poll(async () => (await ready()).body).toBe("ready\nsearch: unavailable\n")
    expect((await ready()).status).toBe(200)
    await push(team, ann, "b", ["another wombat"])
    expect((await request(url, token, "POST", "/v1/tools/list", {})).status).toBe(200)
    proxy.heal()
    await expect.poll(total).toBe(2)
    await expect.poll(async () => (await ready()).body).toBe("ready\n")
  })
})
