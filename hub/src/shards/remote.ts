import { randomUUID } from "node:crypto"
import type { DocId } from "../../../src/store/index/doc-id.ts"
import type { SearchIndex } from "../../../src/store/index/search-index.ts"
import { askedOnly } from "./asked-only.ts"
import type { ShardName } from "./files.ts"
import type { ShardScope } from "./local.ts"
import { ShardMissing } from "./merged.ts"
import type { CallNode, NodeAddress } from "./node-call.ts"

// A shard of another node as an index: each of its questions is one request there.

const ASKED = [
  ...["find", "newest", "holding", "unspoken", "count", "countConversations", "sizes", "words", "wordsOfLength"],
  "followed",
] as const
type AskedMethod = (typeof ASKED)[number]

/** `scope`: what the first wall computed. Its names are sent where the other node does not know this version of it. */
export type ShardQuestion = ShardName & {
  method: string
  args: unknown[]
  scope: { by: string; member: number; version: number; names?: string[] }
}
export type ShardAnswer = { answer: unknown } | { missing: "shard" | "scope" }

/** Tells the versions of this thread from those of others. */
const BY = randomUUID()

export function remoteIndex(
  call: CallNode,
  node: NodeAddress,
  { of, scope, ms }: { of: ShardName; scope: ShardScope; ms: number },
): SearchIndex {
  const known = { by: BY, member: scope.of.member, version: scope.version }
  const ask = async (method: AskedMethod, args: unknown[]): Promise<unknown> => {
    const send = (sent: ShardQuestion["scope"]) =>
      call(node, "index", { ...of, method, args, scope: sent } satisfies ShardQuestion, ms) as Promise<ShardAnswer>
    let said = await send(known)
    if ("missing" in said && said.missing === "scope") said = await send({ ...known, names: [...scope.names!] })
    if ("missing" in said) throw new ShardMissing()
    return said.answer
  }
  const asked = Object.fromEntries(ASKED.map((method) => [method, (...args: unknown[]) => ask(method, args)])) as Pick<
    SearchIndex,
    "find" | "newest" | "count" | "countConversations" | "sizes" | "words" | "wordsOfLength"
  >
  return {
    ...askedOnly,
    ...asked,
    holding: async (...args) => new Set((await ask("holding", args)) as DocId[]),
    unspoken: async (...args) => new Set((await ask("unspoken", args)) as number[]),
    followed: async () => ((await ask("followed", [])) as string | null) ?? undefined,
    isBehind: () => Promise.reject(new Error("Whether a shard is behind is known to its own node.")),
  }
}

/** The other end: `index` has the scope already. */
export async function answerCall(index: SearchIndex, { method, args }: ShardQuestion): Promise<unknown> {
  if (!(ASKED as readonly string[]).includes(method))
    throw new Error("A node asked something that this one does not know.")
  // JSON has no undefined.
  const given = args.map((arg) => arg ?? undefined)
  const answer = await (index[method as AskedMethod] as (...of: unknown[]) => Promise<unknown>)(...given)
  return answer instanceof Set ? [...answer] : (answer ?? null)
}
