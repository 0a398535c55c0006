import type { Effect, Message, Part } from "../../core/conversation.ts"
import { defined } from "../../core/defined.ts"
import type { RawRecord } from "../../core/record.ts"
import { record, string, time } from "../../core/record.ts"
import { opencodeUsage, usageIn } from "./parts.ts"

/** A row, and the messages that it says. `parts` are the rows that belong to one of 1.x. */
export type RowMessages = { id: string; row: RawRecord; parts?: RawRecord[]; messages: Message[] }

/**
 * The messages of a session that both generations of OpenCode's tables have: the newer row where both have one. What only
 * the older tables have was written by an older program after the upgrade, or the upgrade does not take it along (subtasks);
 * anything else of before the upgrade has been taken back since, and is marked as abandoned. All in the order of their times.
 */
export function joinGenerations(
  older: RowMessages[],
  newer: RowMessages[],
  upgradedAt: number | undefined,
): RowMessages[] {
  if (newer.length === 0 || older.length === 0) return newer.length === 0 ? older : newer
  const before = new Map(older.map((one) => [one.id, one]))
  const known = new Map(newer.map((one) => [one.id, one]))
  const summaries = new Map(older.filter(({ row }) => isSummaryOf(row, known)).map((one) => [parentOf(one.row), one]))
  const only = older.filter((one) => !known.has(one.id) && !isSummaryOf(one.row, known))
  const rest = only.map((one) => (isTakenBack(one, before, upgradedAt) ? abandoned(one) : one))
  const joined: RowMessages[] = []
  let next = 0
  let latest = 0
  for (const one of newer) {
    latest = Math.max(latest, atOf(one))
    while (next < rest.length && atOf(rest[next]!) < latest) joined.push(rest[next++]!)
    joined.push(together(one, summaries.get(one.id) ?? before.get(one.id)))
  }
  return [...joined, ...rest.slice(next)]
}

function atOf({ row }: RowMessages): number {
  return time(row.time_created) ?? 0
}

/** The upgrade makes one row of the request to compact and of the summary that answers it. */
function isSummaryOf(row: RawRecord, known: Map<string, RowMessages>): boolean {
  return record(row.data)?.summary === true && known.get(parentOf(row))?.row.type === "compaction"
}

function parentOf({ data }: RawRecord): string {
  return string(record(data)?.parentID) ?? ""
}

function isTakenBack(one: RowMessages, before: Map<string, RowMessages>, upgradedAt: number | undefined): boolean {
  if (upgradedAt === undefined || atOf(one) > upgradedAt) return false
  const parent = before.get(parentOf(one.row))
  return ![one, parent].some((one) => one?.parts?.some(({ data }) => NOT_TAKEN_ALONG.has(record(data)?.type)))
}

const NOT_TAKEN_ALONG = new Set<unknown>(["subtask", "compaction"])

function abandoned(one: RowMessages): RowMessages {
  return { ...one, messages: one.messages.map((message) => ({ ...message, abandoned: true })) }
}

/** The newer row, and what the upgrade left out of it. */
function together(newer: RowMessages, older: RowMessages | undefined): RowMessages {
  if (!older) return newer
  const was = older.messages.find(({ key }) => key === older.id)
  const message = newer.messages.find(({ key }) => key === newer.id)
  if (!was || !message) return newer.messages.length > 0 ? newer : older
  if (newer.row.type === "compaction") return { ...newer, messages: older.messages }
  const effects = [...(message.effects ?? []), ...mentions(was, message)]
  const usage = stepsUsage(older, message)
  return {
    ...newer,
    messages: [
      {
        ...message,
        parts: message.parts.map((part) => clearedResult(part, was) ?? part),
        ...defined({ effects: effects.length > 0 ? effects : undefined, usage }),
      },
      ...(older.messages.length > 1 ? older.messages : newer.messages).slice(1),
    ],
  }
}

/** The newer row counts the last of an answer's steps. Where it says nothing else than the older one, its steps count. */
function stepsUsage({ row, parts = [] }: RowMessages, { usage }: Message): Message["usage"] {
  const own = record(row.data) ?? {}
  return JSON.stringify(usageIn([own])) === JSON.stringify(usage) ? opencodeUsage(own, parts) : usage
}

/** Files that only the older rows name: attached to the prompt, or changed by a step. */
function mentions(was: Message, now: Message): Effect[] {
  const named = new Set(now.effects?.map((effect) => effect.type === "file" && `${effect.action} ${effect.path}`))
  return (was.effects ?? []).filter(
    (effect) => effect.type === "file" && effect.call_id === undefined && !named.has(`${effect.action} ${effect.path}`),
  )
}

/** What 1.x no longer showed to the model the upgrade does not take along. */
function clearedResult(now: Part, was: Message): Part | undefined {
  if (now.type !== "tool_result" || now.text !== "[Old tool result content cleared]") return undefined
  return was.parts.find((part) => part.type === "tool_result" && part.call_id === now.call_id)
}
