import { hash } from "node:crypto"
import type { Role, Title } from "../../core/conversation.ts"
import { type Db, inTransaction } from "../sqlite/database.ts"
import { valueQuery } from "../sqlite/typed-query.ts"
import { loadLines } from "./bodies.ts"
import { type Block, numberOfLine, packLines, readBlock } from "./codec.ts"
import { MESSAGE_FLAGS } from "./flags.ts"
import { historyIdIn } from "./foreign-file.ts"
import {
  absoluteFolder,
  boundedText,
  cleanId,
  cleanName,
  knownKind,
  knownRole,
  messageKey,
  messageNumber,
  nonNegativeInteger,
  parseBody,
  parseCounts,
  parseJson,
  parseNames,
  parseRecord,
  parseSkipped,
  parseTime,
  titleFrom,
} from "./foreign-values.ts"
import { importMarks } from "./marks.ts"
import { keyText } from "./merge.ts"
import { markPrivate } from "./private-folders.ts"
import { isImportedKey } from "./read/rows.ts"
import type { StoredRow } from "./rot/checked-rows.ts"
import { isIntact } from "./rot/sums.ts"
import type {
  ConversationWrite,
  ImportOptions,
  ImportReport,
  MessageWrite,
  ProjectIdentity,
  UnitWrite,
} from "./store.ts"
import type { MessageTableRow } from "./write-conversation.ts"
import { writeUnit } from "./write-unit.ts"

/** A row of a file that a user provided. Any column may contain any type. */
type ForeignRow = StoredRow

/** Counts what is not imported, by description. */
type LeaveOut = (description: string, count?: number) => void

type Import = { db: Db; otherDb: Db; otherId: string; options: ImportOptions; leaveOut: LeaveOut }

/**
 * Merges another history into this one, unit by unit, each in one transaction. An imported unit has its own key and counts as
 * archived, so its messages are merged by message key with the stored ones, and importing the same history again changes nothing.
 * An import only adds: it never replaces or renames stored data, or makes it less private. Every value is checked; values that
 * dex cannot have written are counted and left out. Documents are not imported, because their files can be read.
 */
export function mergeHistory(db: Db, otherDb: Db, options: ImportOptions): ImportReport {
  const leftOut = new Map<string, number>()
  const leaveOut: LeaveOut = (description, count = 1) =>
    void leftOut.set(description, (leftOut.get(description) ?? 0) + count)
  const report = { conversations: 0, messages: 0, forgotten: 0, notes: 0 }
  const task: Import = { db, otherDb, otherId: historyIdIn(otherDb, "The file"), options, leaveOut }
  // Mark private projects first, so that an interrupted import leaves no conversation of a private project visible elsewhere.
  if (options.privateProjects.length > 0)
    inTransaction(db, () => markPrivate(db, options.privateProjects, true, { platform: process.platform }))
  const ids = valueQuery(
    otherDb,
    "select id from unit where source is not 'docs' order by modified_at desc, id",
    "integer",
  ).all()
  for (const [i, id] of ids.entries()) {
    options.onProgress?.(i, ids.length)
    const unit = otherDb.prepare<unknown[], ForeignRow>("select * from unit where id = ?").get(id)!
    if (unit.source === options.notes && !options.withNotes) {
      report.notes++
      continue
    }
    const write = toUnitWrite(task, unit)
    if (!write) continue
    const result = writeUnit(db, write)
    report.conversations += result.changed
    report.messages += result.added_messages
    report.forgotten += result.forgotten
  }
  if (options.withNotes) inTransaction(db, () => importMarks(db, otherDb, (text) => redactText(options, text)))
  options.onProgress?.(ids.length, ids.length)
  return { ...report, left_out: [...leftOut].map(([what, count]) => ({ what, count })) }
}

/**
 * Returns the projects of a history that a user provided. A project counts as private if its row is damaged or its flag is
 * anything but 0, so that an import never makes one public.
 */
export function projectsIn(otherDb: Db): ProjectIdentity[] {
  const rows = otherDb.prepare<unknown[], ForeignRow>("select * from project order by path").all()
  return rows.flatMap((row) => {
    const path = absoluteFolder(row.path)
    if (path === undefined) return []
    const [git_remote, root_commit] = [cleanName(row.git_remote), cleanName(row.root_commit)]
    const isPrivate = row.private !== 0 || !isIntact(otherDb, "project", row)
    return [
      {
        path,
        private: isPrivate,
        git_remote,
        root_commit,
      },
    ]
  })
}

function toUnitWrite(task: Import, unit: ForeignRow): UnitWrite | undefined {
  const { options, leaveOut, otherId } = task
  const source = cleanName(unit.source)
  if (source === undefined || !options.sources.has(source)) {
    leaveOut(`files of an agent that this dex does not know (${quoteValue(unit.source)})`)
    return undefined
  }
  const key = cleanName(unit.key)
  const [path, stamp, cursor] = [cleanName(unit.path), cleanName(unit.stamp), boundedText(unit.cursor)]
  const [bornAt, modifiedAt] = [parseTime(unit.born_at), parseTime(unit.modified_at)]
  const version = nonNegativeInteger(unit.connector_version)
  const [skipped, unknown, redactions] = [
    parseSkipped(unit.skipped),
    parseCounts(unit.unknown),
    parseCounts(unit.redactions),
  ]
  if (
    !key ||
    path === undefined ||
    stamp === undefined ||
    cursor === undefined ||
    parseJson(cursor) === undefined ||
    bornAt === undefined ||
    modifiedAt === undefined ||
    version === undefined ||
    !skipped ||
    !unknown ||
    !redactions
  ) {
    leaveOut("files with an invalid record")
    return undefined
  }
  const conversations = conversationsIn(task, Number(unit.id), source)
  if (conversations.length === 0) return undefined
  const liveRecords = recordsIn(task, Number(unit.id), 0)
  const earlierRecords = recordsIn(task, Number(unit.id), 1)
  const name = importedKey(key, otherId)
  return {
    source,
    foreign: true,
    unit: { key: name, path: redactText(options, path), stamp, bornAt, modifiedAt },
    sourceExists: false,
    cursor,
    connector_version: version,
    redaction_version: options.redactionVersion,
    raw: { mode: "rewrite", live: liveRecords ?? [], left: earlierRecords ?? [] },
    withholdsRaw: !liveRecords || !earlierRecords || unit.raw_withheld !== 0 || undefined,
    conversations,
    isComplete: false,
    dropsMissing: false,
    skipped,
    unknown,
    redactions,
  }
}

/** Shortens an invalid value for a message, so that it can be recognised. */
function quoteValue(value: unknown): string {
  return JSON.stringify(String(value).slice(0, 40))
}

/**
 * Returns the key under which a unit is imported: its own key and a mark of the history that it comes from. A unit that was
 * imported before keeps its mark; otherwise two machines would pass it back and forth, each time under a new key.
 */
function importedKey(key: string, historyId: string): string {
  return isImportedKey(key) ? key : `${key}#from-${hash("sha256", historyId).slice(0, 12)}`
}

function redactText({ redact }: ImportOptions, text: string): string {
  return redact({ text }).text as string
}

const RAW_BLOCK_CHARS = 256 << 10

/** Returns a unit's redacted records, or undefined if some cannot be read, because an incomplete set is useless. */
function recordsIn({ otherDb, options, leaveOut }: Import, unitId: number, kind: number): Block[] | undefined {
  const rows = otherDb
    .prepare("select data from raw where unit_id = ? and kind = ? order by seq")
    .pluck()
    .iterate(unitId, kind)
  const blocks: Block[] = []
  for (const data of rows) {
    const records = linesIn(data)?.map(parseRecord)
    if (!records?.every((record) => record !== undefined)) {
      leaveOut("files whose raw records cannot be read")
      return undefined
    }
    blocks.push(
      ...packLines(
        records.map((record) => JSON.stringify(options.redact(record!))),
        RAW_BLOCK_CHARS,
      ),
    )
  }
  return blocks
}

/** The maximum number of lines in a block, far more than dex packs. */
const MAX_LINES = 1_000_000

function linesIn(data: unknown): string[] | undefined {
  if (!Buffer.isBuffer(data)) return undefined
  return readBlock(data, MAX_LINES)
}

function conversationsIn(task: Import, unitId: number, source: string): ConversationWrite[] {
  const rows = task.otherDb
    .prepare<unknown[], ForeignRow>(
      `select c.*, p.path as project, p.git_remote from conversation c left join project p on p.id = c.project_id
       where c.unit_id = @unit or c.id in (select conversation_id from message where unit_id = @unit)`,
    )
    .all({ unit: unitId })
  return rows.flatMap((row) => {
    if (row.source !== source) {
      task.leaveOut("conversations that belong to a different agent than their file")
      return []
    }
    return conversationIn(task, row, unitId, source) ?? []
  })
}

/** Columns that only describe a conversation. An invalid value is left out, and the conversation is still imported. */
const DESCRIPTION_COLUMNS = {
  git_branch: cleanName,
  git_remote: cleanName,
  git_commit: cleanName,
  agent_version: cleanName,
  fork_of: cleanId,
  resume_of: cleanId,
  started_at: parseTime,
  ended_at: parseTime,
  project: absoluteFolder,
}

function conversationIn(task: Import, row: ForeignRow, unitId: number, source: string): ConversationWrite | undefined {
  const { options, leaveOut } = task
  const id = cleanId(row.native_id)
  const kind = knownKind(row.kind, source === options.notes)
  const [cwds, authority] = [parseNames(row.cwds), nonNegativeInteger(row.authority)]
  if (id === undefined || !kind || !cwds || authority === undefined) {
    leaveOut("conversations with an invalid record")
    return undefined
  }
  const messages = messagesIn(task, row, unitId)
  if (messages.length === 0) return undefined
  const descriptions: Record<string, string | number> = {}
  for (const [name, parse] of Object.entries(DESCRIPTION_COLUMNS)) {
    const value = parse(row[name])
    if (value !== undefined) descriptions[name] = value
    else if (row[name] !== null) leaveOut(name.endsWith("_at") ? "impossible times" : "invalid descriptions")
  }
  // Without a valid folder, it is unclear in which project the conversation may be shown.
  if (row.project_id !== null && descriptions.project === undefined) {
    leaveOut("conversations without a known project")
    return undefined
  }
  const [title, from] = [boundedText(row.title), titleFrom(row.title_from)]
  const parent = parentIn(task, row, source)
  return {
    id,
    kind,
    title: title !== undefined && from ? ({ text: redactText(options, title), from } satisfies Title) : undefined,
    ...(options.redact({ ...descriptions, cwds }) as { cwds: string[] }),
    parent,
    ...fitToStored(task, source, id, { authority, messages }),
  }
}

/** The maximum number of parents to follow from a subagent, because an imported chain may be circular. */
const MAX_PARENTS = 100

function parentIn({ otherDb, leaveOut }: Import, row: ForeignRow, source: string): ConversationWrite["parent"] {
  if (row.parent_id === null) return undefined
  const id = cleanId(row.parent_id)
  const parentOf = otherDb.prepare("select parent_id from conversation where source = ? and native_id = ?").pluck()
  let ancestor: unknown = id
  for (let depth = 0; typeof ancestor === "string" && ancestor !== row.native_id; depth++) {
    if (depth === MAX_PARENTS) ancestor = row.native_id
    else ancestor = parentOf.get(source, ancestor)
  }
  if (id === undefined || ancestor === row.native_id) {
    leaveOut("invalid parents")
    return undefined
  }
  const call_id = cleanName(row.parent_call_id)
  return { id, call_id }
}

type ImportedContent = Pick<ConversationWrite, "authority" | "messages">

/**
 * Prepares an imported conversation for merging with the stored one. A higher authority would replace the stored messages, so it
 * is lowered to theirs. The two conversations may come from different kinds of files, which use different keys (a prompt log
 * does), so messages that would appear twice are left out.
 */
function fitToStored({ db }: Import, source: string, id: string, imported: ImportedContent): ImportedContent {
  const existing = db
    .prepare("select id, authority from conversation where source = ? and native_id = ?")
    .get(source, id) as { id: number; authority: number } | undefined
  if (!existing || imported.authority <= existing.authority) return imported
  return { authority: existing.authority, messages: withoutRepeats(db, existing.id, imported.messages) }
}

/** Leaves out messages that are stored word for word under another key, matched one to one, closest in time first. */
function withoutRepeats(db: Db, id: number, imported: MessageWrite[]): MessageWrite[] {
  const rows = db.prepare("select number, key, role, flags, at from message where conversation_id = ?").all(id) as Pick<
    MessageTableRow,
    "number" | "key" | "role" | "flags" | "at"
  >[]
  const [storedKeys, importedKeys] = [
    new Set(rows.map(keyText)),
    new Set(imported.map(({ stored }) => keyText(stored!))),
  ]
  const unstored = Map.groupBy(
    imported.filter(({ stored }) => !storedKeys.has(keyText(stored!))),
    (message) => contentKey(message.role, message),
  )
  const lines = loadLines(db, id)
  const repeats = new Set<MessageWrite>()
  for (const { number, key, role, flags, at } of rows) {
    const line = lines.get(number)
    if (line === undefined || importedKeys.has(keyText({ key })) || (flags & MESSAGE_FLAGS.superseded) !== 0) continue
    const candidates = (unstored.get(contentKey(role, JSON.parse(line))) ?? []).filter(
      (message) => !repeats.has(message),
    )
    const timeDistance = (message: MessageWrite) => Math.abs((message.at ?? 0) - (at ?? 0))
    if (candidates.length > 0) repeats.add(candidates.reduce((a, b) => (timeDistance(b) < timeDistance(a) ? b : a)))
  }
  return imported.filter((message) => !repeats.has(message))
}

function contentKey(
  role: Role,
  { model, parts, effects = [], usage }: Pick<MessageWrite, "model" | "parts" | "effects" | "usage">,
): string {
  return JSON.stringify([role, model, parts, effects, usage])
}

function messagesIn({ otherDb, options, leaveOut }: Import, row: ForeignRow, unitId: number): MessageWrite[] {
  const lines = bodiesIn(otherDb, row.id, leaveOut)
  const rows = otherDb
    .prepare<unknown[], ForeignRow>(
      `select number, position, key, role, flags, at from message
       where conversation_id = ? and ifnull(unit_id, ?) = ? order by ifnull(position, number)`,
    )
    .all(row.id, row.unit_id, unitId)
  const seenKeys = new Set<string>()
  return rows.flatMap((stored): MessageWrite[] => {
    const [number, key, role, flags] = [
      messageNumber(stored.number),
      messageKey(stored.key),
      knownRole(stored.role),
      nonNegativeInteger(stored.flags, ALL_FLAGS),
    ]
    const record = number === undefined ? undefined : parseRecord(lines.get(number) ?? "")
    const body = record && parseBody(options.redact(record))
    if (number === undefined || !key || !role || flags === undefined || !body || seenKeys.has(key.toString("latin1"))) {
      leaveOut("damaged or invalid messages")
      return []
    }
    seenKeys.add(key.toString("latin1"))
    const at = parseTime(stored.at)
    if (at === undefined && stored.at !== null) leaveOut("impossible times")
    const { dropped, ...content } = body
    for (const description of dropped) leaveOut(description)
    return [
      {
        key: "",
        role,
        at,
        ...content,
        abandoned: (flags & MESSAGE_FLAGS.abandoned) !== 0 || undefined,
        superseded: (flags & MESSAGE_FLAGS.superseded) !== 0 || undefined,
        stored: { key, number },
      },
    ]
  })
}

const ALL_FLAGS = Object.values(MESSAGE_FLAGS).reduce<number>((mask, flag) => mask | flag, 0)

/** The maximum length of an imported conversation, in characters: more than dex ever reads at once. */
const MAX_CHARS = 400e6

function bodiesIn(otherDb: Db, id: unknown, leaveOut: LeaveOut): Map<number, string> {
  const lines = new Map<number, string>()
  let chars = 0
  const rows = otherDb
    .prepare<unknown[], ForeignRow>("select * from body where conversation_id = ? order by chunk")
    .iterate(id)
  for (const row of rows) {
    const block = isIntact(otherDb, "body", row) ? linesIn(row.data) : undefined
    if (!block) continue // the messages of this block are counted as damaged later, because they have no text
    chars += block.reduce((sum, line) => sum + line.length, 0)
    if (chars > MAX_CHARS) {
      leaveOut("conversations that are too large")
      return new Map()
    }
    for (const line of block) lines.set(numberOfLine(line), line)
  }
  return lines
}
