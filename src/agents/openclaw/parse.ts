import type { Conversation, Kind, Part } from "../../core/conversation.ts"
import { defined } from "../../core/defined.ts"
import { type RawRecord, string } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { type PiDialect, parsePi } from "../pi/parse.ts"

/** What OpenClaw's index says of a session. Kept as the record that the unit begins with. */
export type OpenclawFacts = { type: "dex-session"; key: string; label?: string; parent?: string }

const OPENCLAW: PiDialect = {
  tools: {
    command: ["exec", "bash", "shell_exec", "run_terminal"],
    read: ["read"],
    write: ["write"],
    edit: ["edit", "edit_file"],
  },
  promptParts,
}

export function parseOpenclaw(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
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
    ...defined(conversation),
    kind,
    title: text === undefined ? conversation.title : { text, from: kind === "person" ? "person" : "agent" },
    parent: kind === "subagent" && parentId !== undefined ? { id: parentId } : conversation.parent,
  }
}

/** A session's key says who asked: `agent:main:main`, `agent:main:subagent:<id>`, `cron:<job>`, `hook:<id>`. */
function kindOf(key: string): Kind {
  if (key.includes(":subagent:")) return "subagent"
  return /(?:^|:)(?:cron|hook):/.test(key) ? "automation" : "person"
}

const CLOSING = "\n```"
/** The moment, before what came over a channel. */
const MOMENT = /^\[(?:[A-Z][a-z]{2} )?\d{4}-\d{2}-\d{2}[ T]\d{2}:\d{2}[^\]\n]{0,24}\]\s+/

/** What the gateway puts before a person's words: blocks about who wrote and where, and the moment. */
function promptParts(text: string): Part[] {
  const at = bodyFrom(text)
  const injected: Part[] = at === 0 ? [] : [{ type: "text", text: text.slice(0, at).trim(), origin: "injected" }]
  const said = text.slice(at).trim()
  return said === "" ? injected : [...injected, { type: "text", text: said, origin: "person" }]
}

function bodyFrom(text: string): number {
  let at = 0
  for (;;) {
    const opened = /^[A-Z][^\n(]{0,60}\(untrusted[^)\n]{0,40}\):\n```json\n/.exec(text.slice(at, at + 200))
    const close = opened ? text.indexOf(CLOSING, at + opened[0].length - 1) : -1
    if (close === -1) break
    at = close + CLOSING.length
    while (text[at] === "\n") at++
  }
  return at + (MOMENT.exec(text.slice(at, at + 80))?.[0].length ?? 0)
}
