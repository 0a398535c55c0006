import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { isUnreadable, type Parsed, type Unit } from "../../src/agents/kit/connector.ts"
import type { Conversation, Message } from "../../src/core/conversation.ts"
import type { RawRecord } from "../../src/core/record.ts"

// Records as Claude Code writes them, for cases that no recorded session shows.

export const SESSION = "11111111-2222-4333-8444-555555555555"
export const PROJECT = "-home-dev-proj"

/** Writes records that refer to one another, each a second after the previous one. */
export type Writer = ReturnType<typeof writer>

export function writer(envelope: RawRecord = {}, prefix = "u") {
  const written: RawRecord[] = []
  let last: string | null = null
  let count = 0
  const base = {
    isSidechain: false,
    userType: "external",
    cwd: "/home/dev/proj",
    sessionId: SESSION,
    version: "2.1.42",
  }
  const plain = (record: RawRecord): RawRecord => {
    written.push(record)
    return record
  }
  const add = (record: RawRecord): RawRecord => {
    count++
    const at = new Date(Date.UTC(2026, 0, 2, 10, 0, count)).toISOString()
    const uuid = `${prefix}${count}`
    const made = { parentUuid: last, ...base, gitBranch: "main", ...envelope, uuid, timestamp: at, ...record }
    last = String(made.uuid)
    return plain(made)
  }
  return {
    records: written,
    /** Writes a record as it is, without an envelope. */
    plain,
    add,
    last: () => last,
    /** Makes the next record follow this one. */
    goTo: (uuid: string | null) => {
      last = uuid
    },
    prompt: (content: unknown, more: RawRecord = {}) =>
      add({ type: "user", message: { role: "user", content }, ...more }),
    /** Writes one record for each block, as Claude Code does. */
    answer: (id: string, blocks: unknown[], more: RawRecord = {}) =>
      blocks.map((block, index) =>
        add({
          type: "assistant",
          message: {
            id,
            type: "message",
            role: "assistant",
            model: "claude-opus-4-5",
            content: [block],
            stop_reason: null,
            usage: {
              input_tokens: 3,
              cache_creation_input_tokens: 40,
              cache_read_input_tokens: 500,
              output_tokens: 7 * (index + 1),
            },
          },
          requestId: `req_${id}`,
          ...more,
        }),
      ),
    result: (callId: string, content: unknown, more: RawRecord = {}, block: RawRecord = {}) =>
      add({
        type: "user",
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: callId, content, ...block }] },
        ...more,
      }),
  }
}

export function text(value: string) {
  return { type: "text", text: value }
}

export function call(id: string, name: string, input: RawRecord) {
  return { type: "tool_use", id, name, input }
}

export function jsonl(records: readonly unknown[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("")
}

export function put(home: string, path: string, content: string | readonly unknown[]): string {
  const file = join(home, path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, typeof content === "string" ? content : jsonl(content))
  return file
}

export function putSession(home: string, records: readonly unknown[], session = SESSION): string {
  return put(home, `.claude/projects/${PROJECT}/${session}.jsonl`, records)
}

export type ReadUnit = Parsed & { unit: Unit; records: RawRecord[]; skipped: number }

/** The connector's output for a home, unit by unit. */
export function readHome(home: string): ReadUnit[] {
  const roots = claudeCodeConnector.roots({ home, env: {}, platform: "linux" })
  const found = roots.flatMap((root) => [...claudeCodeConnector.discover(root, () => false)])
  return found.flatMap((unit) => (isUnreadable(unit) ? [] : [readUnit(unit)]))
}

export function readUnit(unit: Unit): ReadUnit {
  const reading = claudeCodeConnector.read(unit)
  if (reading instanceof Promise) throw new Error("claude_code reads at once")
  const records = [...reading.records]
  const kept = JSON.parse(JSON.stringify(records)) as RawRecord[]
  return { unit, records: kept, skipped: reading.end().skipped.length, ...claudeCodeConnector.parse(kept, unit) }
}

export function conversations(home: string): Conversation[] {
  return readHome(home).flatMap((told) => told.conversations)
}

/** A message on one line: the role, then the parts as origin:text. */
export function lineOf(message: Message): string {
  const parts = message.parts.map((part) => `${part.type === "text" ? "" : `${part.type} `}${part.origin}:${part.text}`)
  return `${message.role} ${parts.join(" | ")}`
}
