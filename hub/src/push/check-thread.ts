import { parentPort } from "node:worker_threads"
import { unpackChunk } from "../../../src/hub/wire.ts"
import { HubProblem } from "../store/problem.ts"
import { factsOf, packJson } from "../store/sealed.ts"
import { messagesIn, secretsIn } from "./incoming.ts"

// Unpacks and looks at chunks, one after the other, away from the thread that answers requests.

/** Without a hash it is a chunk that the hub has already, looked at again by newer rules. */
export type ToCheck = { id: number; data: Uint8Array; hash?: string }
export type CheckedChunk = { plainBytes: number; facts: Uint8Array }
export type FromCheck =
  | ({ id: number } & CheckedChunk)
  | { id: number; rules: string[] }
  | { id: number; problem: { status: number; code: string; message: string; rules?: string[] } }

parentPort!.on("message", ({ id, hash, data }: ToCheck) => parentPort!.postMessage({ id, ...looked(hash, data) }))

function looked(hash: string | undefined, data: Uint8Array) {
  try {
    if (hash === undefined) return { rules: secretsIn(unpackChunk(data).messages) }
    const { messages, plainBytes } = messagesIn(hash, data)
    return { plainBytes, facts: packJson(factsOf(messages)) }
  } catch (error) {
    if (!(error instanceof HubProblem)) throw error
    const { status, code, message, rules } = error
    return { problem: { status, code, message, ...(rules && { rules }) } }
  }
}
