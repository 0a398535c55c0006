import { resolve } from "node:path"
import { agents } from "../../agents/registry.ts"
import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { formatRef, type Ref } from "../../core/ref.ts"
import { createProjectFinder } from "../../git/project.ts"
import { currentNote, type FoundNote } from "../../learn/decisions/noted.ts"
import { pathBelow } from "../../learn/paths.ts"
import { redactText } from "../../redact/redact.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { listedRef } from "../listed.ts"
import { folderNamed, resolveRef } from "../resolve.ts"
import { confirmNote, correctNote, type NoteLine, saveNote } from "./keep.ts"
import type { NoteInput } from "./note.ts"

export async function run(dex: Dex, input: NoteInput) {
  const [first = "", second = "", ...more] = input.words
  const words = input.words.join(" ").trim()
  if (words === "") return listNotes(dex, input)
  if (first === "confirm" && more.length === 0 && /^(?:dex_note:\S+|\d{1,4})$/.test(second)) return confirm(dex, second)
  if (/^dex_note:\S+$/.test(first)) return correct(dex, input, first, words.slice(first.length).trim())
  return addNote(dex, input, words)
}

async function addNote(dex: Dex, input: NoteInput, text: string) {
  const rejects = input.rejects === undefined ? undefined : await decisionNamed(dex, input.rejects)
  const line = lineOf(dex, input, text, rejects?.project ?? projectOf(dex, input.project))
  const ref = saveNote(dex, { ...line, rejects: rejects?.ref })
  await readNotes(dex)
  return { done: "kept" as const, notes: [writtenNote(dex, ref, line, rejects?.ref)], total: 1 }
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
  return { done: "corrected" as const, notes: [writtenNote(dex, ref, line, note.rejects)], total: 1 }
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
  return { done: "confirmed" as const, notes: [listedNote(row, confirmedNote)], total: 1 }
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
    if (note) notes.push(listedNote(row, note))
  }
  return { done: "listed" as const, notes, total }
}

/** Reads new notes, but no other conversations. Does nothing for a caller over MCP, because a server reads new data before each call. */
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
  const ref = listedRef(dex, typed) ?? typed
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
  return createProjectFinder(dex.machine.platform)(folder)
}

function writtenNote(dex: Dex, ref: Ref, { text, agent, project, file }: NoteLine, rejects: string | undefined) {
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

function listedNote(
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
