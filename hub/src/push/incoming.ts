import { ROLES } from "../../../src/core/conversation.ts"
import { isRecord, type RawRecord } from "../../../src/core/record.ts"
import { choice, flag, integer, listOf, object, optional, readAs, type Schema, text } from "../../../src/core/schema.ts"
import { SHAREABLE } from "../../../src/hub-client/outgoing.ts"
import {
  type CommitRequest,
  isTooLarge,
  MAX_CHUNK_BYTES,
  MAX_CHUNK_PLAIN,
  MAX_PLANNED,
  maxPlain,
  type PlanRequest,
  unpackChunk,
  type WireMessage,
} from "../../../src/hub-client/wire.ts"
import { redactRecord } from "../../../src/redact/redact.ts"
import { LEVELS, type Level } from "../store/access.ts"
import { HubProblem } from "../store/problem.ts"

// Clients are not trusted: the shape of everything they send is checked before it is used.

const SOURCE_ID = /^[a-z][a-z0-9_]{0,40}$/
const HASH = /^[0-9a-f]{64}$/

const planSchema = object({
  project: text(),
  conversations: listOf(object({ source: text(), id: text(), digest: text(), chunks: listOf(text()) })),
})

/** The highest value of a conversation's counts. Like sizes and revisions, they must fit into a column of 32 bits. */
export const MAX_COUNTED = 1_000_000
const countSchema = () => integer(undefined, { minimum: 0, maximum: MAX_COUNTED })
const sizeSchema = () => integer(undefined, { minimum: 0, maximum: 2_000_000_000 })
/** The latest time that is accepted, in milliseconds: the end of the year 9999. */
const MAX_TIME_MS = 253_402_300_799_999
const timeSchema = () => integer(undefined, { minimum: 0, maximum: MAX_TIME_MS })
const MAX_USAGE_NUMBER = 1e15

/** The usage as the laptop recorded it. Providers count different things, so only the numbers in it are checked. */
const usageSchema: Schema<Record<string, unknown>> = { type: "object", additionalProperties: true }

const headSchema = object({
  source: text(),
  id: text(),
  kind: choice(["person", "subagent", "automation", "dex", "note"]),
  title: optional(object({ text: text(), from: text() })),
  git_branch: optional(text()),
  agent_version: optional(text()),
  parent: optional(object({ id: text(), call_id: optional(text()) })),
  fork_of: optional(text()),
  started_at: optional(timeSchema()),
  ended_at: optional(timeSchema()),
  models: listOf(text()),
  usage: optional(usageSchema),
  message_count: countSchema(),
  superseded: flag(),
  copied_count: countSchema(),
  estimated_tokens: sizeSchema(),
  text_bytes: sizeSchema(),
  redaction_version: countSchema(),
})

export const commitSchema = object({
  project: text(),
  digest: text(),
  chunks: listOf(text()),
  parent_rev: sizeSchema(),
  visibility: choice(["private", "project", "org"]),
  head: headSchema,
})

const consentSchema = object({ what: listOf(choice(SHAREABLE)) })

export function readConsent(body: unknown): string[] {
  return readShape<{ what: string[] }>(consentSchema, body).what
}

const grantSchema = object({ level: choice(LEVELS) })
const decisionSchema = object({ decision: choice(["approve", "deny"] as const) })

export function readLevel(body: unknown): Level {
  return readShape<{ level: Level }>(grantSchema, body).level
}

export function readDecision(body: unknown): "approve" | "deny" {
  return readShape<{ decision: "approve" | "deny" }>(decisionSchema, body).decision
}

export function readPlan(body: unknown): PlanRequest {
  const plan = readShape<PlanRequest>(planSchema, body)
  if (plan.conversations.length > MAX_PLANNED)
    throw invalidProblem(`A plan can have at most ${MAX_PLANNED} conversations.`)
  for (const { source, id, digest, chunks } of plan.conversations) {
    checkName(source, id)
    checkHashes([digest, ...chunks])
  }
  return plan
}

export function readCommit(body: unknown): CommitRequest {
  const commit = readShape<CommitRequest>(commitSchema, body)
  const { head } = commit
  if (!everyNumber(head.usage, (value) => value >= 0 && value <= MAX_USAGE_NUMBER))
    throw invalidProblem("usage contains an impossible number.")
  checkName(head.source, head.id)
  checkHashes([commit.digest, ...commit.chunks])
  // Only the head is searched for secrets: it has the title and other text. The other fields are names and hashes.
  refuseSecrets(secretRulesIn([head]))
  return commit
}

export function checkName(source: string, id: string): void {
  // PostgreSQL cannot store NUL in a text.
  if (!SOURCE_ID.test(source) || id === "" || id.length > 1000 || id.includes("\0"))
    throw invalidProblem(`${JSON.stringify(`${source}:${id}`.slice(0, 100))} is not a valid name for a conversation.`)
}

/** The maximum number of messages in a chunk. A laptop starts another chunk long before this. */
const MAX_MESSAGES = 4_000

/** Returns the messages of a chunk after checking its hash, shape and text. This takes long, so it runs in a thread. */
export function readMessages(hash: string, data: Uint8Array): { messages: WireMessage[]; plainBytes: number } {
  const chunk = unpack(data)
  if (chunk.hash !== hash) throw invalidProblem("The chunk does not have this hash.")
  if (chunk.messages.length > MAX_MESSAGES) throw tooLargeProblem(`A chunk can have at most ${MAX_MESSAGES} messages.`)
  const wrongIndex = chunk.messages.findIndex((message) => !isMessage(message))
  if (wrongIndex >= 0) throw invalidProblem(`Line ${wrongIndex + 1} of the chunk is not a message.`)
  refuseSecrets(secretRulesIn(chunk.messages))
  return chunk
}

/** Checks everything that can be checked before the chunk is decompressed. */
export function checkPackedChunk(hash: string, data: Uint8Array): void {
  checkHashes([hash])
  if (data.length > MAX_CHUNK_BYTES) throw tooLargeProblem(`A chunk can have at most ${MAX_CHUNK_BYTES} bytes.`)
}

function unpack(data: Uint8Array): ReturnType<typeof unpackChunk> {
  try {
    return unpackChunk(data, maxPlain(data.length))
  } catch (error) {
    if (isTooLarge(error))
      throw tooLargeProblem(
        `A chunk may decompress to at most ${MAX_CHUNK_PLAIN >> 20} MB, and to 50 times what was sent. A newer dex sends smaller ones: update dex, then push again.`,
      )
    throw invalidProblem("The chunk cannot be decompressed.") // the kind of damage does not matter
  }
}

function tooLargeProblem(message: string): HubProblem {
  return new HubProblem(413, "too_large", message)
}

function isMessage(message: unknown): boolean {
  if (!isRecord(message)) return false
  const { number, version, role, at, parts, effects } = message
  return (
    isWithin(number, MAX_NUMBER) &&
    isWithin(version, Number.MAX_SAFE_INTEGER) &&
    (ROLES as readonly unknown[]).includes(role) &&
    (at === undefined || isWithin(at, MAX_TIME_MS)) &&
    everyNumber(message, (value) => Math.abs(value) <= Number.MAX_SAFE_INTEGER) &&
    Array.isArray(parts) &&
    parts.every(
      (part) =>
        isRecord(part) && typeof part.type === "string" && typeof part.text === "string" && areHunks(part.hunks),
    ) &&
    Array.isArray(effects) &&
    effects.every((effect) => isRecord(effect) && typeof effect.type === "string")
  )
}

const HUNK_NUMBERS = ["old_start", "old_lines", "new_start", "new_lines"]
/** The highest line number in a file, and the highest message number in a conversation. */
const MAX_NUMBER = 1_000_000_000

function areHunks(hunks: unknown): boolean {
  if (hunks === undefined) return true
  if (!Array.isArray(hunks)) return false
  return hunks.every((hunk) => isRecord(hunk) && HUNK_NUMBERS.every((name) => isWithin(hunk[name], MAX_NUMBER)))
}

function isWithin(value: unknown, max: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= max
}

/** True if all numbers in a value, at any depth, pass. JSON.parse reads 1e400 as Infinity. */
function everyNumber(value: unknown, isValid: (number: number) => boolean): boolean {
  if (typeof value === "number") return isValid(value)
  return typeof value !== "object" || value === null || Object.values(value).every((one) => everyNumber(one, isValid))
}

/** The names of the rules that match something in `values`, by this hub's version of the rules. Changes the values. */
export function secretRulesIn(values: readonly object[]): string[] {
  const rules = values.flatMap((value) => Object.keys(redactRecord(value as RawRecord).redactions))
  return [...new Set(rules)]
}

function refuseSecrets(rules: string[]): void {
  if (rules.length === 0) return
  const names = rules.join(", ")
  throw new HubProblem(
    422,
    "secret",
    `The request contains what looks like a secret (${names}), so nothing was stored.`,
    {
      rules,
    },
  )
}

function checkHashes(hashes: string[]): void {
  if (!hashes.every((hash) => HASH.test(hash))) throw invalidProblem("A digest must be 64 hexadecimal digits.")
}

function readShape<T>(schema: Schema, body: unknown): T {
  const result = readAs(schema, body)
  if ("wrong" in result) throw invalidProblem(result.wrong)
  return result.ok as T
}

function invalidProblem(message: string): HubProblem {
  return new HubProblem(400, "invalid", message)
}
