import type { Conversation, Effect, Kind, Message, Role, SourceId, Title } from "../../core/conversation.ts"
import type { Ref, RefQuery } from "../../core/ref.ts"
import type { Usage } from "../../core/usage.ts"
import type { BackupContent } from "./backup.ts"
import type { Block } from "./codec.ts"
import type { IsInProject } from "./private-folders.ts"
import type { Healing } from "./rot/heal.ts"
import type { Injury, Inspection } from "./rot/inspect.ts"

/**
 * Read access to the history: SQLite today, PostgreSQL for a team later. One contract suite tests every implementation, and
 * callers depend on none of them.
 */
export type HistoryReader = {
  /** Identifies this history. An index built from another history is useless. */
  id(): Promise<string>
  /** The token of the newest change. Equal tokens mean equal histories. */
  revision(): Promise<string>
  /** Returns all changes after a token, oldest first. The token is opaque; undefined means from the beginning. */
  changes(after: string | undefined, limit: number): Promise<Changes>

  /** Returns the conversations whose id equals the given one or begins with it, except those of the projects in `except`. */
  resolve(query: RefQuery, except?: readonly string[]): Promise<ConversationRow[]>
  conversation(ref: Ref): Promise<ConversationRow | undefined>
  /**
   * The title of each conversation, empty if it has none. Titles are not checked for damage: use them for sorting, never for
   * display.
   */
  titles(refs: Ref[]): Promise<string[]>
  list(filter: ListFilter): Promise<{ rows: ConversationRow[]; total: number; left_out: Partial<Record<Kind, number>> }>
  /** The time, project and agent of each conversation that a listing shows, for counting. */
  spans(filter: Pick<ListFilter, "kinds" | "among" | "inside">): Promise<ConversationSpan[]>
  /** The messages in order of position, without damaged ones. `numbers` selects some of them. */
  messages(ref: Ref, numbers?: number[]): Promise<StoredMessage[]>
  /**
   * Announces that these messages, or complete conversations, will be read next, so that a remote history can load all of them at
   * once.
   */
  readAhead?(refs: Ref[]): Promise<void>
  /** The number and version of each message. A message whose version is unchanged need not be read again. */
  versions(ref: Ref): Promise<MessageVersion[]>

  /** Conversations that edited, read or named a file whose path, absolute or relative to its project, contains this text. */
  touching(file: string): Promise<Ref[]>
  /** Conversations with answers of a model whose name contains this text, in upper or lower case. */
  usingModel(model: string): Promise<Ref[]>
  /** Conversations to which a person gave this tag. */
  tagged(tag: string): Promise<Ref[]>
  /** Conversations that only this history has, because their agents have deleted them. Imported ones are left out. */
  keptOnlyHere(): Promise<Ref[]>
  filesOf(ref: Ref): Promise<string[]>
  /** The files that the conversation changed, most changed first. */
  editedFiles(ref: Ref, limit: number): Promise<string[]>
  commandsOf(ref: Ref): Promise<CommandRow[]>
  madeIn(ref: Ref): Promise<MadeRow[]>
  /** The commits that conversations made, newest first. Copies in forks and superseded messages do not count. */
  commits(filter: { limit: number; inside?: string }): Promise<CommitRow[]>
  /** The work in each of these conversations, in the given order. Copies in forks and superseded messages do not count. */
  work(refs: Ref[]): Promise<Work[]>
  /**
   * The messages of a project just before and after one of its messages, including that one, in order of time. Messages without a
   * time, copies and superseded messages are left out.
   */
  around(ref: Ref & { number: number }, before: number, after: number): Promise<(Ref & { number: number })[]>

  /** Counts everything except the conversations of the projects in `except`. */
  stats(except?: readonly string[]): Promise<Stats>
  /** The sources of all files that dex has read or failed to read. */
  storedSources(): Promise<SourceId[]>
  sourceReport(): Promise<SourceReport[]>
  /** The collections, sorted by name. */
  collections(): Promise<Collection[]>
  documentsIn(name: string): Promise<{ documents: number; sections: number; estimated_tokens: number }>
  /** With `private`, others may be left out: in a team's history no project is private. */
  projects(wanted?: "private"): Promise<ProjectRow[]>
  /** The projects with the most conversations, most first, without those in `except`. */
  busiestProjects(limit: number, except?: readonly string[]): Promise<ProjectRow[]>
  /** All conversations and documents of these projects. */
  conversationsIn(projects: readonly string[]): Promise<Ref[]>

  /** These conversations and their subagents: everything that forgetting them deletes. */
  withSubagents(refs: Ref[]): Promise<Ref[]>
  /** These conversations, their subagents, and the forks in either direction that contain copies of the same messages. */
  family(refs: Ref[]): Promise<Ref[]>
  /** The number of forgotten conversations. */
  forgotten(): Promise<number>
  /** The progress of the current or last sync: the number of units read, and of units found. */
  progress(): Promise<Progress | undefined>
  close(): void
}

/** Write access for syncs: the state left by earlier syncs, and every change. Each write is one transaction. */
export type HistoryWriter = HistoryReader & {
  /** Returns every unit of a source, with just enough data to detect changes. */
  knownUnits(source: SourceId): Promise<Map<string, UnitMark>>
  knownUnit(source: SourceId, key: string): Promise<KnownUnit | undefined>
  knownContainers(source: SourceId): Promise<Map<string, string>>
  /**
   * The unit's stored records, oldest first: `live` are in the source, `left` were there before it was rewritten. Throws a
   * DexError `damaged` if some cannot be read, unless `onlyReadable` selects the readable ones.
   */
  rawLines(
    source: SourceId,
    unitKey: string,
    kind: "live" | "left",
    options?: { onlyReadable?: boolean },
  ): Promise<string[]>
  /** Whether every stored record of the unit can be read. */
  hasReadableRecords(source: SourceId, unitKey: string): Promise<boolean>
  /** The files that the last sync could not read at all. */
  unreadable(source: SourceId): Promise<UnreadableFile[]>
  /** The units with redactions, except documents. */
  unitsWithSecrets(): Promise<UnitWithSecrets[]>
  projectIdentities(): Promise<ProjectIdentity[]>
  /** True if git was not yet asked about the folder of every project. */
  hasUnidentifiedProjects(): Promise<boolean>
  /** The commits that the conversations of all projects made, newest conversation first. */
  projectCommits(): Promise<ProjectCommit[]>
  /** Some of the files in which the conversations of a project added lines, relative to it. */
  projectFiles(path: string): Promise<string[]>
  /** The addresses of the pull requests that the conversations of a project made. */
  projectPullRequests(path: string): Promise<string[]>
  /** Every folder of a project in every spelling, including those on other machines and from before it moved. */
  projectFolders(path: string): Promise<string[]>
  forgottenAmong(source: SourceId, ids: Set<string>): Promise<Set<string>>

  writeUnit(write: UnitWrite): Promise<WriteResult>
  /**
   * Marks units as archived because the source no longer has them. Their stored content stays. `archived` counts those that
   * were not archived before; `heirs` are other units with the same conversations, which should be read again for their titles.
   */
  archiveUnits(source: SourceId, keys: string[]): Promise<{ archived: number; heirs: string[] }>
  /** Renames a unit. Does nothing if the new name is taken. */
  renameUnit(source: SourceId, key: string, name: { key: string; path: string }): Promise<void>
  saveContainer(source: SourceId, path: string, stamp: string): Promise<void>
  saveUnreadable(source: SourceId, unreadable: UnreadableFile[]): Promise<void>
  saveProgress(progress: Progress): Promise<void>

  saveCollection(collection: Collection): Promise<void>
  /** Deletes a collection and its documents. Returns false if there is none of that name. */
  removeCollection(name: string): Promise<boolean>
  /** Deletes documents that no longer exist in their collection. Unlike conversations, they are not archived. */
  removeDocuments(keys: string[]): Promise<number>

  saveProjectIdentity(path: string, facts: GitFacts): Promise<void>
  /**
   * From now on, work in this folder belongs to that project. If the folder was a project, its conversations move. If either is
   * private, the joined project is.
   */
  joinProject(folder: string, project: string, why: string): Promise<void>
  /** Like `splitProject`, also for a folder that was never part of another project. */
  keepApart(folder: string): Promise<void>
  /** Calls a project by another of its folders, because its own is gone. */
  renameProject(project: string, folder: string): Promise<void>
  /**
   * Makes a folder a project of its own again. dex then never joins it with another project. It is private if the project was. Returns false
   * if it is not a folder of a project with several.
   */
  splitProject(folder: string): Promise<boolean>
  /**
   * Marks a project as private or not, even before its first conversation. Every conversation that worked in a private project
   * belongs to it, regardless of the folder in which it began, until the project is no longer private.
   */
  setPrivate(projectPath: string, isPrivate: boolean, isIn?: IsInProject): Promise<boolean>
  /**
   * Deletes conversations permanently. For a unit with several conversations, `ownerOf` returns the conversation of a record, so
   * that the other conversations keep theirs. Any other unit that contained one of these conversations loses all its records.
   */
  forget(refs: Ref[], ownerOf?: OwnerOf): Promise<number>
  /** Changes what a person added to a conversation. */
  mark(ref: Ref, change: MarksChange): Promise<Marks>
  /** Merges a copy of another machine's history, whose schema has been checked. */
  importFrom(path: string, options: ImportOptions): Promise<ImportReport>
  /** Writes the complete history and the named databases into one file, and verifies it. */
  backup(file: string, beside: Record<string, string>): Promise<BackupContent>

  /** Returns the damage found since the last call: refs of conversations, and descriptions of anything else. */
  takeDamaged(): Promise<string[]>
  /** The damage in these conversations, and what would restore it. */
  injuries(refs: Ref[]): Promise<Injury[]>
  /**
   * Restores what it can of these conversations, or of everything if `everywhere`. Marks the units that the next sync has to read
   * again.
   */
  heal(refs: Ref[], options?: { everywhere?: boolean }): Promise<Healing>
  /** Adds checksums to rows that an older dex wrote, until the deadline. */
  seal(deadline: number): Promise<void>
  /** Reads everything and reports whatever differs from what was written. */
  inspect(): Promise<Inspection>
  /** Returns descriptions of problems with the database file; empty if there are none. */
  check(): Promise<string[]>
  /** Moves the write-ahead log into the database. */
  checkpoint(): Promise<void>
}

export type OwnerOf = (
  source: SourceId,
  unitKey: string,
) => ((record: Record<string, unknown>) => string | undefined) | undefined

/** A named set of documents. If `project` is set, the collection belongs to that project, otherwise to all. */
export type Collection = {
  name: string
  kind: "folder" | "file" | "git" | "npm"
  /** The origin as the user entered it: a path, a URL or a package. */
  origin: string
  /** The folder from which documents are read. Nothing outside it is ever read. */
  root: string
  /** If set, only this file of the root is read. */
  only?: string
  project?: string
  version?: string
  added_at: number
  synced_at?: number
  /** Descriptions of documents that the last sync could not read. */
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
  /** True for a file that a user imports: it may only add to the history, never change what is stored. */
  foreign?: boolean
  /** True if the unit's records are incomplete, so that they must not be parsed again. */
  withholdsRaw?: boolean
  unit: { key: string; path: string; stamp: string; bornAt: number; modifiedAt: number }
  /** True if the source exists now. False if only stored records were parsed again, since the source may be gone. */
  sourceExists: boolean
  /** True if some stored records were damaged. Stored messages that are missing from this write then stay. */
  partial?: boolean
  cursor: string
  connector_version: number
  redaction_version: number
  /**
   * The unit's raw records. `append` adds to the live records, and `replace` replaces them; both also add to the `left`
   * records. `rewrite` replaces both kinds.
   */
  raw: { mode: "append" | "replace" | "rewrite"; live: Block[]; left: Block[] }
  conversations: ConversationWrite[]
  /**
   * True if the conversations are everything that this unit's records ever contained, so that its other stored messages can be
   * removed. False if earlier records are no longer available (they were withheld, and the source has been rewritten): then
   * earlier messages stay.
   */
  isComplete: boolean
  /**
   * True to delete conversations that only this unit contained and that it no longer contains. Only for a better parser of the
   * same records, and for documents, whose files can be read again.
   */
  dropsMissing: boolean
  /** True if `skipped` and `redactions` are what this write found beyond the stored counts, because stored records stay. */
  addsToCounts?: boolean
  skipped: { reason: string; where: string }[]
  /** Secrets removed from the unit's records, by rule. */
  redactions: Record<string, number>
  /** The unknown records among all of the unit's records, by type. */
  unknown: Record<string, number>
}

export type ConversationWrite = Omit<Conversation, "messages"> & {
  /** The project's folder, derived from the working directories. */
  project?: string
  /** The projects of the conversation's other folders, if they differ from `project`. */
  projects?: string[]
  /** The worktrees outside the project's folder in which it worked. */
  worktrees?: string[]
  messages: MessageWrite[]
}

/**
 * A message to store. `superseded` is true if a rewritten source no longer contains it. `stored` is its key and number in another
 * history, where only the hash of its key is known.
 */
export type MessageWrite = Message & { superseded?: boolean; stored?: { key: Buffer; number: number } }

/**
 * The result of an import. `forgotten` counts conversations that were not imported because they were deleted here; `left_out`
 * counts everything else that was not imported, by problem.
 */
export type ImportReport = {
  conversations: number
  messages: number
  forgotten: number
  notes: number
  left_out: { what: string; count: number }[]
}

/** Which parts of a file to import, and how. */
export type ImportOptions = {
  /** The agents that this installation of dex knows. Other sources are not imported. */
  sources: ReadonlySet<SourceId>
  /** The source of the person's own notes, which are imported only on request (`withNotes`). */
  notes: SourceId
  withNotes: boolean
  /** Projects that are private from the start of the import, by their folders on this machine. */
  privateProjects: readonly string[]
  /** Redacts a record by the current rules, even if the file claims to be redacted by them. */
  redact: (record: Record<string, unknown>) => Record<string, unknown>
  redactionVersion: number
  onProgress?: (done: number, total: number) => void
}

/** A project's identity on any machine. */
export type ProjectIdentity = {
  path: string
  private: boolean
  git_remote?: string
  root_commit?: string
  /** Network addresses, normalised (git/identity.ts). */
  remotes?: string[]
  /** The state of its git folder when dex last asked git about it. */
  stamp?: string
  /** True if the user split this project from another one. dex then never joins it with any project. */
  apart?: boolean
  /** The project's other folders, and why they belong to it. */
  folders?: { path: string; why?: string }[]
  conversations?: number
}

/** The stamp of a project of which no folder exists any longer. */
export const GONE = "gone"

/** Why a folder belongs to a project, if it is a worktree outside of the project's folder. */
export const WORKTREE_REASON = "a worktree of it"

/** A commit that a conversation of a project made. */
export type ProjectCommit = { project: string; hash: string; subject: string; at?: number }

/** Facts about a project's folder that come from git. */
export type GitFacts = { git_remote?: string; root_commit?: string; remotes?: string[]; stamp?: string }

export type WriteResult = {
  changed: number
  added_messages: number
  forgotten: number
  /** The new or changed messages, as `messages` would return them, so that followers of the feed need not read them. */
  fresh: { ref: Ref; messages: StoredMessage[] }[]
  /** The spending data of all messages of each changed conversation. Missing if not all of them were loaded. */
  paid: { ref: Ref; change: number; ended_at?: number; messages: PaidFields[] }[]
  /** Keys of units that contain the same conversations and may now provide a message or the title. Read them again. */
  unitsToRead: string[]
}

export type Changes = { changes: Change[]; token: string; more: boolean; rebuild: boolean }
/** `change` is the number of the conversation's newest change, if the history counts changes. */
export type Change = { conversation: string; deleted: boolean; ref?: Ref; change?: number }

/** The title and the tags that a person gave to a conversation. They are never sent to a hub. */
export type Marks = { title?: string; tags: string[] }
/** An empty title removes the person's own. */
export type MarksChange = { title?: string; addedTags?: readonly string[]; removedTags?: readonly string[] }

export type ConversationRow = {
  ref: Ref
  kind: Kind
  title?: Title
  /** Set if the person gave it another title here: the title without that, or null if there is none. */
  recorded_title?: Title | null
  /** Absent if there are none. */
  tags?: string[]
  project?: string
  /** The other folders of the project. Only `conversation` sets them. */
  folders?: string[]
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
  /** The number of messages in the source. If the source no longer has any, the number of stored ones. */
  message_count: number
  /** True if the source no longer has any of the messages, so that only the stored ones are left. */
  superseded: boolean
  copied_count: number
  estimated_tokens: number
  text_bytes: number
  path: string
  archived: boolean
  /** The person from whose history it was imported, or "another machine". */
  imported_from?: string
  /** Only in a team's history. */
  access?: ConversationAccess
}

/** Who may read a conversation of a team. The author and the project are numbers of the hub's tables. */
export type ConversationAccess = { author: number; project: number; visibility: "private" | "project" | "org" }

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
/** The work in a conversation. `files` counts the edited files. */
export type Work = { lines_added: number; lines_removed: number; files: number; commits: number }
export type ProjectRow = {
  path: string
  private: boolean
  /** Other names of the project: its other folders, and its remotes. */
  names?: string[]
}

export type ListFilter = {
  project?: string
  source?: SourceId
  from?: number
  to?: number
  kinds?: Kind[]
  /** Matches exactly this project; `project` matches a part of any of its folders or remotes. */
  in_project?: string
  /** Selects only this conversation and its subagents. */
  conversation?: Ref
  /** Selects only these conversations. */
  among?: Ref[]
  /** Lists the documents of these collections instead of conversations. */
  collections?: string[]
  limit: number
  offset: number
  /** The current project, whose private conversations may be shown. */
  inside?: string
}

export type ConversationSpan = { source: SourceId; project?: string; started_at?: number; ended_at?: number }

/** A file that could not be read. `stamp` and `tried_at` are set if a retry is expensive, so that not every sync retries. */
export type UnreadableFile = { path: string; reason: string; stamp?: string; tried_at?: number }

/** A file, or a part of a database, from which dex removed secrets when it read it. */
export type UnitWithSecrets = {
  source: SourceId
  path: string
  isArchived: boolean
  /** True if the unit was imported from another machine's history, so that its path is a path there. */
  isImported: boolean
  redactions: Record<string, number>
  conversations: string[]
  /** The projects of these conversations. */
  projects: string[]
}

export type SourceReport = {
  source: SourceId
  units: number
  archived: number
  conversations: number
  /** The number of conversations, by who ran them. */
  kinds: Partial<Record<Kind, number>>
  messages: number
  skipped: Record<string, number>
  unknown: Record<string, number>
  redactions: Record<string, number>
  unreadable: UnreadableFile[]
  /** Paths of databases that contain several conversations, if there are any. */
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
