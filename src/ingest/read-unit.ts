import { isAbsolute, join, relative } from "node:path"
import { crc32 } from "node:zlib"
import type { Connector, Cursor, Unit } from "../agents/kit/connector.ts"
import type { Conversation } from "../core/conversation.ts"
import { DexError, isDexError } from "../core/error.ts"
import { isModelRunFolder } from "../core/model-run.ts"
import type { RawRecord } from "../core/record.ts"
import { redactRecord } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { type Block, packLines } from "../store/history/codec.ts"
import type { ConversationWrite, HistoryWriter, KnownUnit, MessageWrite, UnitWrite } from "../store/history/store.ts"
import { syncScratch } from "../store/sqlite/scratch.ts"
import { conversationTitle } from "./title.ts"
import { type NamedUnit, nativeKey, storedPath } from "./unit-names.ts"

/** Raw records are read one conversation at a time, so larger blocks than bodies', which compress better. */
const RAW_BLOCK_CHARS = 256 << 10

export type ReadContext = {
  projectOf: (cwd: string) => string
  dexDir: string
  store: Pick<HistoryWriter, "knownUnit" | "rawLines" | "forgottenAmong">
  /** Some of its kept records are damaged: go by the others. */
  onlyWhole?: boolean
}

/** What is to be stored of a unit: what is new in its source, or (`replay`) what its kept records say today. */
export async function takeUnit(
  connector: Connector,
  unit: NamedUnit,
  replay: boolean,
  context: ReadContext,
): Promise<UnitWrite> {
  const known = await context.store.knownUnit(connector.source, unit.key)
  if (replay && known) return replayUnit(connector, unit, known, context)
  try {
    return await readUnit(connector, unit, known, context)
  } catch (error) {
    if (!known || !isDexError(error) || error.code !== "damaged") throw error
    // The source is here, so all of it is read, as another connector would; what is still whole says what it left.
    return readUnit(connector, unit, { ...known, connector_version: 0 }, { ...context, onlyWhole: true })
  }
}

/**
 * Reads what is new in a unit and tells what is to be stored: the new records redacted and packed, and everything that
 * all of the unit's records say. What is stored is always what a parse of all records says, so reading bit by bit and
 * reading at once cannot differ.
 */
async function readUnit(
  connector: Connector,
  unit: NamedUnit,
  known: KnownUnit | undefined,
  context: ReadContext,
): Promise<UnitWrite> {
  const kept = known !== undefined && !known.raw_withheld
  const native = { ...unit, key: unit.nativeKey ?? nativeKey(unit.key) }
  const scratch = syncScratch(context.dexDir)
  const resumed = await connector.read(native, known && (JSON.parse(known.cursor) as Cursor), scratch)
  const goOn = kept && known.connector_version === connector.version
  const reading = goOn || !known ? resumed : await connector.read(native, undefined, scratch)
  const redactions: Record<string, number> = {}
  const fresh = await withoutForgotten(redactAll(reading.records, redactions), connector, unit, context)
  const end = reading.end()
  const appends = goOn && reading.mode === "append"
  // What was kept under older rules is redacted by today's before anything new joins it.
  const stale = kept && known.redaction_version !== REDACTION_VERSION
  const again = (records: RawRecord[]) => (stale ? redactAll(records, redactions).records : records)
  const before = kept ? again(await parsedLines(context, connector, unit.key, "live")) : []
  const left = kept ? again(await parsedLines(context, connector, unit.key, "left")) : []

  const live = appends ? [...before, ...fresh.records] : fresh.records
  // Where the source only grew, nothing was lost, even if a newer connector keeps other parts of the same records.
  const lost = resumed.mode === "append" ? [] : missingFrom(before, live, connector)
  const leftNow = withoutDoubles([...left, ...lost], live)
  const leftOnlyGrew = leftNow.length >= left.length && left.every((record, i) => leftNow[i] === record)
  const told = parseRecords(connector, live, leftNow, unit, context)
  return {
    source: connector.source,
    unit: {
      key: unit.key,
      path: storedPath(unit),
      stamp: end.pending ? "" : unit.stamp,
      bornAt: unit.bornAt,
      modifiedAt: unit.modifiedAt,
    },
    seen: true,
    partial: context.onlyWhole,
    cursor: JSON.stringify(end.cursor),
    connector_version: connector.version,
    redaction_version: REDACTION_VERSION,
    raw: told.isOwn
      ? { mode: "rewrite", live: [], left: [] }
      : stale || !leftOnlyGrew
        ? { mode: "rewrite", live: pack(linesOf(live)), left: pack(linesOf(leftNow)) }
        : {
            mode: appends ? "append" : "replace",
            live: pack(fresh.lines),
            left: pack(linesOf(leftNow.slice(left.length))),
          },
    conversations: told.conversations,
    tellsAll: kept || resumed.mode === "append",
    dropsUntold: kept && known.connector_version !== connector.version,
    skipped: end.skipped,
    unknown: told.unknown,
    redactions,
  }
}

/** Parses what is kept of a unit again: for a better connector, or new redaction rules, when the source is gone. */
async function replayUnit(
  connector: Connector,
  unit: Pick<Unit, "key" | "path" | "stamp" | "bornAt" | "modifiedAt">,
  known: KnownUnit,
  context: ReadContext,
): Promise<UnitWrite> {
  const redactions: Record<string, number> = {}
  const live = redactAll(await parsedLines(context, connector, unit.key, "live"), redactions)
  const left = redactAll(await parsedLines(context, connector, unit.key, "left"), redactions)
  const told = parseRecords(connector, live.records, left.records, unit, context)
  return {
    source: connector.source,
    unit,
    seen: false,
    cursor: known.cursor,
    connector_version: connector.version,
    redaction_version: REDACTION_VERSION,
    raw: { mode: "rewrite", live: pack(live.lines), left: pack(left.lines) },
    conversations: told.conversations,
    tellsAll: true,
    dropsUntold: known.connector_version !== connector.version,
    skipped: [],
    unknown: told.unknown,
    redactions,
  }
}

function linesOf(records: RawRecord[]): string[] {
  return records.map((record) => JSON.stringify(record))
}

function pack(lines: string[]): Block[] {
  return packLines(lines, RAW_BLOCK_CHARS)
}

async function parsedLines(
  context: ReadContext,
  connector: Connector,
  unitKey: string,
  kind: "live" | "left",
): Promise<RawRecord[]> {
  const { store, onlyWhole = false } = context
  return (await store.rawLines(connector.source, unitKey, kind, { onlyWhole })).flatMap((line) => {
    try {
      return [JSON.parse(line) as RawRecord]
    } catch (cause) {
      if (onlyWhole) return []
      throw new DexError("damaged", `What dex kept of ${unitKey} is damaged.`, { cause })
    }
  })
}

function redactAll(
  records: Iterable<RawRecord>,
  redactions: Record<string, number>,
): { records: RawRecord[]; lines: string[] } {
  const kept: RawRecord[] = []
  const lines: string[] = []
  for (const record of records) {
    const clean = redactRecord(record)
    for (const [rule, count] of Object.entries(clean.redactions)) redactions[rule] = (redactions[rule] ?? 0) + count
    kept.push(clean.record)
    lines.push(JSON.stringify(clean.record))
  }
  return { records: kept, lines }
}

/** The records that a rewritten source no longer holds. They are kept apart: nothing that was once said is lost. */
function missingFrom(before: RawRecord[], now: RawRecord[], connector: Connector): RawRecord[] {
  if (before.length === 0) return []
  const recordName = (record: RawRecord) => connector.identify?.(record) ?? JSON.stringify(record)
  const present = new Set(now.map(recordName))
  return before.filter((record) => !present.has(recordName(record)))
}

/** The records that no longer are in the source, each once; one that came back is no longer among them. */
function withoutDoubles(left: RawRecord[], live: RawRecord[]): RawRecord[] {
  if (left.length === 0) return left
  const seen = new Set(linesOf(live))
  return left.filter((record) => {
    const line = JSON.stringify(record)
    return !seen.has(line) && seen.add(line)
  })
}

/** Where each record names its conversation, those of a forgotten one are left out, and the others are kept. */
async function withoutForgotten<T extends { records: RawRecord[]; lines: string[] }>(
  fresh: T,
  connector: Connector,
  unit: NamedUnit,
  { store }: ReadContext,
): Promise<{ records: RawRecord[]; lines: string[] }> {
  const conversationOf = connector.conversationOf?.(nativeKey(unit.key))
  if (!conversationOf) return fresh
  const owners = fresh.records.map(conversationOf)
  const forgotten = await store.forgottenAmong(connector.source, new Set(owners.filter((id) => id !== undefined)))
  if (forgotten.size === 0) return fresh
  const keeps = (_: unknown, i: number) => owners[i] === undefined || !forgotten.has(owners[i])
  return { records: fresh.records.filter(keeps), lines: fresh.lines.filter(keeps) }
}

type ParsedUnit = Pick<NamedUnit, "key" | "path" | "shownPath" | "bornAt" | "modifiedAt">

function parseRecords(
  connector: Connector,
  live: RawRecord[],
  left: RawRecord[],
  unit: ParsedUnit,
  context: ReadContext,
) {
  const name = { key: nativeKey(unit.key), path: unit.shownPath ?? unit.path }
  const rejoined = left.length > 0 ? connector.rejoin?.(left, live) : undefined
  const now = connector.parse(rejoined ?? live, name)
  const conversations = new Map(
    now.conversations.map((conversation) => [conversation.id, withTitle(withoutRepeats(conversation))]),
  )
  if (left.length > 0 && !rejoined) {
    for (const old of connector.parse(left, name).conversations) {
      const current = conversations.get(old.id)
      const byKey = new Map(current?.messages.map((message) => [message.key, message]))
      const superseded = withoutRepeats(old).messages.flatMap((message) =>
        supersededBy(byKey.get(message.key), message),
      )
      conversations.set(
        old.id,
        current
          ? { ...current, messages: inOrder(current.messages, superseded) }
          : withTitle({ ...old, messages: superseded }),
      )
    }
  }
  const all = [...conversations.values()].filter(({ messages }) => messages.length > 0)
  const told = all.filter((conversation) => !isOwnRun(conversation, context.dexDir))
  return {
    /** All of it is what an agent said to dex: nothing of it is kept. */
    isOwn: all.length > 0 && told.length === 0,
    conversations: told.map((conversation) => withProject(withTimes(conversation, unit), context)),
    unknown: now.unknown,
  }
}

/** What the source no longer has stands where it was said, as far as times tell; what has none follows all that has. */
function inOrder(now: MessageWrite[], superseded: MessageWrite[]): MessageWrite[] {
  const timed = superseded.filter(({ at }) => at !== undefined)
  const joined: MessageWrite[] = []
  let next = 0
  for (const message of now) {
    while (message.at !== undefined && next < timed.length && timed[next]!.at! < message.at) joined.push(timed[next++]!)
    joined.push(message)
  }
  return [...joined, ...timed.slice(next), ...superseded.filter(({ at }) => at === undefined)]
}

/**
 * What a rewritten source no longer says of a message: all of it, or, where the same record came back with other words
 * (a damaged copy can carry its key), the words it had before, under a key of their own.
 */
function supersededBy(now: MessageWrite | undefined, before: MessageWrite): MessageWrite[] {
  if (!now) return [{ ...before, superseded: true }]
  const texts = now.parts.map((part) => part.text)
  if (before.parts.every((part) => texts.some((text) => text.includes(part.text)))) return []
  return [{ ...before, key: `${before.key}~${crc32(JSON.stringify(before.parts))}`, superseded: true }]
}

/** A key is given once; a record that an agent wrote twice is told once. */
function withoutRepeats(conversation: Conversation): Conversation & { messages: MessageWrite[] } {
  const seen = new Set<string>()
  return {
    ...conversation,
    messages: conversation.messages.filter((message) => !seen.has(message.key) && seen.add(message.key)),
  }
}

function withTitle<C extends Conversation>(conversation: C): C {
  const title = conversation.title ?? conversationTitle(conversation)
  return title ? { ...conversation, title } : conversation
}

/** An agent that dex itself started, in a folder made for it. A person who works in dex's folder is somebody else. */
function isOwnRun({ cwds: [started] }: Conversation, dexDir: string): boolean {
  if (started === undefined) return false
  if (isModelRunFolder(started)) return true
  const below = relative(join(dexDir, "chat-sessions"), started)
  return below !== "" && !below.startsWith("..") && !isAbsolute(below)
}

/** Some agents write no times at all; then the file's own are the best that is known. */
function withTimes<C extends Conversation>(conversation: C, unit: ParsedUnit): C {
  if (conversation.started_at !== undefined || conversation.messages.some((message) => message.at !== undefined))
    return conversation
  return { ...conversation, started_at: Math.round(unit.bornAt), ended_at: Math.round(unit.modifiedAt) }
}

function withProject(
  conversation: Conversation & { messages: MessageWrite[] },
  context: ReadContext,
): ConversationWrite {
  const [project, ...projects] = new Set(conversation.cwds.map(context.projectOf))
  if (project === undefined) return conversation
  return { ...conversation, project, ...(projects.length > 0 && { projects }) }
}
