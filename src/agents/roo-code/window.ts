import type { Message, Origin, Part } from "../../core/conversation.ts"
import { number, type RawRecord, string, time } from "../../core/record.ts"
import { uniqueKeys } from "../kit/message-keys.ts"

const BY_AGENT = ["text", "completion_result", "followup"]
const BY_TOOLS = [
  "tool",
  "command",
  "command_output",
  "mcp_server_response",
  "error",
  "codebase_search_result",
  "diff_error",
]
const QUIET = [
  ...["api_req_started", "api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_rate_limit_wait"],
  ...["api_req_deleted", "api_req_failed", "resume_task", "resume_completed_task", "mistake_limit_reached", "image"],
  ...[
    "checkpoint_saved",
    "shell_integration_warning",
    "mcp_server_request_started",
    "use_mcp_server",
    "rooignore_error",
  ],
  ...["condense_context", "condense_context_error", "sliding_window_truncation", "user_edit_todos", "subtask_result"],
  ...["too_many_tools_warning", "auto_approval_max_req_reached"],
]

/** What the window showed: all that is left of a task whose file of turns is gone. */
export function windowMessages(
  shown: RawRecord[],
  { id, asked, count }: { id: string; asked: Origin; count: (type: string) => void },
): Message[] {
  const keys = uniqueKeys()
  let isFirst = true
  return shown.flatMap((one, index): Message[] => {
    const kind = string(one.say) ?? string(one.ask)
    const text = string(one.text)
    if (kind === undefined || one.partial === true || QUIET.includes(kind)) return []
    const isPrompt = kind === "user_feedback" || kind === "user_feedback_diff" || (kind === "text" && isFirst)
    if (kind === "text") isFirst = false
    const part = text === undefined ? undefined : partOf(kind, text, isPrompt ? asked : undefined)
    if (part === "unknown") count(`shown ${kind}`)
    if (part === undefined || part === "unknown") return []
    const at = time(one.ts)
    const role = isPrompt ? "user" : part.origin === "agent" ? "assistant" : "tool"
    return [{ key: keys(`${id}:${number(one.ts) ?? index}`), role, at, parts: [part] }]
  })
}

function partOf(kind: string, text: string, asked: Origin | undefined): Part | "unknown" {
  if (asked !== undefined) return { type: "text", text, origin: asked }
  if (kind === "reasoning") return { type: "thinking", text, origin: "agent" }
  if (BY_AGENT.includes(kind)) return { type: "text", text, origin: "agent" }
  return BY_TOOLS.includes(kind) ? { type: "text", text, origin: "local_tool" } : "unknown"
}
