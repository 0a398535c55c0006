import { existsSync, readFileSync } from "node:fs"
import type { Addition } from "../agents/kit/wiring.ts"
import type { SourceId } from "../core/conversation.ts"
import { codeOf, DexError, messageOf } from "../core/error.ts"
import { wirableNames } from "./agents.ts"
import { EditProblem, type TextEdit } from "./edit.ts"
import { removeFile, writeText } from "./files.ts"

/** What dex added to one file, so that it can be taken out again. */
export type Added = {
  /** `dex` for the launchers, which all agents share. */
  agent: SourceId | "dex"
  /** False where dex made the file. */
  existed: boolean
  before_sha256: string
  after_sha256: string
  edits: TextEdit[]
  additions: (Addition & { made: number })[]
  made_folders: string[]
  backup?: string
}
export type Record = { [path: string]: Added }

/** Nothing yet where there is no file. Throws a DexError where it cannot be read: guessing could harm others' files. */
export function readRecord(file: string): Record {
  return readWhole(file).files
}

/** True once a person was asked which projects are private. */
export function wasAskedForPrivate(file: string): boolean {
  return readWhole(file).private_asked === true
}

export function noteAskedForPrivate(file: string): void {
  write(file, { ...readWhole(file), private_asked: true })
}

/** Whether agents' hooks are to ask dex, and since when. */
export type HooksChoice = { wanted: boolean; at: number }

/** Undefined before it was ever chosen. */
export function hooksChoice(file: string): HooksChoice | undefined {
  return readWhole(file).hooks
}

/** The same choice again keeps its time. */
export function noteHooksChoice(file: string, wanted: boolean, at: number): void {
  const whole = readWhole(file)
  if (whole.hooks?.wanted === wanted || Object.keys(whole.files).length === 0) return
  write(file, { ...whole, hooks: { wanted, at } })
}

type Whole = { files: Record; private_asked?: boolean; hooks?: HooksChoice }

function readWhole(file: string): Whole {
  let text: string
  try {
    text = readFileSync(file, "utf8")
  } catch (error) {
    if (codeOf(error) === "ENOENT") return { files: {} }
    throw damaged(file, messageOf(error))
  }
  try {
    const { version, files, private_asked, hooks } = JSON.parse(text) as Partial<Whole> & { version?: unknown }
    if (version !== 1 || typeof files !== "object" || files === null) throw new Error("not of this version")
    const wrong = Object.entries(files).find(([, added]) => !isAdded(added))
    if (wrong) throw new Error(`what it says of ${wrong[0]} is incomplete`)
    return {
      files,
      private_asked: private_asked === true || undefined,
      hooks: isChoice(hooks) ? hooks : undefined,
    }
  } catch (error) {
    throw damaged(file, messageOf(error))
  }
}

/** The file goes with the last thing that it tells of, and the question may be asked anew. */
export function writeRecord(file: string, record: Record): void {
  if (Object.keys(record).length === 0) removeFile(file, [])
  else write(file, { ...readWhole(file), files: record })
}

/** Throws a DexError where it cannot be written: an agent's file is not changed unless it is known how to change it back. */
function write(file: string, whole: Whole): void {
  const text = `${JSON.stringify({ version: 1, ...whole }, undefined, 2)}\n`
  // Installing again changes little, and every write waits for the disk.
  if (existsSync(file) && readFileSync(file, "utf8") === text) return
  try {
    writeText(file, text)
  } catch (error) {
    if (!(error instanceof EditProblem)) throw error
    throw new DexError("integrations", `${file} ${error.message}. Make room there, then run this again.`, {
      cause: error,
    })
  }
}

function isChoice(value: unknown): value is HooksChoice {
  const choice = value as Partial<HooksChoice> | null | undefined
  return typeof choice?.wanted === "boolean" && typeof choice.at === "number"
}

function isAdded(value: unknown): value is Added {
  const added = value as Partial<Added> | null
  return (
    typeof added === "object" &&
    added !== null &&
    [...wirableNames, "dex"].includes(String(added.agent)) &&
    typeof added.before_sha256 === "string" &&
    typeof added.after_sha256 === "string" &&
    typeof added.existed === "boolean" &&
    [added.edits, added.additions, added.made_folders].every(Array.isArray)
  )
}

function damaged(file: string, why: string): DexError {
  return new DexError(
    "integrations",
    `${file}, where dex keeps what it added to agents' files, cannot be read (${why}). Nothing was changed. Fix it, or remove it and delete "dex" from the agents' settings by hand.`,
  )
}
