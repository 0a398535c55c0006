import { isAbsolute, join, relative } from "node:path"
import { crc32 } from "node:zlib"
import type { Connector, Cursor, Unit } from "../agents/kit/connector.ts"
import type { Conversation } from "../core/conversation.ts"
import { DexError, isDexError } from "../core/error.ts"
import { isModelRunFolder } from "../core/model-run.ts"
import type { RawRecord } from "../core/record.ts"
import type { Place } from "../git/project.ts"
import { redactRecord } from "../redact/redact.ts"
import { REDACTION_VERSION } from "../redact/version.ts"
import { type Block, packLines } from "../store/history/codec.ts"
import type { ConversationWrite, HistoryWriter, KnownUnit, MessageWrite, UnitWrite } from "../store/history/store.ts"
import { syncScratch } from "../store/sqlite/scratch.ts"
import { conversationTitle } from "./title.ts"
import { type NamedUnit, nativeKey, storedPath } from "./unit-names.ts"

/**
 * The number of characters per block of raw records. They are always read for a whole unit, so their blocks can be larger than
 * those of message bodies. Larger blocks compress better.
 */
const RAW_BLOCK_CHARS = 256 << 10

export type ReadContext = {
  placeOf: (cwd: string) => Place
  dexDir: string
  store: Pick<HistoryWriter, "knownUnit" | "rawLines" | "forgottenAmong">
  /** True to ignore damaged stored records instead of throwing an error. */
  onlyReadable?: boolean
}

/** Prepares a unit for storing: reads the new data of its source or, with `replay`, parses its stored records again. */
export async function prepareUnit(
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
    // Stored records are damaged, but the source still exists, so read it completely again. The undamaged records may contain
    // messages that the source no longer has.
    return readUnit(connector, unit, { ...known, connector_version: 0 }, { ...context, onlyReadable: true })
  }
}

/**
 * Reads new data of a unit and returns what to store: the new records, redacted and packed, and the result of parsing all of the
 * unit's records. Since all records are always parsed together, reading in steps and reading at once give the same result.
 */
async function readUnit(
  connector: Connector,
  unit: NamedUnit,
  known: KnownUnit | undefined,
  context: ReadContext,
): Promise<UnitWrite> {
  const hasRecords = known !== undefined && !known.raw_withheld
  const native = { ...unit, key: unit.nativeKey ?? nativeKey(unit.key) }
  const scratch = syncScratch(context.dexDir)
  const resumed = await connector.read(native, known && (JSON.parse(known.cursor) as Cursor), scratch)
  const isContinued = hasRecords && known.connector_version === connector.version
  const reading = isContinued || !known ? resumed : await connector.read(native, undefined, scratch)
  const redactions: Record<string, number> = {}
  const fresh = await withoutForgotten(redactAll(reading.records, redactions), connector, unit, context)
  const end = reading.end()
  const isAppended = isContinued && reading.mode === "append"
  // Records that were stored under older redaction rules must be redacted again before new records are added.
  const isOutdated = hasRecords && known.redaction_version !== REDACTION_VERSION
  const redactAgain = (records: RawRecord[]) => (isOutdated ? redactAll(records, redactions).records : records)
  const storedLive = hasRecords ? redactAgain(await parsedLines(context, connector, unit.key, "live")) : []
  const superseded = hasRecords ? redactAgain(await parsedLines(context, connector, unit.key, "left")) : []

  const live = isAppended ? [...storedLive, ...fresh.records] : fresh.records
  // If the source only grew, nothing was lost, even if a newer connector stores other parts of the same records.
  const lost = resumed.mode === "append" ? [] : lostRecords(storedLive, live, connector)
  const allSuperseded = withoutDuplicates([...superseded, ...lost], live)
  const onlyGrew =
    allSuperseded.length >= superseded.length && superseded.every((record, i) => allSuperseded[i] === record)
  const parsed = parseRecords(connector, live, allSuperseded, unit, context)
  return {
    source: connector.source,
    unit: {
      key: unit.key,
      path: storedPath(unit),
      stamp: end.pending ? "" : unit.stamp,
      bornAt: unit.bornAt,
      modifiedAt: unit.modifiedAt,
    },
    sourceExists: true,
    partial: context.onlyReadable,
    cursor: JSON.stringify(end.cursor),
    connector_version: connector.version,
    redaction_version: REDACTION_VERSION,
    raw: parsed.hasOnlyOwnRuns
      ? { mode: "rewrite", live: [], left: [] }
      : isOutdated || !onlyGrew
        ? { mode: "rewrite", live: packBlocks(linesOf(live)), left: packBlocks(linesOf(allSuperseded)) }
        : {
            mode: isAppended ? "append" : "replace",
            live: packBlocks(fresh.lines),
            left: packBlocks(linesOf(allSuperseded.slice(superseded.length))),
          },
    conversations: parsed.conversations,
    isComplete: hasRecords || resumed.mode === "append",
    dropsMissing: hasRecords && known.connector_version !== connector.version,
    addsToCounts: isAppended,
    skipped: end.skipped,
    unknown: parsed.unknown,
    redactions,
  }
}

/** Parses the stored records of a unit again, for a newer connector or new redaction rules, if the source no longer exists. */
async function replayUnit(
  connector: Connector,
  unit: Pick<Unit, "key" | "path" | "stamp" | "bornAt" | "modifiedAt">,
  known: KnownUnit,
  context: ReadContext,
): Promise<UnitWrite> {
  const redactions: Record<string, number> = {}
  const live = redactAll(await parsedLines(context, connector, unit.key, "live"), redactions)
  const superseded = redactAll(await parsedLines(context, connector, unit.key, "left"), redactions)
  const parsed = parseRecords(connector, live.records, superseded.records, unit, context)
  return {
    source: connector.source,
    unit,
    sourceExists: false,
    cursor: known.cursor,
    connector_version: connector.version,
    redaction_version: REDACTION_VERSION,
    raw: { mode: "rewrite", live: packBlocks(live.lines), left: packBlocks(superseded.lines) },
    conversations: parsed.conversations,
    isComplete: true,
    dropsMissing: known.connector_version !== connector.version,
    addsToCounts: true,
    skipped: [],
    unknown: parsed.unknown,
    redactions,
  }
}

function linesOf(records: RawRecord[]): string[] {
  return records.map((record) => JSON.stringify(record))
}

function packBlocks(lines: string[]): Block[] {
  return packLines(lines, RAW_BLOCK_CHARS)
}

async function parsedLines(
  context: ReadContext,
  connector: Connector,
  unitKey: string,
  kind: "live" | "left",
): Promise<RawRecord[]> {
  const { store, onlyReadable = false } = context
  return (await store.rawLines(connector.source, unitKey, kind, { onlyReadable })).flatMap((line) => {
    try {
      return [JSON.parse(line) as RawRecord]
    } catch (cause) {
      if (onlyReadable) return []
      throw new DexError("damaged", `dex's stored records of ${unitKey} are damaged.`, { cause })
    }
  })
}

function redactAll(
  records: Iterable<RawRecord>,
  redactions: Record<string, number>,
): { records: RawRecord[]; lines: string[] } {
  const redacted: RawRecord[] = []
  const lines: string[] = []
  for (const record of records) {
    const result = redactRecord(record)
    for (const [rule, count] of Object.entries(result.redactions)) redactions[rule] = (redactions[rule] ?? 0) + count
    redacted.push(result.record)
    lines.push(JSON.stringify(result.record))
  }
  return { records: redacted, lines }
}

/** Returns the records that a rewritten source no longer contains. They are stored separately, so that no message is lost. */
function lostRecords(before: RawRecord[], current: RawRecord[], connector: Connector): RawRecord[] {
  if (before.length === 0) return []
  const recordName = (record: RawRecord) => connector.identify?.(record) ?? JSON.stringify(record)
  const present = new Set(current.map(recordName))
  return before.filter((record) => !present.has(recordName(record)))
}

/** Returns the superseded records without duplicates and without those that the source contains again. */
function withoutDuplicates(superseded: RawRecord[], live: RawRecord[]): RawRecord[] {
  if (superseded.length === 0) return superseded
  const lines = new Set(linesOf(live))
  return superseded.filter((record) => {
    const line = JSON.stringify(record)
    return !lines.has(line) && lines.add(line)
  })
}

/** Drops the records of forgotten conversations, if the connector can tell to which conversation a record belongs. */
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
  const isKept = (_: unknown, i: number) => owners[i] === undefined || !forgotten.has(owners[i])
  return { records: fresh.records.filter(isKept), lines: fresh.lines.filter(isKept) }
}

type ParsedUnit = Pick<NamedUnit, "key" | "path" | "shownPath" | "bornAt" | "modifiedAt">

function parseRecords(
  connector: Connector,
  live: RawRecord[],
  dropped: RawRecord[],
  unit: ParsedUnit,
  context: ReadContext,
) {
  const name = { key: nativeKey(unit.key), path: unit.shownPath ?? unit.path }
  const rejoined = dropped.length > 0 ? connector.rejoin?.(dropped, live) : undefined
  const parsed = connector.parse(rejoined ?? live, name)
  const conversations = new Map(
    parsed.conversations.map((conversation) => [conversation.id, withTitle(withoutRepeats(conversation))]),
  )
  if (dropped.length > 0 && !rejoined) {
    for (const earlier of connector.parse(dropped, name).conversations) {
      const current = conversations.get(earlier.id)
      const byKey = new Map(current?.messages.map((message) => [message.key, message]))
      const superseded = withoutRepeats(earlier).messages.flatMap((message) =>
        supersededForm(byKey.get(message.key), message),
      )
      conversations.set(
        earlier.id,
        current
          ? { ...current, messages: mergeByTime(current.messages, superseded) }
          : withTitle({ ...earlier, messages: superseded }),
      )
    }
  }
  const nonEmpty = [...conversations.values()].filter(({ messages }) => messages.length > 0)
  const kept = nonEmpty.filter((conversation) => !isOwnRun(conversation, context.dexDir))
  return {
    /** True if the unit contains only conversations of agents that dex itself started. Its records are then not stored. */
    hasOnlyOwnRuns: nonEmpty.length > 0 && kept.length === 0,
    conversations: kept.map((conversation) => withProject(withTimes(conversation, unit), context)),
    unknown: parsed.unknown,
  }
}

/** Inserts superseded messages by their times; those without a time come last. */
function mergeByTime(current: MessageWrite[], superseded: MessageWrite[]): MessageWrite[] {
  const withTime = superseded.filter(({ at }) => at !== undefined)
  const joined: MessageWrite[] = []
  let next = 0
  for (const message of current) {
    while (message.at !== undefined && next < withTime.length && withTime[next]!.at! < message.at)
      joined.push(withTime[next++]!)
    joined.push(message)
  }
  return [...joined, ...withTime.slice(next), ...superseded.filter(({ at }) => at === undefined)]
}

/**
 * Returns a message as superseded if the source no longer contains it. If the source now has different text under the same key,
 * as a damaged copy can have, returns the earlier text under a new key.
 */
function supersededForm(current: MessageWrite | undefined, before: MessageWrite): MessageWrite[] {
  if (!current) return [{ ...before, superseded: true }]
  const texts = current.parts.map((part) => part.text)
  if (before.parts.every((part) => texts.some((text) => text.includes(part.text)))) return []
  return [{ ...before, key: `${before.key}~${crc32(JSON.stringify(before.parts))}`, superseded: true }]
}

/** Returns the conversation with only the first message for each key, because an agent may write a record twice. */
function withoutRepeats(conversation: Conversation): Conversation & { messages: MessageWrite[] } {
  const keys = new Set<string>()
  return {
    ...conversation,
    messages: conversation.messages.filter((message) => !keys.has(message.key) && keys.add(message.key)),
  }
}

function withTitle<C extends Conversation>(conversation: C): C {
  const title = conversation.title ?? conversationTitle(conversation)
  return title ? { ...conversation, title } : conversation
}

/**
 * True if dex itself started the agent, in a folder made for that run. A person's conversation in dex's folder does not count.
 */
function isOwnRun({ cwds: [startFolder] }: Conversation, dexDir: string): boolean {
  if (startFolder === undefined) return false
  if (isModelRunFolder(startFolder)) return true
  const pathInChats = relative(join(dexDir, "chat-sessions"), startFolder)
  return pathInChats !== "" && !pathInChats.startsWith("..") && !isAbsolute(pathInChats)
}

/** If the agent wrote no times, uses the times at which the file was created and changed. */
function withTimes<C extends Conversation>(conversation: C, unit: ParsedUnit): C {
  if (conversation.started_at !== undefined || conversation.messages.some((message) => message.at !== undefined))
    return conversation
  return { ...conversation, started_at: Math.round(unit.bornAt), ended_at: Math.round(unit.modifiedAt) }
}

function withProject(
  conversation: Conversation & { messages: MessageWrite[] },
  context: ReadContext,
): ConversationWrite {
  const places = conversation.cwds.map(context.placeOf)
  const [project, ...projects] = new Set(places.map((place) => place.project))
  if (project === undefined) return conversation
  const worktrees = new Set(places.flatMap((place) => (place.project === project ? (place.worktree ?? []) : [])))
  return {
    ...conversation,
    project,
    ...(projects.length > 0 && { projects }),
    ...(worktrees.size > 0 && { worktrees: [...worktrees] }),
  }
}
