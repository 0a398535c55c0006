import type { Part } from "../../core/conversation.ts"
import { array, number, type RawRecord, record, records, string } from "../../core/record.ts"
import { addRequest } from "../../core/usage.ts"
import { codexUsage, contentParts, splitPrompt, textPart, thinkingParts, usageSince } from "./items.ts"
import {
  addMessage,
  callWithId,
  commandText,
  containsText,
  countUnknown,
  filesRead,
  type Rollout,
  speakerOf,
} from "./rollout.ts"

/** Types of events that response items repeat, or that are about Codex itself and not the conversation. */
const IGNORED_EVENTS = new Set([
  "collab_agent_interaction_end",
  "collab_agent_spawn_end",
  "collab_close_end",
  "collab_resume_end",
  "collab_waiting_end",
  "context_compacted",
  "dynamic_tool_call_request",
  "entered_review_mode",
  "exited_review_mode",
  "guardian_assessment",
  "image_generation_end",
  "sub_agent_activity",
  "task_complete",
  "thread_goal_updated",
  "thread_settings_applied",
  "turn_aborted",
  "turn_complete",
  "undo_completed",
  "view_image_tool_call",
  "warning",
])

const IGNORED_ITEMS = new Set([
  "CollabAgentToolCall",
  "ContextCompaction",
  "DynamicToolCall",
  "EnteredReviewMode",
  "ExitedReviewMode",
  "HookPrompt",
  "ImageGeneration",
  "ImageView",
  "Sleep",
  "SubAgentActivity",
])

/** Handles an `event_msg`, which records something that Codex showed on the screen. */
export function handleEvent(rollout: Rollout, payload: RawRecord, at?: number): void {
  const id = string(payload.call_id)
  switch (payload.type) {
    case "task_started":
    case "turn_started":
      rollout.turn = string(payload.turn_id) ?? rollout.turn
      break
    case "token_count":
      addTokens(rollout, payload)
      break
    case "thread_rolled_back":
      rollout.entries.push({ turnCount: number(payload.num_turns) ?? 0 })
      break
    case "thread_name_updated":
      // a fork also contains its parent's renamings
      if ((payload.thread_id ?? rollout.meta?.id) === rollout.meta?.id) rollout.name = string(payload.thread_name)
      break
    case "user_message":
      addPrompt(rollout, [{ text: payload.message }], payload, at)
      break
    case "agent_message":
      addMessage(rollout, "assistant", textPart(payload.message, "agent"), {
        payload,
        at,
        kind: "reply",
        isStandIn: true,
      })
      break
    case "agent_reasoning":
    case "agent_reasoning_raw_content":
      addMessage(rollout, "assistant", thinkingParts(string(payload.text)), {
        payload,
        at,
        kind: "thinking",
        isStandIn: true,
      })
      break
    case "error":
    case "stream_error": {
      const text = string(payload.message) ?? record(payload.error)?.message
      addMessage(rollout, "system", textPart(text, "local_tool"), { payload, at })
      break
    }
    case "exec_command_end":
      noteCommand(rollout, id, payload)
      break
    case "patch_apply_end":
      noteChanges(rollout, id, payload.changes, payload.success === false)
      break
    case "mcp_tool_call_end":
      noteRemoteCall(rollout, id, payload)
      break
    case "dynamic_tool_call_response":
      if (payload.success === false) callWithId(rollout, id).failed = true
      break
    case "web_search_end":
      addSearchResults(rollout, id, payload, at)
      break
    case "item_completed":
      handleCompletedItem(rollout, record(payload.item) ?? {}, payload, at)
      break
    default:
      if (!IGNORED_EVENTS.has(String(payload.type))) countUnknown(rollout, `event_msg/${payload.type}`)
  }
}

function handleCompletedItem(rollout: Rollout, item: RawRecord, event: RawRecord, at?: number): void {
  const id = string(item.id)
  const payload = { id, turn_id: event.turn_id }
  switch (item.type) {
    case "UserMessage":
      addPrompt(rollout, records(item.content), payload, at)
      break
    case "AgentMessage": {
      const parts = records(item.content).flatMap((piece) => textPart(piece.text, "agent"))
      addStandIn(rollout, parts, "reply", payload, at)
      break
    }
    case "Reasoning": {
      const texts = [...array(item.summary_text), ...array(item.raw_content)].flatMap((text) => string(text) ?? [])
      addStandIn(rollout, thinkingParts(texts.join("\n\n")), "thinking", payload, at)
      break
    }
    case "Plan": {
      const text = string(item.text)
      if (text && !containsText(rollout, text))
        addMessage(rollout, "assistant", textPart(text, "agent"), { payload, at })
      break
    }
    case "CommandExecution":
      noteCommand(rollout, id, item)
      break
    case "FileChange":
      noteChanges(rollout, id, item.changes, item.status === "failed" || item.status === "declined")
      break
    case "McpToolCall":
      noteRemoteCall(rollout, id, item)
      break
    case "WebSearch":
    case "Extension":
      addSearchResults(rollout, id, item, at)
      break
    default:
      if (!IGNORED_ITEMS.has(String(item.type))) countUnknown(rollout, `event_msg/item_completed/${item.type}`)
  }
}

function addPrompt(rollout: Rollout, content: RawRecord[], payload: RawRecord, at?: number): void {
  const speaker = speakerOf(rollout, payload)
  const parts = content.flatMap((piece) => contentParts(piece, splitPrompt, speaker))
  const startsTurn = parts.some(({ origin }) => origin === speaker)
  addMessage(rollout, "user", parts, { payload: withEventId(payload), at, kind: "prompt", isStandIn: true, startsTurn })
}

function addStandIn(
  rollout: Rollout,
  parts: Part[],
  kind: "reply" | "thinking",
  payload: RawRecord,
  at?: number,
): void {
  addMessage(rollout, "assistant", parts, { payload: withEventId(payload), at, kind, isStandIn: true })
}

/** Gives an event its own id. A completed item has the same id as the response item that it repeats, whose key is that id. */
function withEventId(payload: RawRecord): RawRecord {
  return payload.id === undefined ? payload : { ...payload, id: `${payload.id}:event` }
}

/** Adds tokens to the last reply. Codex writes them after each model call, and again when it refreshes the rate limits. */
function addTokens(rollout: Rollout, payload: RawRecord): void {
  const info = record(payload.info) ?? payload
  const total = record(info.total_token_usage)
  const isRepeat = total !== undefined && JSON.stringify(total) === JSON.stringify(rollout.lastTotal)
  const usage =
    codexUsage(record(info.last_token_usage)) ?? usageSince(codexUsage(total), codexUsage(rollout.lastTotal))
  if (total) rollout.lastTotal = total
  if (!usage || isRepeat) return
  rollout.hasTokenCounts = true
  if (rollout.lastReply) rollout.lastReply.usage = addRequest(rollout.lastReply.usage, usage)
}

/** Adds a message with search results, because the response item has only the query. */
function addSearchResults(rollout: Rollout, id: string | undefined, search: RawRecord, at?: number): void {
  const text = records(search.results)
    .map((hit) => [hit.title, hit.url, hit.snippet].flatMap((line) => string(line) ?? []).join("\n"))
    .filter((hit) => hit !== "")
    .join("\n\n")
  if (text === "") return
  const callField = id === undefined ? {} : { call_id: id }
  const part: Part = { type: "tool_result", text, origin: "web", tool: "web_search", ...callField, is_error: false }
  addMessage(rollout, "tool", [part], { payload: { id: id && `${id}:results` }, at })
}

function noteCommand(rollout: Rollout, id: string | undefined, event: RawRecord): void {
  const call = callWithId(rollout, id)
  call.exitStatus = number(event.exit_code) ?? call.exitStatus
  // when the agent types into a running command, this event repeats the command
  if (event.source !== "unified_exec_interaction") call.command ??= commandText(event.command)
  call.reads.push(...filesRead(event.parsed_cmd).filter((path) => !call.reads.includes(path)))
}

function noteChanges(rollout: Rollout, id: string | undefined, changes: unknown, failed: boolean): void {
  const call = callWithId(rollout, id)
  if (failed) call.failed = true
  call.changes = record(changes) ?? call.changes
}

function noteRemoteCall(rollout: Rollout, id: string | undefined, event: RawRecord): void {
  const call = callWithId(rollout, id)
  call.isRemote = true
  if (record(event.result)?.isError === true) call.failed = true
}
