import type { Origin, Part } from "../../core/conversation.ts"
import { splitInjected } from "../kit/injected.ts"

/** What Cursor is known to put into the user's turn beside the question. */
const INJECTED = [
  ...["user_info", "system_reminder", "system-reminder", "project_layout", "git_status", "rules", "user_rules"],
  ...["attached_files", "open_and_recently_viewed_files", "additional_data", "timestamp", "task_notification"],
  ...["manually_attached_skills", "agent_skills", "available_skills", "mcp_instructions", "mcp_file_system"],
  ...["agent_transcripts", "external_links", "cursor_rules", "terminal_files_information", "image_files"],
]

/** The question stands in `<user_query>`, and what is beside it was put there; without that tag all but the known tags is. */
export function promptParts(text: string, asked: Origin): Part[] {
  const runs = splitInjected(text, ["user_query"])
  if (runs.some((run) => run.injected)) {
    return runs.flatMap((run): Part[] => {
      if (!run.injected) return [{ type: "text", text: run.text, origin: "injected" }]
      const question = run.text.slice(run.text.indexOf(">") + 1, run.text.lastIndexOf("</")).trim()
      return question === "" ? [] : [{ type: "text", text: question, origin: asked }]
    })
  }
  return splitInjected(text, INJECTED).map((run) => ({
    type: "text",
    text: run.text,
    origin: run.injected || isOneTag(run.text) ? "injected" : asked,
  }))
}

/** Nobody types a whole `<snake_case>` element as their prompt. */
function isOneTag(text: string): boolean {
  const tag = /^<([a-z]+_[a-z_]+)>/.exec(text)?.[1]
  return tag !== undefined && text.endsWith(`</${tag}>`)
}
