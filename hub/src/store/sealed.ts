import { zstdCompressSync, zstdDecompressSync } from "node:zlib"
import type { Effect, Title } from "../../../src/core/conversation.ts"
import type { Usage } from "../../../src/core/usage.ts"
import type { WireHead, WireMessage } from "../../../src/hub-client/wire.ts"
import { seal, unseal } from "./keys.ts"

/** Facts about one message of a chunk, stored encrypted so that the message need not be read. */
export type MessageFacts = {
  n: number
  v: number
  at?: number
  copied?: true
  superseded?: true
  effects?: Effect[]
}

/** `messages` lists for each message its number, its version, whether it is a copy, and the index of its chunk. */
export type SealedHead = {
  title?: Title
  git_branch?: string
  agent_version?: string
  parent?: { id: string; call_id?: string }
  fork_of?: string
  usage?: Usage
  chunks: string[]
  messages: [number: number, version: number, copied: 0 | 1, chunk: number][]
}

export function factsOf(messages: WireMessage[]): MessageFacts[] {
  return messages.map(({ number, version, at, copied, superseded, effects }) => ({
    n: number,
    v: version,
    at,
    copied: copied || undefined,
    superseded: superseded || undefined,
    effects: effects.length > 0 ? effects : undefined,
  }))
}

export function sealedHead(head: WireHead, chunks: { hash: Buffer; facts: MessageFacts[] }[]): SealedHead {
  const { title, git_branch, agent_version, parent, fork_of, usage } = head
  return {
    ...{ title, git_branch, agent_version, parent, fork_of, usage },
    chunks: chunks.map(({ hash }) => hash.toString("hex")),
    messages: chunks.flatMap(({ facts }, chunk) =>
      facts.map(({ n, v, copied }): SealedHead["messages"][number] => [n, v, copied ? 1 : 0, chunk]),
    ),
  }
}

export function sealJson(key: Buffer, value: unknown, purpose: string): Buffer {
  return seal(key, packJson(value), purpose)
}

export function packJson(value: unknown): Buffer {
  return zstdCompressSync(JSON.stringify(value))
}

export function unsealJson<T>(key: Buffer, sealed: Uint8Array, purpose: string): T {
  return JSON.parse(zstdDecompressSync(unseal(key, sealed, purpose)).toString("utf8")) as T
}

/** The purposes of sealed bytes. Bytes that were sealed for one purpose cannot be unsealed for another. */
export const SEAL_PURPOSES = {
  head: "head",
  title: "title",
  facts: "facts",
  chunk: "chunk",
  activity: "activity",
  edits: "edits",
  commit: "commit",
} as const
