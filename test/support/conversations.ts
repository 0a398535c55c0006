import type { Message, SourceId } from "../../src/core/conversation.ts"
import { packLines } from "../../src/store/history/codec.ts"
import type { ConversationWrite, MessageWrite, UnitWrite } from "../../src/store/history/store.ts"

/** A short message. Odd keys belong to a person, the others to the agent, unless `more` says otherwise. */
export function textMessage(key: string, text: string, more: Partial<MessageWrite> = {}): MessageWrite {
  const role = more.role ?? "user"
  return {
    key,
    role,
    at: 1_760_000_000_000,
    parts: [{ type: "text", text, origin: role === "user" ? "person" : "agent" }],
    ...more,
  }
}

export function conversation(
  id: string,
  messages: Message[],
  more: Partial<ConversationWrite> = {},
): ConversationWrite {
  return { id, kind: "person", cwds: ["/code/api"], project: "/code/api", authority: 10, messages, ...more }
}

export function unit(
  key: string,
  conversations: ConversationWrite[],
  more: {
    source?: SourceId
    bornAt?: number
    modifiedAt?: number
    tellsAll?: boolean
    dropsUntold?: boolean
    raw?: string[]
    mode?: "append" | "replace"
    left?: string[]
  } = {},
): UnitWrite {
  return {
    source: more.source ?? "claude_code",
    unit: {
      key,
      path: `/home/dev/.claude/projects/${key}`,
      stamp: "1:1",
      bornAt: more.bornAt ?? 1_760_000_000_000,
      modifiedAt: more.modifiedAt ?? 1_760_000_000_000,
    },
    sourceExists: true,
    cursor: "{}",
    connector_version: 1,
    redaction_version: 1,
    raw: { mode: more.mode ?? "append", live: packLines(more.raw ?? []), left: packLines(more.left ?? []) },
    conversations,
    isComplete: more.tellsAll ?? true,
    dropsMissing: more.dropsUntold ?? false,
    skipped: [],
    unknown: {},
    redactions: {},
  }
}
