import { isAbsolute } from "node:path"
import { crc32 } from "node:zlib"
import { createCounts } from "../../core/by-name.ts"
import { callerName } from "../../core/caller-name.ts"
import type { Message } from "../../core/conversation.ts"
import { type RawRecord, string, time } from "../../core/record.ts"
import type { Connector, Parsed, UnitName } from "../kit/connector.ts"
import { readLines, unitsBelow, withProblems } from "../kit/files.ts"
import { type ConversationFields, parsedFrom } from "../kit/messages.ts"
import { dexNoteRoots } from "../registry.ts"

/**
 * Reads notes. Each note is a file, with a line for each wording and each confirmation. The last wording counts; earlier ones,
 * with their confirmations, are abandoned. An agent's note begins with its author, so that nobody mistakes it for the person's.
 */
export const dexNoteConnector: Connector = {
  source: "dex_note",
  version: 2,
  roots: dexNoteRoots,
  discover: (root) =>
    withProblems(function* (report) {
      for (const unit of unitsBelow(root, /\.jsonl$/, 0, report))
        yield { ...unit, key: unit.key.slice(0, -EXTENSION.length) }
    }),
  read: readLines(),
  parse,
}

const CHECKSUM_LENGTH = 8
const EXTENSION = ".jsonl"

/**
 * Computes a note's id from its file's name, which is a time. The id begins with a checksum, because people type only the
 * beginning of an id, and all times in one month begin with the same characters.
 */
export function noteIdOf(name: string): string {
  return `${crc32(name).toString(16).padStart(CHECKSUM_LENGTH, "0")}-${name}`
}

export function noteFileOf(id: string): string {
  return `${id.slice(CHECKSUM_LENGTH + 1)}${EXTENSION}`
}

type Wording = {
  text: string
  /** The agent that wrote the note. Absent if the person did. */
  agent?: string
  file?: string
  rejects?: string
  at?: number
  confirmed_at?: number
}

function parse(raw: Iterable<RawRecord>, { key }: UnitName): Parsed {
  const unknown = createCounts()
  const wordings: Wording[] = []
  let project: string | undefined
  let version: string | undefined
  for (const line of raw) {
    const type = string(line.type) ?? "(no type)"
    if (type === "note") {
      const wording = wordingOf(line)
      if (wording) wordings.push(wording)
      project = string(line.project) ?? project
      version = string(line.dex_version) ?? version
    } else if (type === "confirm") {
      const lastWording = wordings.at(-1)
      if (lastWording) lastWording.confirmed_at = time(line.at) ?? lastWording.at ?? 0
    } else unknown.add(type)
  }
  const lastWording = wordings.at(-1)
  const fields: ConversationFields = {
    id: noteIdOf(key),
    kind: "note",
    title: lastWording && {
      text: `Note: ${labelledText(lastWording)}`.replaceAll(/\s+/g, " ").slice(0, 120),
      from: "first_prompt",
    },
    cwd: project,
    agent_version: version,
    messages: wordings.flatMap((wording, i) => messagesOf(wording, `${key}:${i + 1}`, wording !== lastWording)),
  }
  return parsedFrom(fields, unknown)
}

function wordingOf(line: RawRecord): Wording | undefined {
  const text = string(line.text)
  if (text === undefined || text.trim() === "") return undefined
  const at = time(line.at)
  const [file, rejects] = [string(line.file), string(line.rejects)]
  return {
    text,
    // Only `person` means that the person wrote the note.
    agent: line.by !== "person" ? callerName(line.agent) : undefined,
    file: file !== undefined && isAbsolute(file) ? file : undefined,
    rejects,
    at,
  }
}

function messagesOf(wording: Wording, key: string, isSuperseded: boolean): Message[] {
  const { agent, at, file, rejects, confirmed_at } = wording
  const origin = agent === undefined ? "person" : "agent"
  const note: Message = {
    key,
    role: agent === undefined ? "user" : "assistant",
    at,
    parts: [
      { type: "text", text: labelledText(wording), origin },
      ...(rejects === undefined
        ? []
        : [{ type: "text" as const, text: `${REJECTS_PREFIX}${rejects}`, origin } as const]),
    ],
    effects: file === undefined ? undefined : [{ type: "file", path: file, action: "mentioned" }],
    abandoned: isSuperseded ? true : undefined,
  }
  if (agent === undefined || confirmed_at === undefined) return [note]
  const confirmation: Message = {
    key: `${key}:confirm`,
    role: "user",
    at: confirmed_at,
    parts: [{ type: "text", text: "Confirmed.", origin: "person" }],
    abandoned: isSuperseded ? true : undefined,
  }
  return [note, confirmation]
}

/** The beginning of a note's second part, which names the decision that no longer applies. */
export const REJECTS_PREFIX = "Rejects the decision "

const AUTHOR_LABEL = /^\[written by ([\w .@/-]+), (?:not confirmed|confirmed by the person)\] /

/** Splits an agent's note into its author and its text. */
export function parseAgentNote(text: string): { agent: string; text: string } {
  const [label = "", agent = "an agent"] = AUTHOR_LABEL.exec(text) ?? []
  return { agent, text: text.slice(label.length) }
}

function labelledText({ text, agent, confirmed_at }: Wording): string {
  if (agent === undefined) return text
  return `[written by ${agent}, ${confirmed_at === undefined ? "not confirmed" : "confirmed by the person"}] ${text}`
}
