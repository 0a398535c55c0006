import type { Message, Part } from "../core/conversation.ts"
import { DexError } from "../core/error.ts"

/** Which parts of messages to show: only those in `show`, if there are any, and none of those in `hide`. */
export type FieldFilter = { show: Field[]; hide: Field[] }
type Field = { type: Part["type"] | "injected" } | { tool: string | undefined; side: "call" | "result" | undefined }

const PART_TYPES = ["text", "thinking", "tool_call", "tool_result", "image", "summary", "injected"] as const
const KNOWN_FIELDS = `${PART_TYPES.join(", ")}, tool, tool:Bash, tool:Bash:call, tool:Bash:result`

export function readFields(input: { show?: string[]; hide?: string[] }): FieldFilter {
  return { show: (input.show ?? []).flatMap(fieldsOf), hide: (input.hide ?? []).flatMap(fieldsOf) }
}

export function isChosen(part: Part, fields: FieldFilter): boolean {
  return fields.show.some((field) => matches(field, part))
}

/** Removes unwanted parts, and messages without any parts left. `hidden` counts the removed parts. */
export function withFields<M extends Pick<Message, "parts">>(
  messages: M[],
  fields: FieldFilter,
): { messages: M[]; hidden: number } {
  if (fields.show.length === 0 && fields.hide.length === 0) return { messages, hidden: 0 }
  let hidden = 0
  const visibleMessages = messages.flatMap((message) => {
    const parts = message.parts.filter((part) => isVisible(part, fields))
    hidden += message.parts.length - parts.length
    return parts.length === 0 ? [] : [{ ...message, parts }]
  })
  return { messages: visibleMessages, hidden }
}

function isVisible(part: Part, fields: FieldFilter): boolean {
  if (fields.hide.some((field) => matches(field, part))) return false
  return fields.show.length === 0 || isChosen(part, fields)
}

function matches(field: Field, part: Part): boolean {
  if ("type" in field) return field.type === "injected" ? part.origin === "injected" : part.type === field.type
  if (part.type !== "tool_call" && part.type !== "tool_result") return false
  if (field.side !== undefined && part.type !== `tool_${field.side}`) return false
  return field.tool === undefined || part.tool?.toLowerCase() === field.tool
}

/** Parses `thinking`, `tool:Bash:result`, or several such names separated by commas. */
function fieldsOf(text: string): Field[] {
  return text
    .split(",")
    .map((name) => name.trim())
    .filter((name) => name !== "")
    .map((name) => {
      const type = PART_TYPES.find((known) => known === name.toLowerCase())
      if (type !== undefined) return { type }
      const tool = /^tool(?::(?!(?:call|result)$)(.+?))?(?::(call|result))?$/i.exec(name)
      if (!tool) throw new DexError("bad_field", `"${name}" is not a part of a message. The parts are ${KNOWN_FIELDS}.`)
      return { tool: tool[1]?.toLowerCase(), side: tool[2]?.toLowerCase() as "call" | "result" | undefined }
    })
}
