import { appendFileSync, existsSync, mkdirSync, writeFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { noteFileOf, noteIdOf } from "../../agents/dex-note/connector.ts"
import { agents, notesFolder } from "../../agents/registry.ts"
import { STAR_TAG } from "../../core/conversation.ts"
import { isoDate } from "../../core/dates.ts"
import { codeOf, DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { currentNote, type FoundNote } from "../../learn/decisions/noted.ts"
import { pathBelow } from "../../learn/paths.ts"
import { redactText } from "../../redact/redact.ts"
import { plainLine } from "../../render/terminal.ts"
import { isTag } from "../../store/history/marks.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { refOfListedRow } from "../listed.ts"
import { folderNamed, resolveRef } from "../resolve.ts"
import type { NoteInput } from "./note.ts"

export async function run(dex: Dex, input: NoteInput) {
  const [first = "", second = "", ...more] = input.words
  const words = input.words.join(" ").trim()
  if ([input.star, input.no_star, input.tag, input.no_tag, input.title].some((mark) => mark !== undefined))
    return markConversation(dex, input, words)
  if (words === "") return listNotes(dex, input)
  if (first === "confirm" && more.length === 0 && /^(?:dex_note:\S+|\d{1,4})$/.test(second)) return confirm(dex, second)
  if (/^dex_note:\S+$/.test(first)) return correct(dex, input, first, words.slice(first.length).trim())
  return addNote(dex, input, words)
}

/** How long a person waits until a search finds a new title, in milliseconds. If the index is further behind, a sync goes on. */
const FOLLOW_MS = 500

/** Gives a conversation a star, tags or a title, or takes them away. */
async function markConversation(dex: Dex, input: NoteInput, typed: string) {
  if (!/^\S+$/.test(typed))
    throw new DexError("usage", "Which conversation? Give its row in the last list, or its ref: dex note 2 --star")
  const [addedTags, removedTags] = [input.tag, input.no_tag].map((tags = []) => tags.map(tagNamed))
  const { row } = await resolveRef(dex, typed)
  const store = await dex.storeToWrite()
  const { tags } = await store.mark(row.ref, {
    title: input.title === undefined ? undefined : plainLine(redactText(input.title)),
    addedTags: [...(input.star ? [STAR_TAG] : []), ...addedTags!],
    removedTags: [...(input.no_star ? [STAR_TAG] : []), ...removedTags!],
  })
  // So that a search finds the title at once.
  await (await dex.indexToWrite())?.follow(store, { deadline: Date.now() + FOLLOW_MS })
  const title = (await store.conversation(row.ref))?.title?.text ?? "(no title)"
  return { done: "marked" as const, notes: [], total: 0, conversation: { ref: formatRef(row.ref), title, tags } }
}

function tagNamed(typed: string): string {
  const tag = redactText(typed.trim().replace(/^#/, "").toLowerCase())
  if (isTag(tag)) return tag
  throw new DexError("usage", `A tag is one word of letters, digits, dots and dashes, such as auth, not "${tag}".`)
}

async function addNote(dex: Dex, input: NoteInput, text: string) {
  const rejects = input.rejects === undefined ? undefined : await decisionNamed(dex, input.rejects)
  const line = lineOf(dex, input, text, rejects?.project ?? projectOf(dex, input.project))
  const ref = saveNote(dex, { ...line, rejects: rejects?.ref })
  await readNotes(dex)
  return { done: "kept" as const, notes: [describeWrittenNote(dex, ref, line, rejects?.ref)], total: 1 }
}

async function correct(dex: Dex, input: NoteInput, typed: string, text: string) {
  const { ref, project, note } = await noteNamed(dex, typed)
  if (text === "") throw new DexError("usage", `What should the note say? dex note ${formatRef(ref)} "new words"`)
  const agent = writingAgent(dex)
  if (agent !== undefined && (note.agent !== agent || note.confirmed))
    throw new DexError(
      "not_yours",
      `${agent} cannot change that note, because a person or another agent wrote or confirmed it. Write a new note instead.`,
    )
  const wording = lineOf(dex, input, text, project ?? dex.project)
  const line = { ...wording, file: wording.file ?? note.files[0], rejects: note.rejects }
  correctNote(dex, ref, line)
  await readNotes(dex)
  return { done: "corrected" as const, notes: [describeWrittenNote(dex, ref, line, note.rejects)], total: 1 }
}

async function confirm(dex: Dex, typed: string) {
  const agent = writingAgent(dex)
  if (agent !== undefined)
    throw new DexError(
      "persons_word",
      `Only a person can confirm a note, and this shell was started by ${agent}. Use your own terminal.`,
    )
  const { ref, note } = await noteNamed(dex, typed)
  if (!note.confirmed) confirmNote(dex, ref)
  await readNotes(dex)
  const { row, note: confirmedNote } = await noteNamed(dex, formatRef(ref))
  return { done: "confirmed" as const, notes: [describeNote(row, confirmedNote)], total: 1 }
}

async function listNotes(dex: Dex, input: NoteInput) {
  await readNotes(dex)
  const store = await dex.store()
  const file = input.file === undefined ? undefined : resolve(dex.cwd, input.file)
  const { rows, total } = await store.list({
    source: "dex_note",
    inside: dex.project,
    in_project: input.all ? undefined : projectOf(dex, input.project),
    among: file === undefined ? undefined : await store.touching(file),
    limit: input.limit,
    offset: 0,
  })
  const notes = []
  for (const row of rows) {
    const note = currentNote(await store.messages(row.ref))
    if (note) notes.push(describeNote(row, note))
  }
  return { done: "listed" as const, notes, total }
}

/**
 * Reads new notes, but no other conversations. Does nothing for a caller over MCP, because a server reads new data before each
 * call.
 */
async function readNotes(dex: Dex): Promise<void> {
  if (dex.caller !== undefined) return
  const { syncWithThreads } = await import("../../ingest/sync-thread.ts")
  const deps = await dex.syncDeps()
  const connectors = deps.connectors.filter(({ source }) => source === "dex_note")
  await syncWithThreads({ ...deps, connectors }, dex.home.index, {
    wait: true,
    signal: dex.signal,
  })
}

async function noteNamed(dex: Dex, typed: string) {
  const { row } = await resolveRef(dex, typed)
  const note = row.ref.source === "dex_note" ? currentNote(await (await dex.store()).messages(row.ref)) : undefined
  if (!note) throw new DexError("no_note", `${formatRef(row.ref)} is not a note. \`dex note\` lists the notes.`)
  return { row, ref: row.ref, project: row.project, note }
}

/** The message that states the decision, and its project. */
async function decisionNamed(dex: Dex, typed: string): Promise<{ ref: string; project: string }> {
  const ref = refOfListedRow(dex, typed) ?? typed
  if (/^git:[0-9a-f]{4,64}$/.test(ref)) return { ref, project: dex.project }
  const { row, number } = await resolveRef(dex, ref)
  if (number === undefined)
    throw new DexError(
      "no_decision",
      `Which message of ${formatRef(row.ref)}? Give the decision's complete ref, as \`dex decisions\` prints it.`,
    )
  return { ref: formatRef({ ...row.ref, number }), project: row.project ?? dex.project }
}

/** The agent that writes the note: the MCP caller, or the agent that started this shell. Undefined if a person writes it. */
function writingAgent(dex: Dex): string | undefined {
  return dex.caller ?? agents.find(({ session }) => session && dex.machine.env[session.variable])?.name
}

function lineOf(dex: Dex, { file }: NoteInput, text: string, project: string): NoteLine {
  const agent = writingAgent(dex)
  return {
    text,
    project,
    agent,
    file: file === undefined ? undefined : resolve(dex.cwd, file),
  }
}

function projectOf(dex: Dex, named: string | undefined): string {
  if (named === undefined) return dex.project
  const folder = folderNamed(dex, named)
  if (!isFolder(folder))
    throw new DexError("no_project", `There is no folder ${folder}. --project takes a project's folder.`)
  return dex.projectOf(folder)
}

function describeWrittenNote(
  dex: Dex,
  ref: Ref,
  { text, agent, project, file }: NoteLine,
  rejects: string | undefined,
) {
  return {
    ref: formatRef(ref),
    text: redactText(text),
    by: agent ?? "person",
    confirmed: agent === undefined,
    date: isoDate(dex.now()),
    project,
    files: file === undefined ? [] : [pathBelow(project, file) ?? file],
    rejects,
  }
}

function describeNote(
  { ref, project = "" }: ConversationRow,
  { message, text, agent, confirmed, files, rejects }: FoundNote,
) {
  return {
    ref: formatRef(ref),
    text,
    by: agent ?? "person",
    confirmed,
    date: message.at === undefined ? "" : isoDate(message.at),
    project,
    files: files.map((file) => pathBelow(project, file) ?? file),
    rejects,
  }
}

// The files of notes. A file has one line for each wording of the note and for each confirmation.

type NoteLine = {
  text: string
  /** Absent if a person wrote the note. */
  agent?: string
  project: string
  file?: string
  rejects?: string
}

const MAX_TRIES = 100

/** Saves a note in a new file, named after the current time. A second note in the same millisecond gets a number. */
function saveNote(dex: Dex, note: NoteLine): Ref {
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

function correctNote(dex: Dex, ref: Ref, note: NoteLine): void {
  appendFileSync(fileOf(dex, ref), noteLine(dex, note))
}

function confirmNote(dex: Dex, ref: Ref): void {
  appendFileSync(fileOf(dex, ref), recordLine(dex, { type: "confirm" }))
}

/**
 * The note's file. Throws if it is missing, as on another machine, where a restored history contains the note but not its file.
 */
function fileOf(dex: Dex, ref: Ref): string {
  const file = join(notesFolder(dex.home.dir), noteFileOf(ref.id))
  if (existsSync(file)) return file
  throw new DexError(
    "no_file",
    `The file of that note is gone (${file}), so it cannot be changed. Write it as a new note, and delete the old one: dex forget ${formatRef(ref)}`,
  )
}

function noteLine(dex: Dex, { text, agent, project, file, rejects }: NoteLine): string {
  return recordLine(dex, {
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

function recordLine(dex: Dex, record: Record<string, unknown>): string {
  return `${JSON.stringify({ ...record, at: new Date(dex.now()).toISOString() })}\n`
}
