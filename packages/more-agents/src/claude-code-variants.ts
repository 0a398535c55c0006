import { join } from "node:path"
import type { Connector, Unit, Unreadable } from "../../../src/agents/kit/connector.ts"
import { entriesOf, unitAt } from "../../../src/agents/kit/files.ts"
import { type RawRecord, record, string } from "../../../src/core/record.ts"

/** iFlow's records name a parent as Claude Code's do, but siblings are states of one answer, never branches. */
export function iflowDifferences(parent: Connector): Partial<Connector> {
  return {
    parse: (raw, unit) => {
      const { conversations, unknown } = parent.parse(inOneLine(raw), unit)
      // Every file is named session-<id>. Without that prefix, the beginning of an id distinguishes sessions.
      return {
        conversations: conversations.map((one) => ({ ...one, id: one.id.replace(/^session-(?=.)/, "") })),
        unknown,
      }
    },
  }
}

/**
 * Chains each record to the previous one. Calls from an earlier state of the answer are not repeated, and only the last
 * state has the usage.
 */
function* inOneLine(raw: Iterable<RawRecord>): Generator<RawRecord> {
  const all = [...raw]
  const last = new Map(all.flatMap((one) => (one.type === "assistant" ? [[one.parentUuid, one]] : [])))
  const called = new Set<string>()
  let before: string | null = null
  for (const one of all) {
    const uuid = string(one.uuid)
    if (uuid === undefined || (one.type !== "user" && one.type !== "assistant")) yield one
    else {
      const isLast = one.type !== "assistant" || last.get(one.parentUuid) === one
      yield { ...withNewCalls(isLast ? one : withoutUsage(one), called), parentUuid: before }
      before = uuid
    }
  }
}

function withoutUsage(one: RawRecord): RawRecord {
  const message = record(one.message)
  if (!message) return one
  const { usage: _, ...rest } = message
  return { ...one, message: rest }
}

function withNewCalls(one: RawRecord, called: Set<string>): RawRecord {
  const message = record(one.message)
  if (one.type !== "assistant" || !Array.isArray(message?.content)) return one
  const content = message.content.filter((block: unknown) => {
    const { type, id } = record(block) ?? {}
    if (type !== "tool_use" || !string(id)) return true
    const isNew = !called.has(string(id)!)
    called.add(string(id)!)
    return isNew
  })
  return { ...one, message: { ...message, content } }
}

/** The type of the first record of a Qoder session, which contains its folder. */
const META = "session_meta"

/** Qoder's editor stores sessions without a project folder, and a session's first record names its folder. */
export function qoderDifferences(parent: Connector): Partial<Connector> {
  return {
    *discover(root, seen, scratch) {
      yield* parent.discover(root, seen, scratch)
      yield* withoutProject(join(root, "projects"))
    },
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const cwd = string(records.find(({ type }: RawRecord) => type === META)?.cwd)
      const { [META]: _, ...rest } = unknown
      return {
        conversations: conversations.map((one) => (one.cwds.length === 0 && cwd ? { ...one, cwds: [cwd] } : one)),
        unknown: rest,
      }
    },
  }
}

function* withoutProject(folder: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const entry of entriesOf(folder, report)) {
    if (entry.isDirectory() || !entry.name.endsWith(".jsonl")) continue
    const unit = unitAt(join(folder, entry.name), `cli/${entry.name}`, report)
    if (unit) yield unit
  }
  // The search for projects in this folder already reports read errors.
}
