import { randomUUID } from "node:crypto"
import type { DocId } from "../../../src/store/index/doc-id.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import type { ShardName } from "./files.ts"
import type { ShardScope } from "./local.ts"
import { ShardUnavailableError } from "./merged.ts"
import type { CallNode, NodeAddress } from "./node-call.ts"
import { unsupportedMethods } from "./not-offered.ts"

/**
 * The methods of an index on another node, with the names that nodes send to each other. `containing` is called `holding` there.
 * Each call is one request.
 */
const REMOTE_METHODS = [
  ...["find", "newest", "holding", "unspoken", "count", "countConversations", "sizes", "words", "wordsOfLength"],
  "followed",
] as const
type RemoteMethod = (typeof REMOTE_METHODS)[number]

/**
 * A call to a shard of another node. `scope` is the result of the first access check. Its names are sent only if the other node
 * does not have this version of the scope.
 */
export type ShardQuestion = ShardName & {
  method: string
  args: unknown[]
  scope: { by: string; member: number; version: number; names?: string[] }
}
export type ShardAnswer = { answer: unknown } | { missing: "shard" | "scope" }

/** Identifies this thread, because every thread counts the versions of its scopes itself. */
const THREAD_ID = randomUUID()

export function remoteIndex(
  call: CallNode,
  node: NodeAddress,
  { of, scope, ms }: { of: ShardName; scope: ShardScope; ms: number },
): SearchIndex {
  const scopeName = { by: THREAD_ID, member: scope.of.member, version: scope.version }
  const ask = async (method: RemoteMethod, args: unknown[]): Promise<unknown> => {
    const send = (sentScope: ShardQuestion["scope"]) =>
      call(node, "index", { ...of, method, args, scope: sentScope } satisfies ShardQuestion, ms) as Promise<ShardAnswer>
    let reply = await send(scopeName)
    if ("missing" in reply && reply.missing === "scope") reply = await send({ ...scopeName, names: [...scope.names!] })
    if ("missing" in reply) throw new ShardUnavailableError()
    return reply.answer
  }
  const methods = Object.fromEntries(
    REMOTE_METHODS.map((method) => [method, (...args: unknown[]) => ask(method, args)]),
  ) as Pick<SearchIndex, "find" | "newest" | "count" | "countConversations" | "sizes" | "words" | "wordsOfLength">
  return {
    ...unsupportedMethods,
    ...methods,
    containing: async (...args) => new Set((await ask("holding", args)) as DocId[]),
    unspoken: async (...args) => new Set((await ask("unspoken", args)) as number[]),
    followed: async () => ((await ask("followed", [])) as string | null) ?? undefined,
    isBehind: () => Promise.reject(new Error("Only a shard's own node knows whether it is up to date.")),
  }
}

/** Answers a call of another node. `index` is already limited to the scope. */
export async function answerCall(index: SearchIndex, { method, args }: ShardQuestion): Promise<unknown> {
  if (!(REMOTE_METHODS as readonly string[]).includes(method))
    throw new Error("Another node called a method that this one does not know.")
  // JSON has no undefined, so null stands for it.
  const values = args.map((arg) => arg ?? undefined)
  const ownMethod = method === "holding" ? "containing" : (method as Exclude<RemoteMethod, "holding">)
  const answer = await (index[ownMethod] as (...args: unknown[]) => Promise<unknown>)(...values)
  return answer instanceof Set ? [...answer] : (answer ?? null)
}
