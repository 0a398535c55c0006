import { expect, test } from "vitest"
import { openReranker } from "../../src/embed/rerank.ts"
import { embeddingServer } from "../support/embedding-server.ts"

const results = (...scores: [number, number][]) => ({
  json: { results: scores.map(([index, relevance_score]) => ({ index, relevance_score })) },
})

test("returns the score of each text, in the order of the texts", async () => {
  const server = await embeddingServer()
  server.next.push(results([2, 0.9], [0, 0.5], [1, 0.1]))
  const reranker = openReranker({ url: `${server.url}/v1`, model: "judge", apiKey: "sk-1" })
  expect(await reranker.rerank("why", ["a", "b", "c"])).toEqual([0.5, 0.1, 0.9])
  expect(server.requests[0]).toMatchObject({ path: "/v1/rerank", model: "judge", authorization: "Bearer sk-1" })
})

test("rejects an answer that leaves one out, and sends no request for no texts", async () => {
  const server = await embeddingServer()
  const reranker = openReranker({ url: server.url, model: "judge" })
  server.next.push(results([0, 0.5]))
  await expect(reranker.rerank("why", ["a", "b"])).rejects.toThrow(/did not score all of the 2 texts/)
  expect(await reranker.rerank("why", [])).toEqual([])
  expect(server.requests).toHaveLength(1)
})

test("says which settings are missing", () => {
  expect(() => openReranker({ url: "http://127.0.0.1:1" })).toThrow(/rerank\.model/)
})

test("if it is down or wrong, the message names the reranker's address and settings, not the embedder's", async () => {
  const down = openReranker({ url: "http://127.0.0.1:9/v1", model: "judge" })
  const error = await down.rerank("why", ["a", "b"]).catch((reason: Error) => reason.message)
  expect(error).toMatch(/127\.0\.0\.1:9.*fix search\.rerank, or turn reranking off: dex config set search\.rerank off/)
  const server = await embeddingServer()
  server.next.push({ status: 404, json: {} })
  const wrong = openReranker({ url: server.url, model: "judge" })
  await expect(wrong.rerank("why", ["a", "b"])).rejects.toThrow(/Check search\.rerank and rerank\.model/)
})
