import type { Message } from "./conversation.ts"

// Describes the tool calls of any agent in a few words.

type CallDescription = { what: string; old?: string; new?: string }

/** The input fields that describe a call, the most descriptive first. */
const DESCRIPTIVE_FIELDS = [
  "file_path",
  "filePath",
  "absolute_path",
  "notebook_path",
  "target_file",
  "pattern",
  "command",
  "cmd",
  "query",
  "url",
  "path",
  "skill",
  "subject",
  "description",
  "title",
  "prompt",
  "id",
  "taskId",
]

/** Describes a tool call. `text` is the call's input as the agent wrote it: JSON, or the plain text of a freeform tool. */
export function describeToolCall(text: string): CallDescription {
  const input = objectOf(text)
  if (!input) return { what: patchedFiles(text) ?? text }
  const what = DESCRIPTIVE_FIELDS.map((key) => argumentText(input[key])).find((value) => value !== "")
  const old = input.old_string ?? input.oldString ?? input.old_str
  const replacement = input.new_string ?? input.newString ?? input.new_str
  return {
    what: what ?? (Object.keys(input).length === 0 ? "" : text),
    ...(typeof old === "string" && typeof replacement === "string" && { old, new: replacement }),
  }
}

/**
 * Returns a string, or a list of strings joined by spaces. The list `["bash", "-lc", "npm test"]` becomes `npm test`. Returns an
 * empty string for any other value.
 */
function argumentText(value: unknown): string {
  if (typeof value === "string") return value
  if (!Array.isArray(value) || value.some((item) => typeof item !== "string")) return ""
  return value.length === 3 && /^-\w*c$/.test(value[1]) ? value[2] : value.join(" ")
}

function objectOf(text: string): Record<string, unknown> | undefined {
  if (!text.startsWith("{")) return undefined
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // freeform text that begins with a brace but is not JSON
  }
}

function patchedFiles(text: string): string | undefined {
  const files = [...text.matchAll(/^\*\*\* (?:Update|Add|Delete) File: (.+)$/gm)].map(([, file]) => file!)
  return files.length === 0 ? undefined : files.join(", ")
}

/** Maps each call's id to its input. */
export function callInputs(messages: readonly Pick<Message, "parts">[]): Map<string, string> {
  const calls = new Map<string, string>()
  for (const { parts } of messages)
    for (const part of parts)
      if (part.type === "tool_call" && part.call_id !== undefined) calls.set(part.call_id, part.text)
  return calls
}
