import {
  type CommitResponse,
  chunksOf,
  type PlanResponse,
  pushDigest,
  type WireHead,
  type WireMessage,
} from "../../../src/hub-client/wire.ts"
import { request } from "./server.ts"
import { API } from "./share.ts"

export type Sender = { url: () => string; token: string; signal?: () => AbortSignal | undefined }

export class PushRefused extends Error {
  readonly status: number

  constructor(status: number, body: unknown) {
    super(JSON.stringify(body))
    this.status = status
  }
}

/** Pushes over HTTP like a laptop, from the beginning each time, without state between two tries. Returns the revision. */
export async function pushOver(
  { url, token, signal }: Sender,
  head: WireHead,
  messages: WireMessage[],
): Promise<number | undefined> {
  const send = async <T>(method: string, path: string, body: unknown): Promise<T> => {
    const answer = await request(url(), token, method, path, body, signal?.())
    if (answer.status >= 400) throw new PushRefused(answer.status, answer.body)
    return answer.body as T
  }
  const chunks = [...chunksOf(messages)]
  const hashes = chunks.map(({ hash }) => hash)
  const digest = pushDigest(head, "project", hashes)
  const { source, id } = head
  const { conversations } = await send<PlanResponse>("POST", "/v1/push/plan", {
    project: API,
    conversations: [{ source, id, digest, chunks: hashes }],
  })
  const [plan] = conversations
  if (plan!.state === "have") return plan!.rev
  if (plan!.state !== "send") throw new Error(JSON.stringify(plan))
  for (const { hash, data } of chunks)
    if (plan!.chunks.includes(hash)) await send("PUT", `/v1/conversations/${source}/${id}/chunks/${hash}`, data)
  const commit = { project: API, digest, chunks: hashes, parent_rev: plan!.rev, visibility: "project", head }
  return (await send<CommitResponse>("POST", "/v1/push/commit", commit)).rev
}
