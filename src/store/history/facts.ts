import { messageText } from "../../core/format.ts"
import { estimateTokens } from "../../core/tokens.ts"
import { totalUsage } from "../../core/usage.ts"
import type { ConversationWrite, MessageWrite } from "./store.ts"
import type { RowIn } from "./tables.ts"

/** The columns of a conversation's row that are computed from what its units contain. */
export type Facts = Omit<
  RowIn<"conversation">,
  "id" | "source" | "native_id" | "copied_count" | "change_seq" | "held" | "sum"
>

/**
 * Computes the facts of a conversation. `counted` are the messages whose tokens count here: neither superseded nor copied from
 * another conversation.
 */
export function factsOf(
  conversation: ConversationWrite,
  counted: MessageWrite[],
  unitId: number,
  projectId: number | null,
  lastNumber: number,
  forkOf: string | undefined,
): Facts {
  const live = conversation.messages.filter((message) => !message.superseded)
  // If the source no longer has any of the messages, describe the stored ones.
  const described = live.length > 0 ? live : conversation.messages
  const times = described.flatMap((message) => (message.at === undefined ? [] : [message.at]))
  const models = [...new Set(described.flatMap((message) => (message.model === undefined ? [] : [message.model])))]
  return {
    unit_id: unitId,
    authority: conversation.authority,
    project_id: projectId,
    kind: conversation.kind,
    title: conversation.title?.text ?? null,
    title_from: conversation.title?.from ?? null,
    cwds: JSON.stringify(conversation.cwds),
    git_branch: conversation.git_branch ?? null,
    git_commit: conversation.git_commit ?? null,
    agent_version: conversation.agent_version ?? null,
    parent_id: conversation.parent?.id ?? null,
    parent_call_id: conversation.parent?.call_id ?? null,
    fork_of: conversation.fork_of ?? forkOf ?? null,
    resume_of: conversation.resume_of ?? null,
    started_at: conversation.started_at ?? minimum(times),
    ended_at: conversation.ended_at ?? maximum(times),
    models: JSON.stringify(models),
    usage: usageText(counted),
    message_count: live.length,
    last_number: lastNumber,
    estimated_tokens: described.reduce((sum, message) => sum + estimateTokens(messageText(message, "stripped")), 0),
    text_bytes: conversation.messages.reduce((sum, message) => sum + textBytes(message), 0),
  }
}

/** Facts that are always taken from a single unit, even if several units contain the conversation. */
export const SINGLE_UNIT_FACTS = [
  "unit_id",
  "authority",
  "project_id",
  "kind",
  "title",
  "title_from",
  "cwds",
  "git_branch",
  "git_commit",
  "agent_version",
  "parent_id",
  "parent_call_id",
  "fork_of",
  "resume_of",
] as const

/** The facts in `factsKey`: if one of them changes, the conversation has changed. */
const COMPARED_FACTS = [...SINGLE_UNIT_FACTS, "started_at", "ended_at", "models", "usage"] as const

export function factsKey(facts: Facts): string {
  return JSON.stringify(COMPARED_FACTS.map((name) => facts[name]))
}

export function usageText(messages: Iterable<Pick<MessageWrite, "usage">>): string | null {
  const total = totalUsage([...messages].map(({ usage }) => usage))
  return total ? JSON.stringify(total) : null
}

function textBytes(message: MessageWrite): number {
  return message.parts.reduce((sum, part) => sum + Buffer.byteLength(part.text), 0)
}

function minimum(values: number[]): number | null {
  return values.reduce<number | null>((least, value) => (least === null || value < least ? value : least), null)
}

function maximum(values: number[]): number | null {
  return values.reduce<number | null>((most, value) => (most === null || value > most ? value : most), null)
}
