import { describe, expect, test } from "vitest"
import type { Embedder, EmbedSettings } from "../../src/embed/embedder.ts"
import { embedQuery, openEmbedder } from "../../src/embed/open-embedder.ts"
import { closedUrl, type EmbeddingServer, embeddingServer } from "../support/embedding-server.ts"

type Provider = "openai" | "ollama"

function settingsFor(provider: Provider, server: EmbeddingServer, more: Partial<EmbedSettings> = {}): EmbedSettings {
  return { provider, url: provider === "openai" ? `${server.url}/v1` : server.url, model: "words", ...more }
}

async function opened(provider: Provider, server: EmbeddingServer, more: Partial<EmbedSettings> = {}) {
  const embedder = (await openEmbedder(settingsFor(provider, server, more)))!
  server.requests.length = 0
  return embedder
}

const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, i) => sum + value * b[i]!, 0)
const asDocuments = { role: "document" } as const

test("without a provider there is no embedder", async () => {
  expect(await openEmbedder({ provider: "none", model: "words" })).toBeUndefined()
})

test("a provider without a model says which setting is missing", async () => {
  await expect(openEmbedder({ provider: "openai" })).rejects.toThrow(/dex config set embed\.model/)
})

describe.each<Provider>(["openai", "ollama"])("%s", (provider) => {
  test("gives the same text the same vector, and similar texts similar ones, all of length 1", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    const [race, again, token, theme] = (await embedder.embed(
      [
        "the refresh token race",
        "the refresh token race",
        "a race between two refresh tokens",
        "sidebar theme flickers",
      ],
      asDocuments,
    )) as [Float32Array, Float32Array, Float32Array, Float32Array]
    expect(again).toEqual(race)
    expect(cosine(race, race)).toBeCloseTo(1, 5)
    expect(cosine(race, token)).toBeGreaterThan(cosine(race, theme) + 0.2)
    expect(server.requests[0]!.path).toBe(provider === "openai" ? "/v1/embeddings" : "/api/embed")
  })

  test("has an id that names provider, model, revision, size and prompts", async () => {
    const server = await embeddingServer({ dims: 48 })
    const { id, dims, normalized } = await opened(provider, server)
    expect({ id, dims, normalized }).toEqual({
      id: provider === "openai" ? "openai:words@-:48:p0" : "ollama:words@0123456789ab:48:p0",
      dims: 48,
      normalized: true,
    })
  })

  test("sends no request to open if a stored id has the size and revision", async () => {
    const server = await embeddingServer()
    const { id } = await opened(provider, server)
    const closed = settingsFor(provider, server, { url: await closedUrl() })
    expect((await openEmbedder(closed, ["other:x@1:3:p0", id]))!.id).toBe(id)
    await expect(openEmbedder(closed, ["other:x@1:3:p0"])).rejects.toMatchObject({ code: "embed_unreachable" })
  })

  test("sends many texts in batches and keeps their order", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    const texts = Array.from({ length: 70 }, (_, i) => `message number${i}`)
    const together = await embedder.embed(texts, asDocuments)
    expect(server.requests.map((request) => request.texts.length)).toEqual([32, 32, 6])
    const alone = await Promise.all([0, 31, 32, 69].map((i) => embedder.embed([texts[i]!], asDocuments)))
    expect([0, 31, 32, 69].map((i) => together[i])).toEqual(alone.map(([vector]) => vector))
  })

  test.each([500, 502, 429])("retries once after a %i", async (status) => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push({ status })
    expect(await embedder.embed(["hello"], asDocuments)).toHaveLength(1)
    expect(server.requests).toHaveLength(2)
  })

  test("gives up after the second failure and repeats the server's message", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    const failure = { status: 503, body: '{"error":{"message":"loading the model"}}' }
    server.next.push(failure, failure, failure)
    await expect(embedder.embed(["hello"], asDocuments)).rejects.toMatchObject({
      code: "embed_failed",
      message: expect.stringMatching(/failed \(503: loading the model\), even after a retry/),
    })
    expect(server.requests).toHaveLength(2)
  })

  test.each([
    ["a vector too short", (v: number[][]) => [v[0]!.slice(1), v[1]!], /63 numbers instead of 64/],
    ["a vector too long", (v: number[][]) => [v[0]!, [...v[1]!, 1]], /65 numbers instead of 64/],
    ["not a number", (v: number[][]) => [v[0]!, v[1]!.with(3, null as never)], /not a number/],
    [
      "a number beyond all bounds",
      (v: number[][]) => [v[0]!, v[1]!.with(3, 1e308)],
      /of zeros, or of numbers that are too large/,
    ],
    ["nothing but zeros", (v: number[][]) => [v[0]!, v[1]!.map(() => 0)], /of zeros, or of numbers that are too large/],
    ["too few vectors", (v: number[][]) => [v[0]!], /1 vectors for 2 texts/],
    ["too many vectors", (v: number[][]) => [...v, v[0]!], /3 vectors for 2 texts/],
    ["something that is no vector", () => ["x", "y"], /not a vector/],
  ])("rejects an answer with %s", async (_, vectors, message) => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push({ vectors })
    await expect(embedder.embed(["one", "two"], asDocuments)).rejects.toMatchObject({
      code: "embed_wrong_answer",
      message: expect.stringMatching(message),
    })
  })

  test.each([
    ["text instead of JSON", { status: 200, body: "<html>hello</html>" }, /did not answer in JSON/],
    ["nothing", { status: 200, body: "" }, /did not answer in JSON/],
    ["JSON of another kind", { json: { hello: 1 } }, /unexpected format/],
    ["null", { json: null }, /unexpected format/],
  ])("rejects an answer of %s", async (_, answer, message) => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push(answer)
    await expect(embedder.embed(["one"], asDocuments)).rejects.toThrow(message)
  })

  test("cuts a text that the server finds too long, and embeds the others as they are", async () => {
    const server = await embeddingServer({ longest: 400 })
    const embedder = await opened(provider, server)
    const texts = ["short one", "long ".repeat(200), "short two"]
    const vectors = await embedder.embed(texts, asDocuments)
    expect(vectors).toHaveLength(3)
    const [first, third] = await embedder.embed(["short one", "short two"], asDocuments)
    expect([vectors[0], vectors[2]]).toEqual([first, third])
    expect(cosine(vectors[1]!, (await embedder.embed(["long long"], asDocuments))[0]!)).toBeGreaterThan(0.99)
  })

  test("a query that fails says why, and one that works gives its vector", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push({ status: 401, body: '{"error":"no"}' })
    expect(await embedQuery(embedder, "refresh", 5000)).toMatchObject({ degraded: expect.stringMatching(/refused/) })
    expect(await embedQuery(embedder, "refresh", 5000)).toMatchObject({ vector: expect.any(Float32Array) })
  })

  test("accepts numbers of any size that still have a direction", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push({ vectors: ([v]) => [v!.map((value) => value * 1e150)] })
    const [huge] = await embedder.embed(["hello"], asDocuments)
    expect(cosine(huge!, (await embedder.embed(["hello"], asDocuments))[0]!)).toBeCloseTo(1, 5)
  })

  test("a probe notices a different model under the same name", async () => {
    const first = await (await opened(provider, await embeddingServer())).probe()
    expect(first).toMatchObject({ ok: true, vector: expect.any(Float32Array) })
    const same = await opened(provider, await embeddingServer())
    expect(await same.probe(first.vector)).toMatchObject({ ok: true })
    const changed = await opened(provider, await embeddingServer({ seed: "retrained" }))
    expect(await changed.probe(first.vector)).toMatchObject({
      ok: false,
      reason: expect.stringMatching(/reindex --vectors/),
    })
  })

  test("a probe of a server that is gone is an answer, not an exception", async () => {
    const server = await embeddingServer()
    const embedder = (await openEmbedder(settingsFor(provider, server, { url: await closedUrl(), dims: 64 }), [
      `${provider}:words@-:64:p0`,
    ]))!
    expect(await embedder.probe()).toMatchObject({ ok: false, reason: expect.stringMatching(/Nothing answers at/) })
  })

  test("sends the key, and never repeats it even when the server does", async () => {
    const server = await embeddingServer()
    const apiKey = "sk-very-secret-0123456789"
    const embedder = await opened(provider, server, { apiKey })
    server.next.push({ status: 401, body: JSON.stringify({ error: { message: `Incorrect key: ${apiKey}` } }) })
    const error = await embedder.embed(["x"], asDocuments).catch((error: Error) => error)
    expect(server.requests[0]!.authorization).toBe(`Bearer ${apiKey}`)
    expect(String(error)).toMatch(/refused the key \(401: Incorrect key: \[key\]\)/)
    expect(`${String(error)}${(error as Error).stack}`).not.toContain(apiKey)
  })

  test("does not follow a redirect: the text was not meant for another server", async () => {
    const other = await embeddingServer()
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    server.next.push({ status: 307, headers: { location: `${other.url}/v1/embeddings` } })
    await expect(embedder.embed(["private words"], asDocuments)).rejects.toThrow(/redirects to another address \(307\)/)
    expect(other.requests).toEqual([])
  })

  test("stops when its signal is aborted", async () => {
    const server = await embeddingServer()
    const embedder = await opened(provider, server)
    const stop = new AbortController()
    server.next.push({ hang: true })
    const answer = embedder.embed(["x"], { ...asDocuments, signal: stop.signal })
    stop.abort()
    await expect(answer).rejects.toMatchObject({ code: "embed_stopped" })
  })
})

test("an ollama model that was pulled again gets a new id", async () => {
  const before = await opened("ollama", await embeddingServer({ digest: "aaaaaaaaaaaaaaaa" }))
  const after = await opened("ollama", await embeddingServer({ digest: "bbbbbbbbbbbbbbbb" }))
  expect([before.id, after.id]).toEqual(["ollama:words@aaaaaaaaaaaa:64:p0", "ollama:words@bbbbbbbbbbbb:64:p0"])
})

test("a key does not travel unencrypted to another machine", async () => {
  const settings = { provider: "openai", url: "http://models.example/v1", model: "words", apiKey: "sk-1" } as const
  await expect(openEmbedder(settings)).rejects.toThrow(/models\.example unencrypted/)
})

test("requests fewer dimensions only if the model supports it", async () => {
  const server = await embeddingServer()
  const shortened = await opened("openai", server, { model: "text-embedding-3-small", dims: 64 })
  const plain = await opened("openai", server, { dims: 64 })
  await shortened.embed(["x"], asDocuments)
  await plain.embed(["x"], asDocuments)
  expect(server.requests.map((request) => request.body.dimensions)).toEqual([64, undefined])
  expect(shortened.id).toBe("openai:text-embedding-3-small@-:64:p0")
})

describe("the input of a model", () => {
  const sent = async (model: string, texts: string[], role: "query" | "document") => {
    const server = await embeddingServer()
    await (await opened("openai", server, { model, dims: 64 })).embed(texts, { role })
    return server.requests[0]!.texts
  }

  test.each([
    ["intfloat/multilingual-e5-small", "query: why", "passage: why"],
    ["BAAI/bge-small-en-v1.5", "Represent this sentence for searching relevant passages: why", "why"],
    ["bge-m3", "why", "why"],
    ["nomic-embed-text:v1.5", "search_query: why", "search_document: why"],
    ["snowflake-arctic-embed:33m", "Represent this sentence for searching relevant passages: why", "why"],
    ["snowflake-arctic-embed2", "query: why", "why"],
    ["intfloat/multilingual-e5-large-instruct", "why", "why"],
    ["text-embedding-3-small", "why", "why"],
  ])("%s reads a query and a document as it was trained to", async (model, query, document) => {
    expect(await sent(model, ["why"], "query")).toEqual([query])
    expect(await sent(model, ["why"], "document")).toEqual([document])
  })

  test("contains no more than the model reads, never half a character, and is never empty", async () => {
    const [ascii, chinese, emoji, empty, torn] = await sent(
      "bge-small-en-v1.5",
      ["x".repeat(9999), "更".repeat(9999), "😀".repeat(9999), "  ", "a\ud800b"],
      "document",
    )
    expect(ascii).toHaveLength(1280)
    expect(chinese).toHaveLength(512)
    expect(emoji!.isWellFormed() && emoji!.length <= 512).toBe(true)
    expect(empty).toBe("(empty)")
    expect(torn).toBe("a�b")
  })
})

test("an embedder that ignores its signal still cannot exceed its time limit", async () => {
  const deaf: Embedder = {
    id: "deaf",
    dims: 3,
    maxTokens: 1,
    normalized: true,
    embed: () => new Promise(() => {}),
    probe: async () => ({ ok: true, ms: 0 }),
  }
  expect(await embedQuery(deaf, "hello", 20)).toMatchObject({ degraded: expect.stringMatching(/within 20 ms/) })
})
