import type { Conversation, Effect, Kind, Message, Role, SourceId, Title } from "../../core/conversation.ts"
import type { Ref, RefQuery } from "../../core/ref.ts"
import type { Usage } from "../../core/usage.ts"
import type { BackupContent } from "./backup.ts"
import type { Block } from "./codec.ts"
import type { IsInProject } from "./private-folders.ts"
import type { Healing } from "./rot/heal.ts"
import type { Injury, Inspection } from "./rot/inspect.ts"

/**
 * What is kept, to be read: SQLite today, PostgreSQL for a team later. One contract suite describes every one, and nothing
 * above knows which it asks.
 */
export type HistoryReader = {
  /** Names this history. An index built from another one is of no use. */
  id(): Promise<string>
  /** The token of the newest change: equal tokens mean an equal history. */
  revision(): Promise<string>
  /** Everything that changed after a token, oldest change first. The token is opaque; undefined means the beginning. */
  changes(after: string | undefined, limit: number): Promise<Changes>

  resolve(query: RefQuery): Promise<ConversationRow[]>
  conversation(ref: Ref): Promise<ConversationRow | undefined>
  /** Of each of these; empty where it has none. Nothing is checked, so it is for putting them in order, never for showing. */
  titles(refs: Ref[]): Promise<string[]>
  list(filter: ListFilter): Promise<{ rows: ConversationRow[]; total: number; left_out: Partial<Record<Kind, number>> }>
  /** When, where and with which agent each conversation was that a listing shows: for counting them, not for showing them. */
  spans(filter: Pick<ListFilter, "kinds" | "among" | "inside">): Promise<ConversationSpan[]>
  /** In order of position, without what is damaged. `numbers` picks some of them. */
  messages(ref: Ref, numbers?: number[]): Promise<StoredMessage[]>
  /** These messages are read next: a history that is far away reads them together. */
  readAhead?(refs: Ref[]): Promise<void>
  /** Which messages there are and the version of each: a message with a known version need not be read again. */
  versions(ref: Ref): Promise<MessageVersion[]>

  /** Conversations that edited, read or named a file whose path holds this text or matches its end. */
  touching(file: string): Promise<Ref[]>
  /** Conversations in which a model answered whose name contains this, in any case. */
  usingModel(model: string): Promise<Ref[]>
  filesOf(ref: Ref): Promise<string[]>
  /** The files it changed, the most changed first. */
  editedFiles(ref: Ref, limit: number): Promise<string[]>
  commandsOf(ref: Ref): Promise<CommandRow[]>
  madeIn(ref: Ref): Promise<MadeRow[]>
  /** The commits that conversations made, newest first. Copies in forks and what was superseded do not count. */
  commits(filter: { limit: number; inside?: string }): Promise<CommitRow[]>
  /** What was done in each of these, in their order. Copies in forks and what was superseded do not count. */
  work(refs: Ref[]): Promise<Work[]>
  /**
   * The messages of a project just before and just after one of its messages, that one included, in order of time. Those
   * without a time, copies and what was superseded are not among them.
   */
  around(ref: Ref & { number: number }, before: number, after: number): Promise<(Ref & { number: number })[]>

  stats(): Promise<Stats>
  /** Those of which a file was read, or could not be. */
  keptSources(): Promise<SourceId[]>
  sourceReport(): Promise<SourceReport[]>
  /** By name. */
  collections(): Promise<Collection[]>
  /** What there is in a collection. */
  documentsIn(name: string): Promise<{ documents: number; sections: number; estimated_tokens: number }>
  projects(): Promise<ProjectRow[]>
  /** The projects in which most was done, most first. */
  busiestProjects(limit: number): Promise<ProjectRow[]>

  /** These and their subagents: what forgetting them takes with them. */
  withSubagents(refs: Ref[]): Promise<Ref[]>
  /** These, their subagents, and the forks, either way, that hold copies of the same messages. */
  family(refs: Ref[]): Promise<Ref[]>
  /** How many were forgotten until now. */
  forgotten(): Promise<number>
  /** How far the running or the last sync got: units read, of those that were found. */
  progress(): Promise<Progress | undefined>
  close(): void
}

/** Keeps what agents' files say: what a sync needs to know of before, and all that changes. A write is one transaction. */
export type HistoryWriter = HistoryReader & {
  /** Every unit of a source, with no more than is needed to see that it has not changed. */
  knownUnits(source: SourceId): Promise<Map<string, UnitMark>>
  knownUnit(source: SourceId, key: string): Promise<KnownUnit | undefined>
  knownContainers(source: SourceId): Promise<Map<string, string>>
  /**
   * The unit's kept records, oldest first: `live` are in the source, `left` were there before it was rewritten. Throws a
   * DexError `damaged` where some cannot be read, unless only those are wanted that can.
   */
  rawLines(
    source: SourceId,
    unitKey: string,
    kind: "live" | "left",
    options?: { onlyWhole?: boolean },
  ): Promise<string[]>
  /** True where every kept record of the unit can be read. */
  hasWholeRecords(source: SourceId, unitKey: string): Promise<boolean>
  /** Files that could not be read at all, as the last sync found them. */
  unreadable(source: SourceId): Promise<UnreadableFile[]>
  projectIdentities(): Promise<ProjectIdentity[]>
  /** Everywhere that a project is or was, in every spelling: on this machine, on another one, before it moved. */
  projectFolders(path: string): Promise<string[]>
  /** Which of these conversations were forgotten. */
  forgottenAmong(source: SourceId, ids: Set<string>): Promise<Set<string>>

  writeUnit(write: UnitWrite): Promise<WriteResult>
  /**
   * The source no longer has these units. What was kept of them stays. `archived` says how many were not archived before;
   * `heirs` are other units that tell the same conversations, and should be read again to name them.
   */
  archiveUnits(source: SourceId, keys: string[]): Promise<{ archived: number; heirs: string[] }>
  /** From now on it is called otherwise. Nothing happens where the new name is taken. */
  renameUnit(source: SourceId, key: string, name: { key: string; path: string }): Promise<void>
  saveContainer(source: SourceId, path: string, stamp: string): Promise<void>
  saveUnreadable(source: SourceId, unreadable: UnreadableFile[]): Promise<void>
  saveProgress(progress: Progress): Promise<void>

  saveCollection(collection: Collection): Promise<void>
  /** With all its documents. False when there is none of that name. */
  removeCollection(name: string): Promise<boolean>
  /** Documents that are gone from their collection: unlike conversations, nothing of them stays. */
  removeDocuments(keys: string[]): Promise<number>

  saveProjectIdentity(path: string, identity: { git_remote?: string; root_commit?: string }): Promise<void>
  /** From now on what was done in this folder, on another machine or before it moved, belongs to that project. */
  addProjectPath(path: string, project: string): Promise<void>
  /**
   * Also before the first conversation of a project. All conversations that worked in it, in whatever folder they
   * began, belong to it from then on, until it is no longer private.
   */
  setPrivate(projectPath: string, isPrivate: boolean, isIn?: IsInProject): Promise<boolean>
  /**
   * Takes them out for good. `ownerOf` tells, for a unit of many conversations, which of them a record belongs to: the
   * records of the others are kept. Of every other unit that told one of these, no record is kept.
   */
  forget(refs: Ref[], ownerOf?: OwnerOf): Promise<number>
  /** Merges the history in a copy of another machine's file, whose schema was checked. */
  importFrom(path: string, options: ImportOptions): Promise<ImportReport>
  /** Writes the whole history, and the databases beside it by name, into one file, and reads it back. */
  backup(file: string, beside: Record<string, string>): Promise<BackupContent>

  /** What was found damaged since this was last asked: refs of conversations, and in words what else. */
  takeDamaged(): Promise<string[]>
  /** What of these is damaged, and what would restore it. */
  injuries(refs: Ref[]): Promise<Injury[]>
  /** Restores what it can of these, or, `everywhere`, of everything; what is to be read again is marked for the next sync. */
  heal(refs: Ref[], options?: { everywhere?: boolean }): Promise<Healing>
  /** Gives checksums to what an older dex wrote, until the deadline. */
  seal(deadline: number): Promise<void>
  /** Reads everything there is, and says what is not what was written. */
  inspect(): Promise<Inspection>
  /** Problems found in the file itself; empty when there are none. */
  check(): Promise<string[]>
  /** Brings the write-ahead log back into the file. */
  checkpoint(): Promise<void>
}

export type OwnerOf = (
  source: SourceId,
  unitKey: string,
) => ((record: Record<string, unknown>) => string | undefined) | undefined

/** A named set of documents. `project` is set where it belongs to one; others are for all. */
export type Collection = {
  name: string
  kind: "folder" | "file" | "git" | "npm"
  /** What was asked for: a path, an address, a package. */
  origin: string
  /** The folder its documents are read from; nothing outside it ever is. */
  root: string
  /** Of the root, only this file. */
  only?: string
  project?: string
  version?: string
  added_at: number
  synced_at?: number
  /** What could not be read, as the last sync found it. */
  problems: string[]
}

export type Progress = { done: number; total: number; at: number }

export type UnitMark = {
  path: string
  stamp: string
  connector_version: number
  redaction_version: number
  state: "present" | "archived"
}

export type KnownUnit = UnitMark & {
  key: string
  cursor: string
  born_at: number
  modified_at: number
  raw_withheld: boolean
}

export type UnitWrite = {
  source: SourceId
  /** From a file that somebody brought: it adds to what is here, and changes nothing of it. */
  foreign?: boolean
  /** Its records are not complete: they are not to be parsed again. */
  withholdsRaw?: boolean
  unit: { key: string; path: string; stamp: string; bornAt: number; modifiedAt: number }
  /** False when the unit was only parsed again: its source may be long gone. */
  seen: boolean
  /** True when some of its kept records were damaged: what is stored and not told now is kept. */
  partial?: boolean
  cursor: string
  connector_version: number
  redaction_version: number
  /** `append` adds to the live records, `replace` takes their place; both add to the left ones. `rewrite` replaces both. */
  raw: { mode: "append" | "replace" | "rewrite"; live: Block[]; left: Block[] }
  conversations: ConversationWrite[]
  /**
   * They are all that this unit's records ever told: what is stored beyond them is withdrawn. False where earlier records
   * are no longer known (withheld, and the source rewritten since): then what the unit once told stays.
   */
  tellsAll: boolean
  /**
   * A conversation that this unit alone told, and no longer tells, is gone. Only a better parser of the very same records
   * may say so, and a document, whose file is there to be read again.
   */
  dropsUntold: boolean
  /** Of what was read now; an append adds them to what was counted before. */
  skipped: { reason: string; where: string }[]
  redactions: Record<string, number>
  /** Of all the unit's records. */
  unknown: Record<string, number>
}

export type ConversationWrite = Omit<Conversation, "messages"> & {
  /** The project's folder, worked out from the working directories. */
  project?: string
  /** The projects of its other folders, where they are others. */
  projects?: string[]
  messages: MessageWrite[]
}

/**
 * `superseded`: once in the source, no longer there after a rewrite. `stored`: what it is called in another history, whose
 * messages are known by the hash of their key only.
 */
export type MessageWrite = Message & { superseded?: boolean; stored?: { key: Buffer; number: number } }

/** What an import brought; `forgotten` were left out because they were deleted here, the others by what was wrong with them. */
export type ImportReport = {
  conversations: number
  messages: number
  forgotten: number
  notes: number
  left_out: { what: string; count: number }[]
}

/** What is allowed in, and as what. */
export type ImportOptions = {
  /** The agents that dex knows here. Nothing else becomes a conversation. */
  sources: ReadonlySet<SourceId>
  /** The agent whose conversations are a person's own notes; they are taken only if that is asked for. */
  notes: SourceId
  withNotes: boolean
  /** Projects that are private from the beginning of the import, by their folders here. */
  privateProjects: readonly string[]
  /** By today's rules, whatever the file says of itself. */
  redact: (record: Record<string, unknown>) => Record<string, unknown>
  redactionVersion: number
  onProgress?: (done: number, total: number) => void
}

/** How a project is known on any machine. */
export type ProjectIdentity = { path: string; private: boolean; git_remote?: string; root_commit?: string }

export type WriteResult = {
  changed: number
  added_messages: number
  forgotten: number
  /** The messages that are new or different, as `messages` would give them: who follows the feed need not read them. */
  fresh: { ref: Ref; messages: StoredMessage[] }[]
  /** Of each conversation that changed, all that its messages say of what was spent. Absent where not all are at hand. */
  paid: { ref: Ref; change: number; ended_at?: number; messages: PaidFields[] }[]
  /** Keys of units that tell the same conversations, and may now be the ones that tell a message or name it: read them again. */
  again: string[]
}

export type Changes = { changes: Change[]; token: string; more: boolean; rebuild: boolean }
/** `change` numbers the conversation's newest change, where the history counts them. */
export type Change = { conversation: string; deleted: boolean; ref?: Ref; change?: number }

export type ConversationRow = {
  ref: Ref
  kind: Kind
  title?: Title
  project?: string
  private: boolean
  cwds: string[]
  git_branch?: string
  agent_version?: string
  parent?: { id: string; call_id?: string }
  fork_of?: string
  started_at?: number
  ended_at?: number
  models: string[]
  usage?: Usage
  /** Those that the source has; where it has none any more, those that it once had. */
  message_count: number
  /** The source has nothing of it any more. */
  superseded: boolean
  copied_count: number
  estimated_tokens: number
  text_bytes: number
  path: string
  archived: boolean
}

export type MessageVersion = { number: number; version: number; copied: boolean }

export type StoredMessage = {
  number: number
  role: Role
  at?: number
  model?: string
  parts: Message["parts"]
  effects: Effect[]
  usage?: Usage
  abandoned: boolean
  superseded: boolean
  copied: boolean
}

export type PaidFields = Omit<StoredMessage, "role" | "parts" | "abandoned">

export type CommandRow = { number: number; command: string; exit_status?: number; failed?: boolean; error?: string }
export type MadeRow = {
  number: number
  kind: "commit" | "pull_request"
  name: string
  subject?: string
  branch?: string
}
export type CommitRow = { ref: Ref & { number: number }; hash: string; subject: string; at?: number }
/** `files` counts those that were edited. */
export type Work = { lines_added: number; lines_removed: number; files: number; commits: number }
export type ProjectRow = { path: string; private: boolean }

export type ListFilter = {
  project?: string
  source?: SourceId
  from?: number
  to?: number
  kinds?: Kind[]
  /** Exactly this project, where `project` is a part of its path. */
  in_project?: string
  /** Only this conversation and its subagents. */
  conversation?: Ref
  /** Only these. */
  among?: Ref[]
  /** Documents, in place of conversations; of this collection. */
  collection?: string
  limit: number
  offset: number
  /** The project in which the question is asked: its private conversations may be shown there. */
  inside?: string
}

export type ConversationSpan = { source: SourceId; project?: string; started_at?: number; ended_at?: number }

/** `stamp` and `tried_at` are set where trying again costs much, so that it is not done at every sync. */
export type UnreadableFile = { path: string; reason: string; stamp?: string; tried_at?: number }

export type SourceReport = {
  source: SourceId
  units: number
  archived: number
  conversations: number
  /** Those, by who ran them. */
  kinds: Partial<Record<Kind, number>>
  messages: number
  skipped: Record<string, number>
  unknown: Record<string, number>
  redactions: Record<string, number>
  unreadable: UnreadableFile[]
  /** Databases that hold many conversations, by their paths, if there are any. */
  databases?: string[]
  last_at?: number
}

export type Stats = {
  conversations: number
  messages: number
  estimated_tokens: number
  text_bytes: number
  earliest?: number
  latest?: number
  sources: Record<string, number>
  kinds: Record<string, number>
}
