import type { Context } from "hono"
import type { TeamQuestion } from "../shards/answer.ts"
import { hashOf, type NodeRoute, verifyNodeRequest } from "../shards/node-call.ts"
import type { NodeShards } from "../shards/pool.ts"
import type { ShardQuestion } from "../shards/remote.ts"
import { HubProblem } from "../store/problem.ts"

type Handler = (c: Context) => Promise<Response>
export type NodeRoutes = Record<NodeRoute, Handler>

/** The maximum size of a request, in bytes. A scope lists every conversation that a member may read, which can be millions. */
const MAX_BYTES = 64 << 20

/** The routes for other nodes. The caller is authenticated before the body is read. */
export function nodeRoutes({
  masterKey,
  self,
  shards,
}: {
  masterKey: Buffer
  self: string
  shards: NodeShards
}): NodeRoutes {
  const authenticated =
    <Question>(route: NodeRoute, answer: (question: Question) => Promise<unknown>): Handler =>
    async (c) => {
      const caller = verifyNodeRequest(masterKey, { route, to: self, header: (name) => c.req.header(name) })
      if (!caller) throw new HubProblem(401, "unauthorized", "Only nodes of this hub may send this.")
      if (!(Number(c.req.header("content-length")) <= MAX_BYTES))
        throw new HubProblem(413, "too_large", "The request is too large.")
      const body = await c.req.text()
      if (hashOf(body) !== caller.hash)
        throw new HubProblem(401, "unauthorized", "The body does not match its signature.")
      return c.json((await answer(JSON.parse(body))) as object)
    }
  return {
    index: authenticated("index", (question: ShardQuestion) => shards.askShard(question)),
    lines: authenticated("lines", ({ viewer, input }: Omit<TeamQuestion, "tool">) =>
      shards.askLines({ viewer, input }),
    ),
  }
}
