import { join } from "node:path"
import type { Connector, Parsed, Unit, UnitName, Unreadable } from "../../../src/agents/kit/connector.ts"
import {
  entriesOf,
  type Report,
  readLines,
  textAt,
  unitAt,
  unitWithFacts,
  withProblems,
} from "../../../src/agents/kit/files.ts"
import type { Conversation, Kind, Part } from "../../../src/core/conversation.ts"
import { withoutUndefined } from "../../../src/core/defined.ts"
import { parseObject, type RawRecord, record, string } from "../../../src/core/record.ts"
import { type PiDialect, parsePi, piConnector, stripPiEntry } from "./pi.ts"
import { openclawRoots } from "./records.ts"

/** Reads OpenClaw: files in Pi's format, in one folder per agent, with an index. */
export const openclawConnector: Connector = {
  source: "openclaw",
  version: 1,
  roots: openclawRoots,
  discover: (root) => withProblems((report) => discover(root, report)),
  watched: (root) => [{ folder: root, depth: 2, files: /^[^/]+\/sessions\/(.*\.jsonl.*|sessions\.json)$/ }],
  read: readLines(stripPiEntry),
  parse: parseOpenclaw,
  identify: (entry) => (entry.type === "dex-session" ? "dex-session" : piConnector.identify?.(entry)),
}

/**
 * Matches the files of sessions. OpenClaw renames a file when its session is reset or deleted. `.full.bak` is the file before
 * it was shortened.
 */
const TRANSCRIPT = /^(.+?)\.jsonl(?:\.(?:reset|deleted)\..+|\.full\.bak)?$/
/** Matches the ids of files that only look like transcripts: copies of one, and logs of the requests to the model. */
const NOT_TRANSCRIPT = /\.(?:checkpoint\.[^/]*|trajectory)$/
const MAX_INDEX_BYTES = 64 << 20

function* discover(root: string, report: Report): Generator<Unit | Unreadable> {
  for (const agent of entriesOf(root, report)) {
    if (!agent.isDirectory()) continue
    const folder = join(root, agent.name, "sessions")
    const facts = factsIn(join(folder, "sessions.json"), report)
    for (const [id, unit] of transcriptsIn(folder, agent.name, report)) yield unitWithFacts(unit, facts.get(id))
  }
}

/** Finds one unit per session. If it has several files, the one that OpenClaw still writes is used, otherwise the latest. */
function transcriptsIn(folder: string, agent: string, report: Report): Map<string, Unit> {
  const units = new Map<string, Unit>()
  for (const { name } of entriesOf(folder, report)) {
    const id = TRANSCRIPT.exec(name)?.[1]
    if (id === undefined || NOT_TRANSCRIPT.test(id)) continue
    const path = join(folder, name)
    const unit = unitAt(path, `${agent}/${id}`, report)
    if (!unit) continue
    const earlier = units.get(id)
    if (!earlier || rank(unit) > rank(earlier)) units.set(id, unit)
  }
  return units
}

function rank({ path, modifiedAt }: Unit): number {
  return path.endsWith(".jsonl") ? Number.POSITIVE_INFINITY : modifiedAt
}

/** Maps each session id to its facts in the index. */
function factsIn(path: string, report: Report): Map<string, OpenclawFacts> {
  const index = parseObject(textAt(path, MAX_INDEX_BYTES, report) ?? "{}") ?? {}
  const idOf = (key: unknown) => string(record(index[String(key)])?.sessionId)
  return new Map(
    Object.entries(index).flatMap(([key, value]) => {
      const entry: RawRecord = record(value) ?? {}
      const [id, label, parent] = [string(entry.sessionId), string(entry.label), idOf(entry.spawnedBy)]
      if (id === undefined) return []
      return [[id, { type: "dex-session", key, label: label || undefined, parent: parent || undefined }] as const]
    }),
  )
}

/** The facts about a session in OpenClaw's index. They are stored as the first record of the unit. */
type OpenclawFacts = { type: "dex-session"; key: string; label?: string; parent?: string }

const OPENCLAW: PiDialect = {
  tools: {
    command: ["exec", "bash", "shell_exec", "run_terminal"],
    read: ["read"],
    write: ["write"],
    edit: ["edit", "edit_file"],
  },
  promptParts,
}

function parseOpenclaw(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries: RawRecord[] = []
  let facts: RawRecord = {}
  for (const entry of raw) {
    if (entry.type === "dex-session") facts = entry
    else entries.push(entry)
  }
  const parsed = parsePi(entries, unit, OPENCLAW)
  return { ...parsed, conversations: parsed.conversations.map((conversation) => withFacts(conversation, facts)) }
}

function withFacts(conversation: Conversation, { key, label, parent }: RawRecord): Conversation {
  const kind = kindOf(string(key) ?? "")
  const text = string(label)
  const parentId = string(parent)
  return {
    ...withoutUndefined(conversation),
    kind,
    title: text === undefined ? conversation.title : { text, from: kind === "person" ? "person" : "agent" },
    parent: kind === "subagent" && parentId !== undefined ? { id: parentId } : conversation.parent,
  }
}

/**
 * Returns the kind of a session. Its key shows who started it: `agent:main:main`, `agent:main:subagent:<id>`, `cron:<job>`,
 * `hook:<id>`.
 */
function kindOf(key: string): Kind {
  if (key.includes(":subagent:")) return "subagent"
  return /(?:^|:)(?:cron|hook):/.test(key) ? "automation" : "person"
}

const CLOSING_FENCE = "\n```"
/** Matches the time stamp at the beginning of a message that came over a channel. */
const TIME_STAMP = /^\[(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}[^\]\n]{0,24}\]\s+/

/**
 * Splits a prompt into the person's text and what the gateway inserts before it: blocks about the author and the channel, and
 * the time.
 */
function promptParts(text: string): Part[] {
  const start = bodyStart(text)
  const injectedParts: Part[] =
    start === 0 ? [] : [{ type: "text", text: text.slice(0, start).trim(), origin: "injected" }]
  const typedText = text.slice(start).trim()
  return typedText === "" ? injectedParts : [...injectedParts, { type: "text", text: typedText, origin: "person" }]
}

function bodyStart(text: string): number {
  let start = 0
  for (;;) {
    const opening = /^[A-Z][^\n(]{0,60}\(untrusted[^)\n]{0,40}\):\n```json\n/.exec(text.slice(start, start + 200))
    const close = opening ? text.indexOf(CLOSING_FENCE, start + opening[0].length - 1) : -1
    if (close === -1) break
    start = close + CLOSING_FENCE.length
    while (text[start] === "\n") start++
  }
  return start + (TIME_STAMP.exec(text.slice(start, start + 80))?.[0].length ?? 0)
}
