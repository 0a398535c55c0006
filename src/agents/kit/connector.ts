import type { Conversation, SourceId } from "../../core/conversation.ts"
import type { RawRecord } from "../../core/record.ts"

/**
 * Reads one agent's history. Never writes to it. A bad record is counted, never thrown.
 *
 * The order of questions: where could sessions be (`roots`), which are there (`discover`), what does one hold that was
 * not read yet (`read`), and what do its records say (`parse`). Between `read` and `parse` the records are redacted and
 * kept; so `parse` is a pure function of records and can be asked again years later, when the source is long gone.
 */
export type Connector = {
  source: SourceId
  /** Raised whenever `parse` says something new about old records: what is stored is then parsed again. */
  version: number
  roots(machine: Machine): string[]
  /** Newest first is the caller's business. Must be fast: it runs at every sync, for every file there is. */
  discover(root: string, seen: Seen, scratch?: Scratch): Iterable<Unit | Unreadable>
  read(unit: Unit, after?: Cursor, scratch?: Scratch): Reading | Promise<Reading>
  parse(records: Iterable<RawRecord>, unit: UnitName): Parsed
  /** Where below a root something changes when a session does. Where absent, anywhere. */
  watched?(root: string): Watched[]
  /**
   * For units that hold many conversations, each record of one of them alone: tells which. Where absent, or undefined for
   * a unit, its records only make sense together.
   */
  conversationOf?(unitKey: string): ((record: RawRecord) => string | undefined) | undefined
  /** The tables of its databases that dex knows, whether it reads them or not. `dex doctor` names the others. */
  tables?: readonly string[]
  /** Brought by the user: read in a thread of its own limits, however little there is. */
  isOutside?: boolean
  /**
   * Where an agent cuts its own file short and only adds a summary of what was there (a compaction): the records that it
   * dropped and those that it has now, in the order of the conversation, all of which still belongs to it. Undefined where `now`
   * is no such file; what it dropped is superseded then.
   */
  rejoin?(dropped: RawRecord[], now: RawRecord[]): RawRecord[] | undefined
  /** Names a record across rewrites of its file. Where absent, a record is its own content. */
  identify?(record: RawRecord): string | undefined
}

/** The record of an agent that a user brings: what a module exports as `agent`. */
export type OutsideAgent = {
  /** How its refs begin: small letters, digits and _. It is stored: never change it. */
  source: string
  /** As people call it. */
  name: string
  /** Reads its sessions. */
  connector: () => Promise<Connector>
  /** The command that takes up an old conversation, by its id or by the file that it is kept in. */
  resume?: (id: string, path: string) => string[]
}

/** What a connector may know of the machine. Passed in, so that tests can have one of their own. */
export type Machine = {
  home: string
  env: Record<string, string | undefined>
  platform: NodeJS.Platform
  /** Other homes that the user wants to be looked at: containers', other people's, the Windows home that WSL sees. */
  otherHomes?: readonly string[]
  /** Folders that dex knows conversations of: for agents that keep theirs in the project. */
  projects?: readonly string[]
}

/** What is read, stored and marked as read in one piece: a transcript file, or one conversation's rows in a database. */
export type Unit = UnitName & {
  /** The file, for opening and for showing to a person. */
  path: string
  /** Different whenever the content may be different. Compared, never read. */
  stamp: string
  /** Roughly how much there is to read; drives the progress bar. */
  bytes: number
  modifiedAt: number
  /** When the file came to be, where known. Of two conversations that share messages, the older file is the original. */
  bornAt: number
}

/** `key` stays the same when the file moves (archived, compressed); `path` is where it was last seen. */
export type UnitName = { key: string; path: string }

/**
 * A folder whose changes tell of new messages: so many levels of folders below it count, but not those with a name in
 * `skip`. `files` is matched against the path from that folder on, with slashes; without it every file counts.
 */
export type Watched = { folder: string; depth: number; files?: RegExp; skip?: readonly string[] }

export type Unreadable = { unreadable: string; path: string }

/** A container (a database of many conversations) that has not changed since it was last read need not be opened. */
export type Seen = (containerPath: string, stamp: string) => boolean

/**
 * A folder of dex's own for what cannot be read in place: copies of databases, decompressed files. A connector makes it
 * when it needs it; whoever syncs removes it, and gives the same one to `discover` and `read`. Where absent, what would
 * need it is unreadable.
 */
export type Scratch = string

/** Where reading stopped. Plain JSON, stored with the data it describes. */
export type Cursor = { offset: number; crc: number; [extra: string]: unknown }

export type Reading = {
  /** `append`: the records that follow the cursor. `replace`: the source was rewritten; these are all of them. */
  mode: "append" | "replace"
  records: Iterable<RawRecord>
  /** Asked once `records` is exhausted. */
  end(): { cursor: Cursor; skipped: Skipped[]; pending: boolean }
}

/** Something that could not be read, where, and why. Counted and shown by `dex doctor sources`. */
export type Skipped = { reason: string; where: string }

export type Parsed = {
  conversations: Conversation[]
  /** Record types that this connector does not know, counted by type. */
  unknown: Record<string, number>
}

export function isUnreadable(found: Unit | Unreadable): found is Unreadable {
  return "unreadable" in found
}
