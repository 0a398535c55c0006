import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { onTestFinished } from "vitest"
import {
  type CommitRequest,
  type PlanRequest,
  pushDigest,
  unpackChunk,
  type WireHead,
  type WireMessage,
} from "../../src/hub-client/wire.ts"

// A stand-in hub that implements the contract of src/hub-client/wire.ts in memory and on loopback, to test what a network can do
// to a client. The real hub is tested in hub/.

export const TOKEN = "dexh_standin_0123456789abcdef"

export type HubConversation = {
  project: string
  visibility: string
  rev: number
  digest: string
  chunks: string[]
  head: WireHead
}

/** What happens to a call: it gets another answer, or its answer is lost after it was carried out. */
export type Mishap = { status: number; body?: object; headers?: Record<string, string> } | "lost" | "cut" | undefined

export type StandInHub = Awaited<ReturnType<typeof standInHub>>

export async function standInHub(mishap: (call: string) => Mishap = () => undefined) {
  const stored = new Map<string, HubConversation>()
  const chunks = new Map<string, Map<string, Buffer>>()
  const gone = new Set<string>()
  const consents = new Map<string, string[]>()
  const calls: string[] = []
  const bodies: Buffer[] = []
  const hub = {
    stored,
    gone,
    consents,
    calls,
    url: "",
    mishap,
    /** The number of changes that readers of its feed would have seen. */
    commits: 0,
    messagesOf: (name: string): WireMessage[] =>
      (stored.get(name)?.chunks ?? []).flatMap((hash) => unpackChunk(chunks.get(name)!.get(hash)!).messages),
    /** Every byte that was ever received, with chunks decompressed. */
    received: () => bodies.map((body) => plain(body)).join("\n"),
  }
  const server = createServer((request, response) => {
    answer(request, response).catch((error) => {
      response.writeHead(500).end(JSON.stringify({ error: { code: "bug", message: String(error) } }))
    })
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = []
    for await (const piece of request as AsyncIterable<Buffer>) pieces.push(piece)
    const body = Buffer.concat(pieces)
    const { pathname } = new URL(request.url!, "http://hub")
    const call = `${request.method} ${pathname}`
    calls.push(call)
    bodies.push(Buffer.from(request.url!), body)
    const reply = (status: number, value: object, headers: Record<string, string> = {}) => {
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value))
    }
    if (request.headers.authorization !== `Bearer ${TOKEN}`)
      return reply(401, { error: { code: "token", message: "no such token" } })
    const bad = hub.mishap(call)
    if (bad === "cut") return void request.socket.destroy()
    if (typeof bad === "object")
      return reply(bad.status, bad.body ?? { error: { code: "mishap", message: "mishap" } }, bad.headers)
    const [status, value] = carryOut(request.method!, pathname, body)
    if (bad === "lost") return void request.socket.destroy()
    reply(status, value)
  }

  function carryOut(method: string, path: string, body: Buffer): [number, object] {
    const names = path.split("/").slice(2).map(decodeURIComponent)
    const problem = (status: number, code: string): [number, object] => [status, { error: { code, message: code } }]
    if (method === "GET" && names[0] === "me")
      return [200, { tenant: "acme", member: { name: "alice", role: "member" }, scopes: ["push"], projects: [] }]
    if (names[0] === "consents") {
      if (method === "PUT") consents.set(names[1]!, (JSON.parse(String(body)) as { what: string[] }).what)
      else consents.delete(names[1]!)
      return [200, {}]
    }
    if (path === "/v1/push/plan") {
      const { project, conversations } = JSON.parse(String(body)) as PlanRequest
      return [
        200,
        {
          conversations: conversations.map(({ source, id, digest, chunks: wanted }) => {
            const name = `${source}:${id}`
            if (gone.has(name)) return { state: "gone" }
            if (!consents.has(project)) return { state: "refused", why: "You have not agreed to share this project." }
            const has = stored.get(name)
            if (has?.digest === digest && has.project === project) return { state: "have", rev: has.rev }
            const there = chunks.get(name)
            return { state: "send", rev: has?.rev ?? 0, chunks: wanted.filter((hash) => !there?.has(hash)) }
          }),
        },
      ]
    }
    if (path === "/v1/push/commit") {
      const { project, head, digest, chunks: list, parent_rev, visibility } = JSON.parse(String(body)) as CommitRequest
      const name = `${head.source}:${head.id}`
      const has = stored.get(name)
      if (gone.has(name)) return problem(410, "gone")
      if (pushDigest(head, visibility, list) !== digest) return problem(400, "digest")
      if (has?.digest === digest && has.project === project)
        return [200, { rev: has.rev, seq: hub.commits, receipt: digest }]
      if ((has?.rev ?? 0) !== parent_rev) return problem(409, "conflict")
      if (list.some((hash) => !chunks.get(name)?.has(hash))) return problem(409, "conflict")
      hub.commits++
      stored.set(name, { project, visibility, rev: parent_rev + 1, digest, chunks: list, head })
      return [200, { rev: parent_rev + 1, seq: hub.commits, receipt: digest }]
    }
    if (names[0] === "conversations") {
      const name = `${names[1]}:${names[2]}`
      if (method === "DELETE") {
        const was = stored.delete(name)
        chunks.delete(name)
        gone.add(name)
        return was ? [200, {}] : problem(404, "absent")
      }
      const { hash } = unpackChunk(body)
      if (hash !== names[4]) return problem(400, "hash")
      if (!chunks.has(name)) chunks.set(name, new Map())
      chunks.get(name)!.set(hash, body)
      return [200, {}]
    }
    return problem(404, "no such call")
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  hub.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return hub
}

function plain(body: Buffer): string {
  if (body.length < 4 || body.readUInt32LE(0) !== 0xfd2fb528) return body.toString("utf8")
  return unpackChunk(body)
    .messages.map((message) => JSON.stringify(message))
    .join("\n")
}
