import { expect, test } from "vitest"
import { embedQuery, openEmbedder } from "../../src/embed/open-embedder.ts"
import { embeddingServer } from "../support/embedding-server.ts"

test.each(["openai", "ollama"] as const)(
  "%s: a query that takes too long is given up, with the reason, and the connection is closed",
  async (provider) => {
    const server = await embeddingServer()
    const url = provider === "openai" ? `${server.url}/v1` : server.url
    const embedder = (await openEmbedder({ provider, url, model: "words" }))!
    server.next.push({ hang: true })
    const started = performance.now()
    const answer = await embedQuery(embedder, "refresh token", 120)
    expect(answer).toMatchObject({ degraded: expect.stringMatching(/within 120 ms/) })
    expect(performance.now() - started).toBeLessThan(2000)
    await server.closed
  },
)
