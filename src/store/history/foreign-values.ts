import { type Effect, type Kind, type Message, type Part, ROLES, type Title } from "../../core/conversation.ts"
import {
  isDeeperThan,
  isRecord,
  isValidTime,
  MAX_DEPTH,
  number,
  parseObject,
  type RawRecord,
} from "../../core/record.ts"
import {
  choice,
  decimal,
  flag,
  integer,
  listOf,
  object,
  optional,
  readAs,
  type Schema,
  text,
} from "../../core/schema.ts"
import type { Usage } from "../../core/usage.ts"

// Checks the values in a file that a user provided. SQLite stores any type in any column, so each value is checked before it is
// used. Nothing here throws.

/** The maximum length of a path, key or name, in characters: longer than any system allows. */
const MAX_NAME_LENGTH = 8_192
const MAX_ID_LENGTH = 512
const MAX_TEXT_LENGTH = 64 << 20
const MAX_ITEMS = 100_000
/** The highest message number that a ref can express. */
const MAX_MESSAGE_NUMBER = 999_999_999

/** Accepts a text of limited length without control characters. */
export function cleanName(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= MAX_NAME_LENGTH && !/[\x00-\x08\x0b-\x1f\x7f]/.test(value)
    ? value
    : undefined
}

/** Accepts an agent's id for a conversation. The id becomes part of refs and of paths, so it must not lead out of a folder. */
export function cleanId(value: unknown): string | undefined {
  const name = cleanName(value)
  if (name === undefined || name === "" || name.length > MAX_ID_LENGTH) return undefined
  return /[\s#]|(^|[/\\])\.\.?([/\\]|$)/.test(name) ? undefined : name
}

/** Accepts an absolute path from any operating system. */
export function absoluteFolder(value: unknown): string | undefined {
  const name = cleanName(value)
  return name !== undefined && /^(\/|[A-Za-z]:[\\/]|\\\\)/.test(name) ? name : undefined
}

export function boundedText(value: unknown): string | undefined {
  return typeof value === "string" && value.length <= MAX_TEXT_LENGTH ? value : undefined
}

export function parseTime(value: unknown): number | undefined {
  return isValidTime(value) ? Math.round(value) : undefined
}

export function nonNegativeInteger(value: unknown, max = Number.MAX_SAFE_INTEGER): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 && value <= max ? value : undefined
}

export function messageNumber(value: unknown): number | undefined {
  const parsed = nonNegativeInteger(value, MAX_MESSAGE_NUMBER)
  return parsed === 0 ? undefined : parsed
}

const KEY_BYTES = 12

/** Accepts a message's key: a hash of a fixed length, made from the id of the agent's record. */
export function messageKey(value: unknown): Buffer | undefined {
  return Buffer.isBuffer(value) && value.length === KEY_BYTES ? value : undefined
}

const KINDS: readonly Kind[] = ["person", "subagent", "automation", "dex"]

/** Accepts `note` only for conversations stored with the notes. Older versions of dex used a different kind for them. */
export function knownKind(value: unknown, isAmongNotes: boolean): Kind | undefined {
  return isAmongNotes && value === "note" ? "note" : KINDS.find((kind) => kind === value)
}

export function knownRole(value: unknown): Message["role"] | undefined {
  return ROLES.find((role) => role === value && role !== "document")
}

const TITLE_ORIGINS: readonly Title["from"][] = ["person", "agent", "summary", "plan", "commit", "first_prompt"]

export function titleFrom(value: unknown): Title["from"] | undefined {
  return TITLE_ORIGINS.find((from) => from === value)
}

/** Parses a JSON list of names and drops items that are not names. Returns undefined for anything else. */
export function parseNames(value: unknown): string[] | undefined {
  const list = parseJson(value)
  if (!Array.isArray(list) || list.length > MAX_ITEMS) return undefined
  return list.flatMap((item) => cleanName(item) ?? [])
}

/** Parses counts by name, such as `{"token": 3}`. */
export function parseCounts(value: unknown): Record<string, number> | undefined {
  const counts = parseJson(value)
  if (!isRecord(counts) || Object.values(counts).some((count) => nonNegativeInteger(count) === undefined))
    return undefined
  return counts as Record<string, number>
}

export function parseSkipped(value: unknown): { reason: string; where: string }[] | undefined {
  const list = readAs(listOf(object({ reason: text(), where: text() })), parseJson(value))
  return "ok" in list ? list.ok : undefined
}

/** Returns undefined if the value is not JSON or is nested too deeply. */
export function parseJson(value: unknown): unknown {
  if (typeof value !== "string" || value.length > MAX_TEXT_LENGTH) return undefined
  try {
    const parsed: unknown = JSON.parse(value)
    return isDeeperThan(parsed, MAX_DEPTH) ? undefined : parsed
  } catch {
    return undefined
  }
}

/** Parses a line of JSON. Returns undefined if it is not an object, is too long or is nested too deeply. */
export function parseRecord(line: string): RawRecord | undefined {
  const record = line.length <= MAX_TEXT_LENGTH ? parseObject(line) : undefined
  return record && !isDeeperThan(record, MAX_DEPTH) ? record : undefined
}

const ORIGINS = ["person", "agent", "local_tool", "web", "injected", "document"] as const
/** Accepts additional fields, because a newer dex may add some. */
const openObject = (fields: Record<string, Schema>): Schema => ({ ...object(fields), additionalProperties: true })
const HUNK_SCHEMA = openObject({
  path: text(),
  old_start: integer(),
  old_lines: integer(),
  new_start: integer(),
  new_lines: integer(),
  lines: listOf(text()),
})
const PART_SCHEMA = openObject({
  type: choice(["text", "thinking", "tool_call", "tool_result", "image", "summary"]),
  text: text(),
  origin: choice(ORIGINS),
  tool: optional(text()),
  call_id: optional(text()),
  is_error: optional(flag()),
  hunks: optional(listOf(HUNK_SCHEMA)),
  mime: optional(text()),
  bytes: optional(decimal()),
  sha256: optional(text()),
})
const EFFECT_SCHEMAS: Record<Effect["type"], Schema> = {
  file: openObject({
    type: text(),
    path: text(),
    action: choice(["edited", "read", "mentioned"]),
    call_id: optional(text()),
    added: optional(integer()),
    removed: optional(integer()),
  }),
  command: openObject({
    type: text(),
    command: text(),
    call_id: optional(text()),
    exit_status: optional(integer()),
    failed: optional(flag()),
    error: optional(text()),
  }),
  commit: openObject({
    type: text(),
    hash: text(),
    subject: text(),
    branch: optional(text()),
    call_id: optional(text()),
  }),
  pull_request: openObject({ type: text(), url: text() }),
}

/** The maximum of each amount in an answer's usage, in tokens or dollars: more than any model ever used or cost. */
const MAX_AMOUNT = 1e12

/** Parses a message's stored content. Returns undefined if its parts are invalid; `dropped` describes other invalid fields. */
export function parseBody(
  record: RawRecord,
): (Pick<Message, "model" | "parts" | "effects" | "usage"> & { dropped: string[] }) | undefined {
  const parts = readAs(listOf(PART_SCHEMA), record.parts)
  if ("wrong" in parts) return undefined
  const dropped: string[] = []
  const keepIfValid = <T>(value: unknown, checked: T | undefined, description: string): T | undefined => {
    if (value !== undefined && checked === undefined) dropped.push(description)
    return checked
  }
  const model = keepIfValid(record.model, cleanName(record.model), "model names")
  const usage = keepIfValid(record.usage, plausibleUsage(record.usage), "token counts")
  const effects = keepIfValid(record.effects, knownEffects(record.effects), "lists of files and commands")
  return {
    model,
    parts: parts.ok as Part[],
    effects,
    usage,
    dropped,
  }
}

function plausibleUsage(value: unknown): Usage | undefined {
  if (!isRecord(value)) return undefined
  for (const field of ["input", "output", "cache_read", "cache_write"])
    if (number(value[field]) === undefined) return undefined
  for (const [field, amount] of Object.entries(value)) {
    if (field === "service_tier" || field === "speed" ? cleanName(amount) === undefined : !isAmount(amount))
      return undefined
  }
  return value as unknown as Usage
}

function isAmount(value: unknown): boolean {
  return typeof value === "number" && value >= 0 && value <= MAX_AMOUNT
}

function knownEffects(value: unknown): Effect[] | undefined {
  if (!Array.isArray(value)) return undefined
  const isKnownEffect = (effect: unknown) => {
    const schema =
      isRecord(effect) &&
      Object.hasOwn(EFFECT_SCHEMAS, String(effect.type)) &&
      EFFECT_SCHEMAS[effect.type as Effect["type"]]
    return schema && "ok" in readAs(schema, effect)
  }
  return value.every(isKnownEffect) ? value : undefined
}
