import type { Conversation, SourceId } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"

/**
 * Reads one agent's history. Never writes to it. A bad record is counted, never thrown.
 * A sync finds the folders (`roots`), lists the sessions in them (`discover`), reads the new records of each (`read`) and
 * converts them to conversations (`parse`). Records are redacted and stored between `read` and `parse`, so `parse` is a pure
 * function of records: dex can call it again years later, when the source is long gone.
 */
export type Connector = {
  source: SourceId
  /**
   * Increase this number whenever `parse` returns a different result for old records; dex then parses all stored records again.
   */
  version: number
  roots(machine: Machine): string[]
  /** Lists units in any order; the caller sorts by age. Must be fast, because every sync runs it on every file. */
  discover(root: string, isUnchanged: IsUnchanged, scratch?: Scratch): Iterable<Unit | Unreadable>
  read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading | Promise<Reading>
  parse(records: Iterable<RawRecord>, unit: UnitName): Parsed
  /** The folders below a root that change when a session does. If absent, any change below the root counts. */
  watched?(root: string): Watched[]
  /**
   * For units with many conversations, if each record belongs to exactly one of them. Returns a function that maps a record to
   * its conversation's id. If absent, or if it returns undefined for a unit, the unit's records must be parsed together.
   */
  conversationOf?(unitKey: string): ((record: RawRecord) => string | undefined) | undefined
  /** The tables of the agent's databases that dex knows, whether it reads them or not. `dex doctor` names all others. */
  tables?: readonly string[]
  /**
   * True for a connector that the user supplied. It always runs in a separate thread with its own limits, even if there is little
   * to read.
   */
  isOutside?: boolean
  /**
   * For agents that shorten their own file and add a summary (a compaction). Returns the dropped records and the current ones in
   * the order of the conversation; all of them still belong to the conversation. Returns undefined if `current` is not from such
   * a file: the dropped records are then superseded.
   */
  rejoin?(dropped: RawRecord[], current: RawRecord[]): RawRecord[] | undefined
  /** Identifies a record across rewrites of its file. If absent, records are compared by content. */
  identify?(record: RawRecord): string | undefined
  /** Set if `dex import` reads the conversations from a file that a service exports. A sync then finds no units. */
  exported?: ExportFormat
}

/** How a service exports conversations: a list in JSON. */
export type ExportFormat = {
  /** The field of a conversation that contains its messages. They are parsed one by one. */
  messages?: string
  /**
   * Converts an item of the list to what is stored. `messages` has the values in the field `messages`; the names of an object's
   * members are their `id` if they have none. Returns undefined for an item of another service.
   */
  itemOf(fields: RawRecord, messages: RawRecord[]): ExportedItem | undefined
  /** True if consecutive items with the same key are one conversation. */
  joinsItems?: boolean
  /** The objects in a record whose field `html` is to be replaced with its text, in the field `text`. */
  htmlIn?(record: RawRecord): RawRecord[]
}

export type ExportedItem = {
  /** The conversation's id, and the key of its unit. */
  key: string
  /** The time of its last change. Of two exports, the one with the later change counts. */
  modifiedAt?: number
  records: RawRecord[]
}

/** An agent that a user adds: the value that a module exports as `agent`. */
export type OutsideAgent = {
  /** The prefix of the agent's refs: lower-case letters, digits and _. It is stored, so never change it. */
  source: string
  /** The name that people use. */
  name: string
  connector: () => Promise<Connector>
  /** The command that resumes an old conversation, by its id or by the file that contains it. */
  resume?: (id: string, path: string) => string[]
}

/** The facts about the machine that a connector may use. They are passed in, so that tests can supply their own. */
export type Machine = {
  home: string
  env: Record<string, string | undefined>
  platform: NodeJS.Platform
  /** Other home folders that the user configured: those of containers, of other people, or the Windows home in WSL. */
  otherHomes?: readonly string[]
  /** Project folders of known conversations, for agents that store their sessions inside the project. */
  projects?: readonly string[]
}

/**
 * The smallest source that is read, stored and marked as read in one step: a transcript file, or one conversation's rows in a
 * database.
 */
export type Unit = UnitName & {
  /** The path of the file to open, which is also shown to people. */
  path: string
  /** Differs whenever the content may differ. dex only compares stamps and never interprets them. */
  stamp: string
  /** The approximate number of bytes to read, for the progress bar. */
  bytes: number
  modifiedAt: number
  /**
   * The time at which the file was created, if known. Of two conversations that share messages, the older file is the original.
   */
  bornAt: number
}

/** `key` stays the same when the file moves (archived, compressed); `path` is its last known location. */
export type UnitName = { key: string; path: string }

/**
 * A folder to watch for new messages, with `depth` levels of subfolders, except those named in `skip`. `files` is
 * matched against the path relative to the folder, with slashes. If it is absent, every file counts.
 */
export type Watched = { folder: string; depth: number; files?: RegExp; skip?: readonly string[] }

export type Unreadable = { unreadable: string; path: string }

/**
 * Returns true if a container (a database of many conversations) has not changed since it was last read, so that it need not be
 * opened.
 */
export type IsUnchanged = (containerPath: string, stamp: string) => boolean

/**
 * A folder that belongs to dex, for copies of databases and compressed files that cannot be read in place. A connector creates it
 * on demand. The caller passes the same folder to `discover` and `read`, and removes it afterwards. Without the folder, dex
 * cannot read such databases and files.
 */
export type Scratch = string

/** The position at which reading stopped. Plain JSON, stored with the data it describes. */
export type Cursor = { offset: number; crc: number; [extra: string]: unknown }

export type Reading = {
  /** `append`: the records that follow the cursor. `replace`: all records, because the source was rewritten. */
  mode: "append" | "replace"
  records: Iterable<RawRecord>
  /** Call this only after `records` is exhausted. */
  end(): { cursor: Cursor; skipped: Skipped[]; pending: boolean }
}

/** Something that could not be read, with its position and the reason. `dex doctor sources` counts and shows it. */
export type Skipped = { reason: string; where: string }

export type Parsed = {
  conversations: Conversation[]
  /** Record types that this connector does not know, with counts. */
  unknown: Record<string, number>
}

/** Creates the connector of a service that exports its conversations: `dex import` supplies the records. */
export function exportConnector(
  parts: Pick<Connector, "source" | "version" | "parse" | "identify"> & { exported: ExportFormat },
): Connector {
  const end = () => ({ cursor: { offset: 0, crc: 0 }, skipped: [], pending: false })
  return { ...parts, roots: () => [], discover: () => [], read: () => ({ mode: "append", records: [], end }) }
}

export function isUnreadable(unit: Unit | Unreadable): unit is Unreadable {
  return "unreadable" in unit
}
