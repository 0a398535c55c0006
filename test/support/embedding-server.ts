import { createHash } from "node:crypto"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"

// A weak model that hashes words and their beginnings. The same text gives the same vector on every machine, and texts that share
// words give similar ones.

export function hashedVector(text: string, dims: number, seed = "", synonyms: Record<string, string> = {}): number[] {
  const vector = new Array<number>(dims).fill(0)
  const words = text.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? ["nothing"]
  for (const word of words.map((one) => synonyms[one] ?? one))
    for (const [piece, weight] of [
      [word, 1],
      [word.slice(0, 4), 0.5],
    ] as const) {
      const hash = createHash("sha256").update(`${seed}${piece}`).digest()
      for (let i = 0; i < 8; i++) vector[hash.readUInt16LE(i * 2) % dims]! += hash[16 + i]! & 1 ? weight : -weight
    }
  return vector
}

export type EmbeddingRequest = {
  path: string
  model: string
  texts: string[]
  authorization?: string
  body: Record<string, unknown>
}

export type EmbeddingServer = {
  url: string
  requests: EmbeddingRequest[]
  /** What to do with the next requests instead of answering them. After that, the server answers again. */
  next: Misbehaviour[]
  /** Resolves when the client gives up a request that was left hanging. */
  closed: Promise<void>
}

export type Misbehaviour =
  | { status: number; headers?: Record<string, string>; body?: string }
  | { hang: true }
  | { vectors: (vectors: number[][]) => unknown[] }
  | { json: unknown }

type EmbeddingServerOptions = {
  dims?: number
  seed?: string
  digest?: string
  longest?: number
  /** Words that mean the same to the model. */
  synonyms?: Record<string, string>
}

export async function embeddingServer(options: EmbeddingServerOptions = {}): Promise<EmbeddingServer> {
  const { dims = 64, seed = "", digest = "sha256:0123456789abcdef", longest = Number.POSITIVE_INFINITY } = options
  const gone = Promise.withResolvers<void>()
  const state: EmbeddingServer = { url: "", requests: [], next: [], closed: gone.promise }
  const server = createServer(async (request, response) => {
    if (request.url === "/api/tags")
      return send(response, 200, {
        models: [
          { name: "words:latest", digest },
          { name: "other", digest: "ff" },
        ],
      })
    const body = await readBody(request)
    const texts = (body.input ?? body.documents) as string[]
    const authorization = request.headers.authorization
    state.requests.push({
      path: request.url!,
      model: String(body.model),
      texts,
      body,
      ...(authorization && { authorization }),
    })
    const odd = state.next.shift()
    if (odd && "hang" in odd) return void response.once("close", () => gone.resolve())
    if (odd && "status" in odd) {
      response.writeHead(odd.status, { "retry-after": "0", ...odd.headers })
      return void response.end(odd.body ?? "")
    }
    if (odd && "json" in odd) return send(response, 200, odd.json)
    if (texts.some((text) => text.length > longest))
      return send(response, 400, { error: { message: `This model's maximum context length is ${longest} tokens` } })
    if (request.url === "/rerank") return send(response, 200, { results: rerankByLength(texts) })
    const real = texts.map((text) => hashedVector(text, dims, seed, options.synonyms))
    const vectors = odd && "vectors" in odd ? odd.vectors(real) : real
    if (request.url === "/v1/embeddings") {
      // In reverse: the order is given by `index`, not by the position.
      const data = vectors.map((embedding, index) => ({ object: "embedding", index, embedding })).reverse()
      return send(response, 200, { object: "list", data, model: body.model })
    }
    if (request.url === "/api/embed") return send(response, 200, { model: body.model, embeddings: vectors })
    send(response, 404, { error: "no such address" })
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return state
}

/** A model that prefers long texts. */
function rerankByLength(texts: string[]): { index: number; relevance_score: number }[] {
  return texts.map((text, index) => ({ index, relevance_score: text.length / 1000 })).reverse()
}

/** An address at which nobody listens. */
export async function closedUrl(): Promise<string> {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  await new Promise((resolve) => server.close(resolve))
  return `http://127.0.0.1:${port}`
}

async function readBody(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return JSON.parse(Buffer.concat(chunks).toString("utf8") || "{}") as Record<string, unknown>
}

function send(response: ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" })
  response.end(JSON.stringify(value))
}
