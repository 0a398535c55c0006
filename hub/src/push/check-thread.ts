import { unpackChunk } from "../../../src/hub-client/wire.ts"
import { serveOrders } from "../../../src/subprocess/serve.ts"
import { HubProblem } from "../store/problem.ts"
import { factsOf, packJson } from "../store/sealed.ts"
import { readMessages, secretRulesIn } from "./incoming.ts"

/**
 * A chunk to decompress and check in this thread, away from the one that answers requests. Without a hash, it is a stored chunk
 * that is only scanned again, by newer rules.
 */
export type ChunkToCheck = { data: Uint8Array; hash?: string }
export type CheckedChunk = { plainBytes: number; facts: Uint8Array }
export type CheckResult =
  | CheckedChunk
  | { rules: string[] }
  | { problem: { status: number; code: string; message: string; rules?: string[] } }

serveOrders(checkChunk)

function checkChunk({ hash, data }: ChunkToCheck): CheckResult {
  try {
    if (hash === undefined) return { rules: secretRulesIn(unpackChunk(data).messages) }
    const { messages, plainBytes } = readMessages(hash, data)
    return { plainBytes, facts: packJson(factsOf(messages)) }
  } catch (error) {
    if (!(error instanceof HubProblem)) throw error
    const { status, code, message, rules } = error
    return { problem: { status, code, message, rules } }
  }
}
