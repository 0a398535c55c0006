import { join } from "node:path"
import type { Connector, Unit, Unreadable } from "../../../src/agents/kit/connector.ts"
import { entriesOf, unitAt } from "../../../src/agents/kit/files.ts"
import { type RawRecord, record, string } from "../../../src/core/record.ts"

/**
 * Adapts Claude Code's connector to iFlow. A record names its parent as in Claude Code's files, but records with the same parent
 * are successive states of one answer, never branches.
 */
export function iflowDifferences(parent: Connector): Partial<Connector> {
  return {
    parse: (raw, unit) => {
      const { conversations, unknown } = parent.parse(chainRecords(raw), unit)
      // Every file is named session-<id>. The prefix is removed, so that an id can be abbreviated to its first characters.
      return {
        conversations: conversations.map((one) => ({ ...one, id: one.id.replace(/^session-(?=.)/, "") })),
        unknown,
      }
    },
  }
}

/**
 * Makes each record follow the previous one. Each state of an answer repeats the calls of the earlier states, so repeated calls
 * are removed. Only the last state keeps the usage.
 */
function* chainRecords(raw: Iterable<RawRecord>): Generator<RawRecord> {
  const entries = [...raw]
  const lastStates = new Map(entries.flatMap((one) => (one.type === "assistant" ? [[one.parentUuid, one]] : [])))
  const seenCalls = new Set<string>()
  let previousUuid: string | null = null
  for (const entry of entries) {
    const uuid = string(entry.uuid)
    if (uuid === undefined || (entry.type !== "user" && entry.type !== "assistant")) yield entry
    else {
      const isLast = entry.type !== "assistant" || lastStates.get(entry.parentUuid) === entry
      yield { ...withNewCalls(isLast ? entry : withoutUsage(entry), seenCalls), parentUuid: previousUuid }
      previousUuid = uuid
    }
  }
}

function withoutUsage(entry: RawRecord): RawRecord {
  const message = record(entry.message)
  if (!message) return entry
  const { usage: _, ...rest } = message
  return { ...entry, message: rest }
}

function withNewCalls(entry: RawRecord, seenCalls: Set<string>): RawRecord {
  const message = record(entry.message)
  if (entry.type !== "assistant" || !Array.isArray(message?.content)) return entry
  const content = message.content.filter((block: unknown) => {
    const { type, id } = record(block) ?? {}
    if (type !== "tool_use" || !string(id)) return true
    const isNew = !seenCalls.has(string(id)!)
    seenCalls.add(string(id)!)
    return isNew
  })
  return { ...entry, message: { ...message, content } }
}

/** The type of the first record of a Qoder session, which contains its folder. */
const SESSION_META = "session_meta"

/**
 * Adapts Claude Code's connector to Qoder. Qoder's editor stores sessions outside project folders, and the first record of such a
 * session names its folder.
 */
export function qoderDifferences(parent: Connector): Partial<Connector> {
  return {
    *discover(root, isUnchanged, scratch) {
      yield* parent.discover(root, isUnchanged, scratch)
      yield* unitsWithoutProject(join(root, "projects"))
    },
    parse: (raw, unit) => {
      const records = [...raw]
      const { conversations, unknown } = parent.parse(records, unit)
      const cwd = string(records.find(({ type }: RawRecord) => type === SESSION_META)?.cwd)
      const { [SESSION_META]: _, ...rest } = unknown
      return {
        conversations: conversations.map((one) => (one.cwds.length === 0 && cwd ? { ...one, cwds: [cwd] } : one)),
        unknown: rest,
      }
    },
  }
}

function* unitsWithoutProject(folder: string): Generator<Unit | Unreadable> {
  const problems: Unreadable[] = []
  const report = (problem: Unreadable) => void problems.push(problem)
  for (const entry of entriesOf(folder, report)) {
    if (entry.isDirectory() || !entry.name.endsWith(".jsonl")) continue
    const unit = unitAt(join(folder, entry.name), `cli/${entry.name}`, report)
    if (unit) yield unit
  }
  // The problems are not yielded, because the search for projects in this folder has already reported them.
}
