import { existsSync, readFileSync } from "node:fs"
import type { Addition } from "../agents/kit/wiring.ts"
import type { SourceId } from "../core/conversation.ts"
import { codeOf, DexError, messageOf } from "../core/error.ts"
import { wirableNames } from "./agents.ts"
import { EditProblem, type TextEdit } from "./edit.ts"
import { removeFile, writeText } from "./files.ts"

/** dex's additions to one file, so that they can be removed again. */
export type FileAdditions = {
  /** `dex` for the launchers, which all agents share. */
  agent: SourceId | "dex"
  /** The other agents that use this file. It is removed with the last of them. */
  shared_with?: SourceId[]
  /** False if dex created the file. */
  existed: boolean
  before_sha256: string
  after_sha256: string
  edits: TextEdit[]
  /** `made`: how many names in the path of an addition existed before. */
  additions: (Addition & { made: number })[]
  made_folders: string[]
  backup?: string
}
export type AdditionsRecord = { [path: string]: FileAdditions }

/** All agents that use the file. */
export function usersOf({
  agent,
  shared_with = [],
}: Pick<FileAdditions, "agent" | "shared_with">): (SourceId | "dex")[] {
  return [agent, ...shared_with]
}

/**
 * The recorded additions; empty if there is no file. Throws a DexError if it cannot be read, because guessing could damage other
 * programs' files.
 */
export function readRecord(file: string): AdditionsRecord {
  return readIntegrations(file).files
}

/** True once a person has answered which projects are private. */
export function hasPrivateAnswer(file: string): boolean {
  return readIntegrations(file).private_asked === true
}

export function recordPrivateAnswer(file: string): void {
  write(file, { ...readIntegrations(file), private_asked: true })
}

/** Whether agents' hooks should call dex, and since when. */
export type HooksChoice = { wanted: boolean; at: number }

/** Undefined if this was never chosen. */
export function hooksChoice(file: string): HooksChoice | undefined {
  return readIntegrations(file).hooks
}

/** Records the choice, if dex is added to any agent. Repeating a choice keeps its time. */
export function recordHooksChoice(file: string, wanted: boolean, at: number): void {
  const current = readIntegrations(file)
  if (current.hooks?.wanted === wanted || Object.keys(current.files).length === 0) return
  write(file, { ...current, hooks: { wanted, at } })
}

type IntegrationsFile = { files: AdditionsRecord; private_asked?: boolean; hooks?: HooksChoice }

function readIntegrations(file: string): IntegrationsFile {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { files: {} }
    throw unreadableError(file, messageOf(error))
  }
  try {
    const { version, files, private_asked, hooks } = JSON.parse(text) as Partial<IntegrationsFile> & {
      version?: unknown
    }
    if (version !== 1 || typeof files !== "object" || files === null) throw new Error("it has another version")
    const incomplete = Object.entries(files).find(([, added]) => !isFileAdditions(added))
    if (incomplete) throw new Error(`its entry for ${incomplete[0]} is incomplete`)
    return {
      files,
      private_asked: private_asked === true || undefined,
      hooks: isHooksChoice(hooks) ? hooks : undefined,
    }
  } catch (error) {
    throw unreadableError(file, messageOf(error))
  }
}

/** Writes the record. If it has no entries, removes the file, so that dex may ask the person its questions again. */
export function writeRecord(file: string, record: AdditionsRecord): void {
  if (Object.keys(record).length === 0) removeFile(file, [])
  else write(file, { ...readIntegrations(file), files: record })
}

/** Throws a DexError if the file cannot be written. Then agents' files are not changed, because that could not be undone. */
function write(file: string, content: IntegrationsFile): void {
  const text = `${JSON.stringify({ version: 1, ...content }, undefined, 2)}\n`
  // A repeated install usually changes nothing, and every write waits for the disk.
  if (existsSync(file) && readFileSync(file, "utf8") === text) return
  try {
    writeText(file, text)
  } catch (error) {
    if (!(error instanceof EditProblem)) throw error
    throw new DexError("integrations", `${file} ${error.message}. Free some space there, then run this again.`, {
      cause: error,
    })
  }
}

function isHooksChoice(value: unknown): value is HooksChoice {
  const choice = value as Partial<HooksChoice> | null | undefined
  return typeof choice?.wanted === "boolean" && typeof choice.at === "number"
}

function isFileAdditions(value: unknown): value is FileAdditions {
  const added = value as Partial<FileAdditions> | null
  return (
    typeof added === "object" &&
    added !== null &&
    [added.agent, ...(added.shared_with ?? [])].every((agent) => [...wirableNames, "dex"].includes(String(agent))) &&
    typeof added.before_sha256 === "string" &&
    typeof added.after_sha256 === "string" &&
    typeof added.existed === "boolean" &&
    [added.edits, added.additions, added.made_folders].every(Array.isArray)
  )
}

function unreadableError(file: string, why: string): DexError {
  return new DexError(
    "integrations",
    `${file}, which lists dex's additions to agents' files, cannot be read (${why}). Nothing was changed. Fix it, or remove it and delete "dex" from the agents' settings by hand.`,
  )
}
