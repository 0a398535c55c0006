import { withoutUndefined } from "../../core/defined.ts"
import { array, isRecord, type RawRecord, record, records, string } from "../../core/record.ts"
import { cutLongTexts, digestOf, digestOfDataUri } from "../kit/messages.ts"

/** Removes redundant data from a record. Returns undefined for a record that is not stored at all. */
export function stripRecord(raw: RawRecord): RawRecord | undefined {
  if (raw.type === "world_state") return undefined // prompts and settings that are repeated in every turn
  const payload = record(raw.payload)
  if (!payload) return cutLongTexts(stripItem(withoutFields(raw, ["instructions"])))
  return cutLongTexts({ ...raw, payload: stripPayload(raw.type, payload) })
}

function stripPayload(type: unknown, payload: RawRecord): RawRecord {
  switch (type) {
    case "session_meta":
      return withoutFields(payload, ["base_instructions", "instructions", "dynamic_tools"])
    case "turn_context":
      return withoutFields(payload, ["user_instructions", "developer_instructions", "collaboration_mode"])
    case "response_item":
      return stripItem(payload)
    case "event_msg":
      return stripEvent(payload)
    case "compacted":
      return stripCompacted(payload)
    default:
      return payload
  }
}

function stripItem(item: RawRecord): RawRecord {
  const stripped = withoutFields(item, ["encrypted_content"])
  if (typeof stripped.result === "string" && item.type === "image_generation_call") {
    stripped.result = digestOf(Buffer.from(stripped.result, "base64"))
  }
  if (Array.isArray(stripped.content)) stripped.content = stripped.content.map(stripContent)
  if (Array.isArray(stripped.output)) stripped.output = stripped.output.map(stripContent)
  else if (isRecord(stripped.output)) stripped.output = stripContent(stripped.output)
  if (item.type === "tool_search_output") stripped.tools = toolNames(item.tools)
  return stripped
}

/** Removes image bytes from an item of Codex's database, whose images have other names than those in a rollout. */
export function stripHistoryRow(row: RawRecord): RawRecord {
  const item = record(row.item_json)
  if (!item) return cutLongTexts(row)
  const { result, ...rest } = item
  const asInput = (piece: unknown) => {
    const url = string(record(piece)?.url)
    return url === undefined ? piece : { type: "input_image", image_url: url }
  }
  const content = Array.isArray(rest.content)
    ? { content: rest.content.map((piece) => stripContent(asInput(piece))) }
    : {}
  const kept = item.type === "imageGeneration" ? {} : { result }
  return cutLongTexts({ ...row, item_json: { ...rest, ...content, ...kept } })
}

function stripContent(content: unknown): unknown {
  if (!isRecord(content)) return content
  const url = string(content.image_url)
  const digest = url && digestOfDataUri(url)
  return withoutFields(digest ? { ...content, image_url: digest } : content, ["encrypted_content"])
}

function toolNames(tools: unknown): string[] {
  return records(tools).flatMap((tool) => [String(tool.name ?? ""), ...toolNames(tool.tools)])
}

/** Removes outputs and messages that `response_item` records also contain. */
function stripEvent(event: RawRecord): RawRecord {
  switch (event.type) {
    case "exec_command_end":
      return withoutFields(event, COMMAND_OUTPUT)
    case "mcp_tool_call_end":
      return { ...withoutFields(event, ["invocation"]), result: mcpOutcome(event.result) }
    case "dynamic_tool_call_response":
      return withoutFields(event, ["content_items", "arguments"])
    case "image_generation_end":
      return withoutFields(event, ["result"])
    case "user_message":
      return {
        ...event,
        ...withoutUndefined({ images: event.images === undefined ? undefined : array(event.images).length }),
      }
    case "patch_apply_end":
      return { ...event, changes: stripChanges(event.changes) }
    case "item_completed":
      return { ...event, item: stripTurnItem(record(event.item) ?? {}) }
    case "task_complete":
    case "turn_complete":
      return withoutFields(event, ["last_agent_message"])
    default:
      return event
  }
}

const COMMAND_OUTPUT = ["aggregated_output", "stdout", "stderr", "formatted_output"]

function stripTurnItem(item: RawRecord): RawRecord {
  switch (item.type) {
    case "CommandExecution":
      return withoutFields(item, COMMAND_OUTPUT)
    case "McpToolCall":
      return { ...withoutFields(item, ["arguments"]), result: mcpOutcome(item.result) }
    case "DynamicToolCall":
      return withoutFields(item, ["content_items", "arguments"])
    case "ImageGeneration":
      return withoutFields(item, ["result"])
    case "FileChange":
      return { ...item, changes: stripChanges(item.changes) }
    case "UserMessage":
      return { ...item, content: array(item.content).map(stripContent) }
    default:
      return item
  }
}

function mcpOutcome(result: unknown): RawRecord {
  const outcome = record(result)
  const fields = record(outcome?.Ok) ?? outcome
  return { isError: outcome?.Err !== undefined || fields?.isError === true || fields?.is_error === true }
}

/** Replaces the content of each deleted file, which is a copy of the entire file, with its number of lines. */
function stripChanges(changes: unknown): RawRecord {
  return Object.fromEntries(
    Object.entries(record(changes) ?? {}).map(([path, change]) => {
      const fields = record(change)
      const content = fields?.type === "delete" ? fields.content : record(fields?.delete)?.content
      if (typeof content !== "string") return [path, change]
      return [path, { type: "delete", lines: content.split("\n").length - (content.endsWith("\n") ? 1 : 0) }]
    }),
  )
}

/** Keeps only the prompts of a compaction's replacement history, and an encrypted summary without its content. */
function stripCompacted(payload: RawRecord): RawRecord {
  const { replacement_history: history, ...rest } = payload
  if (!Array.isArray(history)) return rest
  const items = records(history).filter(
    ({ type, role }) => type === "compaction" || (type === "message" && role === "user"),
  )
  return { ...rest, replacement_history: items.map(stripItem) }
}

function withoutFields(value: RawRecord, fields: readonly string[]): RawRecord {
  const copy = { ...value }
  for (const field of fields) delete copy[field]
  return copy
}
