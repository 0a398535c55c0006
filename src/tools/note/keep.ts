import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { noteFileOf, noteIdOf } from "../../agents/dex-note/connector.ts"
import { notesFolder } from "../../agents/registry.ts"
import { codeOf, DexError } from "../../core/error.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { redactText } from "../../redact/redact.ts"
import type { Dex } from "../context.ts"

// Writes the files of notes. A file has one line for each wording of the note and for each confirmation.

export type NoteLine = {
  text: string
  /** Absent if a person wrote the note. */
  agent?: string
  project: string
  file?: string
  rejects?: string
}

const MAX_TRIES = 100

/** Saves a note in a new file, named after the current time. A second note in the same millisecond gets a number. */
export function saveNote(dex: Dex, note: NoteLine): Ref {
  const folder = notesFolder(dex.home.dir)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  const time = new Date(dex.now()).toISOString().replaceAll(":", "-").replace(".", "-")
  for (let n = 1; ; n++) {
    const id = noteIdOf(n === 1 ? time : `${time}-${n}`)
    try {
      writeFileSync(join(folder, noteFileOf(id)), noteLine(dex, note), { mode: 0o600, flag: "wx" })
      return { source: "dex_note", id }
    } catch (error) {
      if (codeOf(error) !== "EEXIST" || n === MAX_TRIES) throw error
    }
  }
}

export function correctNote(dex: Dex, ref: Ref, note: NoteLine): void {
  appendFileSync(fileOf(dex, ref), noteLine(dex, note))
}

export function confirmNote(dex: Dex, ref: Ref): void {
  appendFileSync(fileOf(dex, ref), lineOf(dex, { type: "confirm" }))
}

/** The note's file. Throws if it is missing, as on another machine, where a restored history contains the note but not its file. */
function fileOf(dex: Dex, ref: Ref): string {
  const file = join(notesFolder(dex.home.dir), noteFileOf(ref.id))
  if (existsSync(file)) return file
  throw new DexError(
    "no_file",
    `The file of that note is gone (${file}), so it cannot be changed. Write it as a new note, and delete the old one: dex forget ${formatRef(ref)}`,
  )
}

function noteLine(dex: Dex, { text, agent, project, file, rejects }: NoteLine): string {
  return lineOf(dex, {
    type: "note",
    text: redactText(text),
    by: agent === undefined ? "person" : "agent",
    agent: agent === undefined ? undefined : redactText(agent),
    project,
    file: file === undefined ? undefined : redactText(file),
    rejects,
    dex_version: dex.version,
  })
}

function lineOf(dex: Dex, record: Record<string, unknown>): string {
  return `${JSON.stringify({ ...record, at: new Date(dex.now()).toISOString() })}\n`
}
