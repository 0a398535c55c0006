import { createCounts } from "../../core/by-name.ts"
import type { Conversation, Message } from "../../core/conversation.ts"
import { type RawRecord, record, string, time } from "../../core/record.ts"
import type { Parsed, UnitName } from "../kit/connector.ts"
import { uniqueKeys } from "../kit/message-keys.ts"
import { spanOf } from "../kit/times.ts"
import { editorMessages } from "./editor-messages.ts"
import { lineMessages } from "./line-messages.ts"
import { turnMessages } from "./turn-messages.ts"

/** What a kind of file says: its messages, and types in it that dex does not know. */
export type KiroReader = (records: RawRecord[], unknown: (type: string) => void, id: string) => Message[]

/** The newest store of a conversation holds. */
const STORES: Record<string, { read: KiroReader; authority: number }> = {
  v1: { read: turnMessages, authority: 1 },
  v2: { read: turnMessages, authority: 2 },
  file: { read: lineMessages, authority: 3 },
  ide: { read: editorMessages, authority: 1 },
}
const ABOUT = ["dex-session", "dex-conversation", "dex-editor"]

export function parseKiro(raw: Iterable<RawRecord>, unit: UnitName): Parsed {
  const entries: RawRecord[] = []
  let about: RawRecord = {}
  for (const entry of raw) {
    if (ABOUT.includes(String(entry.type))) about = entry
    else entries.push(entry)
  }
  const store = STORES[unit.key.slice(0, unit.key.indexOf(":"))] ?? STORES.file!
  const id =
    string(about.conversation_id) ??
    string(about.session_id) ??
    string(about.sessionId) ??
    unit.key.split(/[:/]/).at(-1)!
  const unknown = createCounts()
  const keyOf = uniqueKeys()
  const messages = store
    .read(entries, (type) => unknown.add(type), id)
    .map((message) => ({ ...message, key: keyOf(message.key || `${id}:result`) }))
  const summary = summaryOf(about.latest_summary, id)
  return {
    conversations:
      messages.length === 0 ? [] : [conversationOf(id, about, [...summary, ...messages], entries, store.authority)],
    unknown: unknown.all(),
  }
}

/** What a compaction left of the turns that are no longer in the history. */
function summaryOf(summary: unknown, id: string): Message[] {
  const text = string(Array.isArray(summary) ? summary[0] : summary)
  if (text === undefined) return []
  return [{ key: `${id}:summary`, role: "system", parts: [{ type: "summary", text, origin: "agent" }] }]
}

function conversationOf(
  id: string,
  about: RawRecord,
  messages: Message[],
  entries: RawRecord[],
  authority: number,
): Conversation {
  const title = string(about.title)
  const prompt = messages.find(({ role }) => role === "user")?.parts[0]?.text ?? ""
  const named = title !== undefined && !prompt.startsWith(title) ? title : undefined
  const told = [about.key, about.cwd, about.workspaceDirectory, ...entries.map(folderOf)].flatMap(
    (cwd) => string(cwd) ?? [],
  )
  const times = [about.created_at, about.updated_at, about.created].map(dateOf)
  return {
    id,
    kind: "person",
    title: named === undefined ? undefined : { text: named, from: "agent" },
    cwds: [...new Set(told)],
    ...spanOf([...times, ...messages.map(({ at }) => at)]),
    messages,
    authority,
  }
}

function folderOf({ user }: RawRecord): unknown {
  return record(record(record(user)?.env_context)?.env_state)?.current_working_directory
}

/** The editor writes milliseconds as text. */
function dateOf(value: unknown): number | undefined {
  return time(typeof value === "string" && /^\d{9,16}$/.test(value) ? Number(value) : value)
}
