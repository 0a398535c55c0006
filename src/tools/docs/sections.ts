import type { SectionMark } from "../../core/conversation.ts"
import type { StoredMessage } from "../../store/history/store.ts"

/** The section that a message of a document contains; undefined for a message of a conversation. */
export function sectionMarkOf(message: StoredMessage | undefined): SectionMark | undefined {
  return message?.parts.find((part) => part.type === "text")?.section
}

/** The messages of a document that contain the section with this number and its subsections. */
export function withSubsections(messages: StoredMessage[], number: number): StoredMessage[] {
  const from = messages.findIndex((message) => message.number === number)
  const path = sectionMarkOf(messages[from])?.headings ?? []
  const isBelow = (message: StoredMessage) => {
    const headings = sectionMarkOf(message)?.headings ?? []
    return path.length > 0 && path.every((heading, i) => headings[i] === heading)
  }
  const rest = messages.slice(from + 1)
  const end = rest.findIndex((message) => !isBelow(message))
  return messages.slice(from, end === -1 ? messages.length : from + 1 + end)
}
