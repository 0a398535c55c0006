import { mkdirSync, rmSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { addsUp } from "../../src/core/trace.ts"
import { startDex } from "../support/dex.ts"
import { closedUrl, type EmbeddingServer, embeddingServer, type Misbehaviour } from "../support/embedding-server.ts"
import { claudeSession } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

// No message contains any of the words of PARAPHRASE; the server's model knows their meaning.
const SYNONYMS = { people: "customers", thrown: "signed", off: "out", unexpectedly: "random" }
const PARAPHRASE = "people thrown off unexpectedly"
const INVOICE = "claude_code:22222221-2222-4222-8222-222222222222"
const SIGNED_OUT = "claude_code:11111111-1111-4111-8111-111111111111"

function writeHome(home: string): void {
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-11-03T10:00:00Z",
    turns: [
      { user: "Customers get signed out at random" },
      { assistant: "Two requests rotate one token." },
      { tool: { name: "Bash", input: { command: "npm test" }, output: "FAIL src/auth.test.ts" } },
    ],
  })
  const others: [string, string, string][] = [
    ["/code/web", "The sidebar flickers when the theme changes", "The theme class is set after the first paint."],
    ["/code/api", "Make the invoice export stream its rows", "It now writes each page as it arrives."],
    ["/code/api", "Why is the nightly backup so slow?", "It compresses twice; I removed the second pass."],
    ["/code/cli", "Add a flag that prints the version", "Done, with a test and a line of help."],
    ["/code/web", "Upgrade the bundler to its next major", "Three plugins had to be replaced."],
    ["/code/api", "Rename the billing module", "Renamed, and its imports follow."],
    ["/code/web", "Dark mode has a white flash", "A script in the head sets it before anything shows."],
    ["/code/cli", "Completions for fish do not load", "The file had the wrong suffix."],
    ["/code/api", "Measure how long each query takes", "A histogram by route, kept for a week."],
  ]
  for (const [i, [cwd, user, assistant]] of others.entries())
    claudeSession(home, {
      id: `2222222${i}-2222-4222-8222-222222222222`,
      cwd,
      start: `2026-11-1${i}T09:00:00Z`,
      // Three prompts each: with fewer than 20 windows, dex cannot tell how near unrelated ones are.
      turns: [
        { user },
        { assistant },
        { user: `Squash pull request number ${i}` },
        { user: `Tag release 1.${i} afterwards` },
      ],
    })
}

const wordsServer = (options: Parameters<typeof embeddingServer>[0] = {}) =>
  embeddingServer({ dims: 256, synonyms: SYNONYMS, ...options })

type Settings = Record<string, string>
const settingsFor = (server: EmbeddingServer): Settings => ({
  DEX_EMBED_PROVIDER: "openai",
  DEX_EMBED_URL: `${server.url}/v1`,
  DEX_EMBED_MODEL: "words",
  DEX_EMBED_TIMEOUT_MS: "5000",
})

async function unread(options: Parameters<typeof embeddingServer>[0] = {}) {
  const home = tempDir()
  writeHome(home)
  const server = await wordsServer(options)
  return { home, server, env: settingsFor(server) }
}

async function synced(options: Parameters<typeof embeddingServer>[0] = {}) {
  const made = await unread(options)
  await syncHome(made.home, made.env)
  return made
}

const json = async (home: string, args: string[], env: Settings = {}) =>
  JSON.parse((await dex(home, [...args, "--json"], env)).stdout)
const done = async (home: string, args: string[], env: Settings) =>
  JSON.parse((await dex(home, [...args, "--json"], env)).stdout.trim().split("\n").at(-1)!)
const find = (home: string, env: Settings, query = PARAPHRASE, ...more: string[]) =>
  json(home, ["search", query, ...more], env)

describe("search by meaning", () => {
  test("finds text with the same meaning in other words, and says how it was found", async () => {
    const { home, env, server } = await synced()
    const lexical = await find(home, {})
    expect(lexical).toMatchObject({ results: [], mode: "lexical" })
    server.requests.length = 0
    const found = await find(home, env, PARAPHRASE, "--explain")
    expect(found).toMatchObject({ mode: "hybrid", matched: "some" })
    expect(found.degraded).toBe(undefined)
    expect(found.results[0]).toMatchObject({ id: SIGNED_OUT, message_index: 1, rank_source: "vector" })
    expect(found.results[0].score_vec).toBeGreaterThan(0.5)
    expect(found.results[0].score_lex).toBe(undefined)
    expect(server.requests).toHaveLength(1)
    const { trace } = await json(home, ["trace"])
    expect(trace).toMatchObject({ mode: "hybrid", query: PARAPHRASE })
    for (const row of trace.ranking) expect([row, addsUp(row)]).toEqual([row, true])
  })

  test("marks a hit that both searches find, its score parts add up, and two runs print the same bytes", async () => {
    const { home, env } = await synced()
    const args = ["search", "invoice export rows", "--explain", "--json"]
    const [one, two] = [await dex(home, args, env), await dex(home, args, env)]
    expect(one.stdout).toBe(two.stdout)
    const [hit] = JSON.parse(one.stdout).results
    expect(hit).toMatchObject({ rank_source: "both", score_lex: expect.any(Number), score_vec: expect.any(Number) })
    expect(hit.score_parts.map((part: { name: string }) => part.name)).toEqual(
      expect.arrayContaining(["words", "vector"]),
    )
    expect(addsUp({ score_final: hit.score_final, terms: hit.score_parts })).toBe(true)
  })

  test("finds nothing if nothing is similar", async () => {
    const { home, env } = await synced()
    expect(await dex(home, ["search", "quarterly zebra migration paperwork"], env)).toMatchObject({
      code: 1,
      stdout: "",
    })
  })

  test("filters apply to hits by meaning", async () => {
    const { home, env } = await synced()
    expect((await find(home, env, PARAPHRASE, "--project", "api")).results[0]?.id).toBe(SIGNED_OUT)
    for (const more of [
      ["--project", "web"],
      ["--source", "codex"],
      ["--to", "2026-11-02"],
      ["--role", "assistant"],
    ])
      expect((await find(home, env, PARAPHRASE, ...more)).results.map((hit: { id: string }) => hit.id)).not.toContain(
        SIGNED_OUT,
      )
    for (const query of [`${PARAPHRASE} -customers`, `${PARAPHRASE} "invoice export"`])
      expect((await find(home, env, query)).results.map((hit: { id: string }) => hit.id)).not.toContain(SIGNED_OUT)
  })

  test("a private project is found from inside itself only", async () => {
    const { home, env } = await synced()
    const project = join(home, "secret")
    mkdirSync(project)
    claudeSession(home, {
      id: "99999999-9999-4999-8999-999999999999",
      cwd: project,
      start: "2026-11-20T10:00:00Z",
      turns: [{ user: "Customers signed out at random, the confidential report" }],
    })
    await dex(home, ["sync"], env)
    await dex(home, ["private", project], env)
    const hidden = "claude_code:99999999-9999-4999-8999-999999999999"
    const outside = await find(home, env)
    expect(outside.mode).toBe("hybrid")
    expect(outside.results.map((hit: { id: string }) => hit.id)).toContain(SIGNED_OUT)
    expect(outside.results.map((hit: { id: string }) => hit.id)).not.toContain(hidden)
  })

  test("a forgotten conversation is not found by meaning either", async () => {
    const { home, env } = await synced()
    await dex(home, ["forget", SIGNED_OUT, "--yes"], env)
    const found = await find(home, env)
    expect(found.results.map((hit: { id: string }) => hit.id)).not.toContain(SIGNED_OUT)
    expect(await json(home, ["doctor"], env)).toMatchObject({ ok: true })
  })

  test("a secret in a query does not reach the server", async () => {
    const { home, env, server } = await synced()
    server.requests.length = 0
    await find(home, env, "thrown off with ghp_16C7e42F292c6912E7710c838347Ae178B4a project:api")
    expect(server.requests[0]!.texts[0]).toContain("thrown off with")
    expect(JSON.stringify(server.requests)).not.toMatch(/ghp_|project:api/)
  })

  test("without an embedder no request is sent and nothing is reported", async () => {
    const { home, server } = await synced()
    server.requests.length = 0
    const found = await find(home, {}, "invoice export")
    expect(found).toMatchObject({ mode: "lexical", results: [{ id: INVOICE }] })
    expect(found.degraded).toBe(undefined)
    await syncHome(home)
    expect(server.requests).toEqual([])
  })
})

describe("a server that fails during a search", () => {
  const odd: [string, Misbehaviour[], Settings, RegExp][] = [
    ["does not answer in time", [{ hang: true }], { DEX_EMBED_TIMEOUT_MS: "50" }, /within 50 ms \(embed\.timeout_ms\)/],
    ["fails", [{ status: 500 }, { status: 500 }], {}, /failed \(500\)/],
    ["sends a vector of another size", [{ vectors: () => [[1, 2, 3]] }], {}, /3 numbers instead of 256/],
    ["sends something else", [{ json: { data: "none" } }], {}, /unexpected format/],
  ]
  test.each(odd)("%s: the search falls back to words and gives the reason", async (_, next, more, reason) => {
    const { home, env, server } = await synced()
    server.next.push(...next)
    const run = await dex(home, ["search", "invoice export", "--json"], { ...env, ...more })
    expect(run.code).toBe(0)
    const found = JSON.parse(run.stdout)
    expect(found).toMatchObject({ mode: "lexical", results: [{ id: INVOICE }] })
    expect(found.degraded).toEqual([expect.stringMatching(reason)])
    const { trace } = await json(home, ["trace"])
    expect(trace).toMatchObject({ mode: "lexical", inputs: { degraded: found.degraded } })
  })

  test("does not answer: stderr says so, and the results by words are printed", async () => {
    const { home, env } = await synced()
    const run = await dex(home, ["search", "invoice export"], { ...env, DEX_EMBED_URL: await closedUrl() })
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("invoice") })
    expect(run.stderr.replace(/\s+/g, " ")).toMatch(/Nothing answers at .* dex config set embed\.provider none/)
  })

  test("a key file that others can read is the reason for a search by words, not an error", async () => {
    const { home, env } = await synced()
    const found = await find(home, { ...env, DEX_EMBED_API_KEY_FROM: join(home, "no-such-key") }, "invoice export")
    expect(found).toMatchObject({ mode: "lexical", degraded: [expect.stringMatching(/no-such-key cannot be read/)] })
    expect(found.results).toHaveLength(1)
  })
})

describe("dex sync with an embedder", () => {
  test("embeds what was said once, without tool calls and their outputs", async () => {
    const { home, env, server } = await unread()
    const run = await dex(home, ["sync"], env)
    expect(run).toMatchObject({ code: 0 })
    expect(run.stderr).toMatch(/ messages embedded by openai:words@-:256:p0 in /)
    const texts = server.requests.flatMap((request) => request.texts)
    expect(texts).toContain("Customers get signed out at random Two requests rotate one token.")
    expect(texts.join("\n")).not.toMatch(/FAIL src\/auth\.test\.ts|npm test/)
    server.requests.length = 0
    const again = await done(home, ["sync"], env)
    expect(again.embedding).toMatchObject({ embedder: "openai:words@-:256:p0", embedded: 0, left: 0 })
    expect(server.requests).toEqual([])
  })

  test("a server that fails does not fail the sync, and the next one continues", async () => {
    const home = tempDir()
    writeHome(home)
    const server = await wordsServer()
    const env = settingsFor(server)
    const down = await dex(home, ["sync"], { ...env, DEX_EMBED_URL: await closedUrl() })
    expect(down).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Read 10 transcripts/) })
    expect(down.stderr.replace(/\s+/g, " ")).toMatch(
      /Nothing answers at .* not embedded yet: the next `dex sync` continues/,
    )
    const none = await find(home, env)
    expect(none).toMatchObject({ mode: "lexical", degraded: [expect.stringMatching(/No message has a vector .* yet/)] })
    expect((await done(home, ["sync"], env)).embedding).toMatchObject({ left: 0 })
    expect((await find(home, env)).results[0]?.id).toBe(SIGNED_OUT)
  })

  test("stops when its time is up, keeps the vectors so far, and a search reports the progress", async () => {
    const home = tempDir()
    writeHome(home)
    claudeSession(home, {
      id: "77777777-7777-4777-8777-777777777777",
      start: "2026-10-01T10:00:00Z",
      turns: Array.from({ length: 60 }, (_, i) => ({ user: `an older remark, number ${i}` })),
    })
    const server = await wordsServer()
    const env = settingsFor(server)
    // It answers for the dimensions, the golden text and the newest 32; then it hangs.
    server.next.push(...Array.from({ length: 3 }, () => ({ vectors: (vectors: number[][]) => vectors })), {
      hang: true,
    })
    const first = await done(home, ["sync", "--max-seconds", "2"], env)
    expect(first.embedding.embedded).toBeGreaterThan(0)
    expect(first.embedding.left).toBeGreaterThan(20)
    expect(first.embedding.problem).toBe(undefined)
    const found = await find(home, env)
    expect(found).toMatchObject({ mode: "hybrid" })
    expect(found.results[0]?.id).toBe(SIGNED_OUT)
    expect(found.degraded).toEqual([expect.stringMatching(/^\d+ % of the messages are embedded so far/)])
    const second = await done(home, ["sync"], env)
    expect(second.embedding).toMatchObject({ embedded: first.embedding.left, left: 0 })
  })

  test("Ctrl-C ends it between two requests, and keeps the vectors so far", async () => {
    const home = tempDir()
    writeHome(home)
    const server = await wordsServer()
    const env = settingsFor(server)
    server.next.push({ vectors: (vectors) => vectors }, { vectors: (vectors) => vectors }, { hang: true })
    const child = startDex(home, ["sync"], undefined, env)
    await expect.poll(() => server.requests.length).toBe(3)
    child.kill("SIGINT")
    expect(await new Promise((resolve) => child.once("exit", resolve))).toBe(0)
    expect((await done(home, ["sync"], env)).embedding).toMatchObject({ left: 0 })
  })

  test("one text that the server cannot take does not stop the others", async () => {
    const home = tempDir()
    writeHome(home)
    claudeSession(home, {
      id: "77777777-7777-4777-8777-777777777777",
      start: "2026-12-01T10:00:00Z",
      turns: Array.from({ length: 40 }, (_, i) => ({ user: `a newer remark, number ${i}` })),
    })
    const server = await wordsServer()
    const env = settingsFor(server)
    server.next.push({ vectors: (vectors) => vectors }, { vectors: (vectors) => vectors }, { json: { odd: true } })
    const { embedding } = await done(home, ["sync"], env)
    expect(embedding).toMatchObject({ left: 32, problem: expect.stringMatching(/32 texts were skipped/) })
    expect((await find(home, env)).results[0]?.id).toBe(SIGNED_OUT)
  })
})

describe("another model", () => {
  test("the next sync makes its vectors, search uses words until then, and gc drops the old vectors", async () => {
    const { home, env } = await synced()
    const other = { ...env, DEX_EMBED_MODEL: "other" }
    const before = await find(home, other, "invoice export")
    expect(before).toMatchObject({ mode: "lexical", results: [{ id: INVOICE }] })
    expect(before.degraded).toEqual([expect.stringMatching(/from another model \(openai:words@-:256:p0\)/)])
    expect((await done(home, ["sync"], other)).embedding).toMatchObject({ embedder: "openai:other@-:256:p0", left: 0 })
    expect((await find(home, other)).results[0]?.id).toBe(SIGNED_OUT)
    const gc = await json(home, ["gc"], other)
    expect(gc.dropped).toEqual([{ embedder: "openai:words@-:256:p0", vectors: expect.any(Number) }])
    expect(gc.bytes_after).toBeLessThanOrEqual(gc.bytes_before)
    expect((await find(home, other)).results[0]?.id).toBe(SIGNED_OUT)
    expect((await json(home, ["trace"], other)).trace.command).toBe("search")
    expect((await find(home, env, "invoice export")).degraded).toEqual([expect.stringMatching(/from another model/)])
  })

  test("under the same name is detected, not mixed with the old one, and repaired by reindex --vectors", async () => {
    const { home, env } = await synced()
    const changed = settingsFor(await wordsServer({ seed: "another model" }))
    claudeSession(home, {
      id: "77777777-7777-4777-8777-777777777777",
      start: "2026-12-01T10:00:00Z",
      turns: [{ user: "a newer remark" }],
    })
    const run = await done(home, ["sync"], changed)
    expect(run.embedding.problem).toMatch(/has changed since the vectors were created/)
    const found = await find(home, changed, "invoice export")
    expect(found).toMatchObject({ mode: "lexical", degraded: [expect.stringMatching(/dex doctor reindex --vectors/)] })
    expect((await json(home, ["reindex", "--vectors"], changed)).embedding).toMatchObject({ left: 0 })
    expect(await find(home, changed)).toMatchObject({ mode: "hybrid", results: [{ id: SIGNED_OUT }] })
    expect((await done(home, ["sync"], env)).embedding.problem).toBe(undefined) // nothing to embed, nothing asked
  })
})

describe("dex doctor reindex and dex doctor gc", () => {
  test("a new index keeps the vectors of unchanged messages", async () => {
    const { home, env, server } = await synced()
    const before = await find(home, env)
    server.requests.length = 0
    expect((await dex(home, ["reindex"], env)).code).toBe(0)
    expect((await done(home, ["sync"], env)).embedding).toMatchObject({ embedded: 0, left: 0 })
    expect(server.requests).toEqual([])
    expect(await find(home, env)).toEqual(before)
  })

  test("an index that was deleted comes back, and the next sync embeds it", async () => {
    const { home, env } = await synced()
    for (const end of ["", "-wal", "-shm"]) rmSync(join(home, ".dex", `${INDEX_FILE}${end}`), { force: true })
    expect((await done(home, ["sync"], env)).embedding).toMatchObject({ left: 0 })
    expect((await find(home, env)).results[0]?.id).toBe(SIGNED_OUT)
  })

  test("reindex --vectors without an embedder says what to do", async () => {
    const { home } = await synced()
    expect(await dex(home, ["reindex", "--vectors"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/No embedder/),
    })
  })

  test("gc reports the space it freed, is traced, and keeps vectors if no model is set", async () => {
    const { home, env } = await synced()
    await dex(home, ["forget", SIGNED_OUT, "--yes"], env)
    const run = await dex(home, ["gc"])
    expect(run).toMatchObject({ code: 0, stdout: expect.stringMatching(/^(Freed|Nothing to free)/) })
    expect(run.stderr.replace(/\s+/g, " ")).toMatch(/Vectors of openai:words@-:256:p0 were kept/)
    expect((await json(home, ["trace"])).trace).toMatchObject({ command: "gc" })
    expect(await find(home, env, "invoice export")).toMatchObject({ mode: "hybrid" })
  })
})

describe("reranking", () => {
  const rerank = (server: EmbeddingServer): Settings => ({
    DEX_SEARCH_RERANK: server.url,
    DEX_RERANK_MODEL: "judge",
  })

  test("a model reorders the best hits, and their score parts still add up", async () => {
    const { home, server } = await synced()
    const plain = await find(home, {}, "backup export")
    const again = await find(home, rerank(server), "backup export", "--explain")
    expect(again).toMatchObject({ mode: "lexical", reranked: true })
    expect(again.degraded).toBe(undefined)
    const ids = (output: { results: { id: string }[] }) => output.results.map((hit) => hit.id)
    expect(ids(again).toSorted()).toEqual(ids(plain).toSorted())
    expect(ids(again)).not.toEqual(ids(plain))
    const lengths = again.results.map((hit: { snippet: string }) => hit.snippet.replaceAll("*", "").length)
    expect(lengths).toEqual(lengths.toSorted((a: number, b: number) => b - a))
    for (const hit of again.results) expect(addsUp({ score_final: hit.score_final, terms: hit.score_parts })).toBe(true)
    expect(server.requests.at(-1)).toMatchObject({ path: "/rerank", model: "judge" })
  })

  test("if a reranker is too slow or does not answer, the order stays and a note says so", async () => {
    const { home, server } = await synced()
    const plain = await find(home, {}, "backup export")
    server.next.push({ hang: true })
    const env = { ...rerank(server), DEX_RERANK_TIMEOUT_MS: "500" }
    const late = await find(home, env, "backup export")
    expect(late.results).toEqual(plain.results)
    expect(late.degraded).toEqual([expect.stringMatching(/within 500 ms \(rerank\.timeout_ms\)/)])
    const gone = await find(home, { ...env, DEX_SEARCH_RERANK: await closedUrl() }, "backup export")
    expect(gone.results).toEqual(plain.results)
    expect(gone.degraded).toEqual([expect.stringMatching(/Nothing answers at/)])
  })
})
