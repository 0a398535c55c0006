import { createHash, timingSafeEqual } from "node:crypto"
import { isNetError, send } from "../../../src/net/client.ts"
import { sealedName } from "../store/keys.ts"
import { ShardUnavailableError } from "./merged.ts"

// Nodes sign their calls to each other with the master key, which only nodes have. The signature covers the time, the called
// node, the route and the body.

/** The routes that nodes call on each other. */
export type NodeRoute = "index" | "lines"
export type NodeAddress = { name: string; url: string | null }

/** How much the clocks of two nodes may differ, in milliseconds. */
const CLOCK_MS = 60_000
/** How long a node that timed out is not called, in milliseconds, so that not every question waits for it. */
const SILENT_MS = 3_000
const MAX_BYTES = 64 << 20
const HEADERS = { time: "x-dex-hub-time", hash: "x-dex-hub-hash", signature: "x-dex-hub-sign" }

/** Calls a node. Rejects with a ShardUnavailableError if it does not answer, or refuses. */
export type CallNode = (node: NodeAddress, route: NodeRoute, question: object, ms: number) => Promise<unknown>

export function createNodeCaller(masterKey: Buffer): CallNode {
  const silent = new Map<string, number>()
  return async ({ name, url }, route, question, ms) => {
    if (url === null || (silent.get(url) ?? 0) > Date.now()) throw new ShardUnavailableError()
    const body = JSON.stringify(question)
    const [time, hash] = [String(Date.now()), hashOf(body)]
    const signature = signatureOf(masterKey, { time, hash, route, to: name }).toString("hex")
    const headers = { "content-type": "application/json", [HEADERS.time]: time, [HEADERS.hash]: hash }
    try {
      const signedHeaders = { ...headers, [HEADERS.signature]: signature }
      const reply = await send({
        url: `${url}/internal/${route}`,
        headers: signedHeaders,
        body,
        timeoutMs: ms,
        mostBytes: MAX_BYTES,
      })
      if (reply.status >= 200 && reply.status < 300) return JSON.parse(await reply.text())
      reply.discard()
    } catch (error) {
      if (isNetError(error) && error.reason === "timeout") silent.set(url, Date.now() + SILENT_MS)
    }
    throw new ShardUnavailableError()
  }
}

/** Verifies that another node sent this request just now. Returns the signed hash of the body, which the caller must check. */
export function verifyNodeRequest(
  masterKey: Buffer,
  request: { route: NodeRoute; to: string; header(name: string): string | undefined },
): { hash: string } | undefined {
  const [time = "", hash = "", signature = ""] = [HEADERS.time, HEADERS.hash, HEADERS.signature].map(request.header)
  if (!/^\d{1,15}$/.test(time) || !/^[0-9a-f]{64}$/.test(signature)) return undefined
  const expected = signatureOf(masterKey, { time, hash, route: request.route, to: request.to })
  const isValid = timingSafeEqual(expected, Buffer.from(signature, "hex"))
  return isValid && Math.abs(Date.now() - Number(time)) <= CLOCK_MS ? { hash } : undefined
}

export function hashOf(body: string): string {
  return createHash("sha256").update(body).digest("hex")
}

function signatureOf(masterKey: Buffer, call: { time: string; hash: string; route: NodeRoute; to: string }): Buffer {
  return sealedName(sealedName(masterKey, "between nodes"), [call.time, call.to, call.route, call.hash].join("\n"))
}
