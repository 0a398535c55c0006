import { parseAgentNote, REJECTS_PREFIX } from "../../agents/dex-note/connector.ts"
import type { StoredMessage } from "../../store/history/store.ts"

export type FoundNote = {
  message: StoredMessage
  /** The stored text. An agent's note begins with the agent's name. */
  quote: string
  /** The quote without the agent's name. */
  text: string
  /** The agent that wrote the note. Undefined if the person did. */
  agent?: string
  /** True if the person wrote the note or confirmed it. */
  confirmed: boolean
  /** Absolute paths. */
  files: string[]
  rejects?: string
}

/** Returns the current wording of a note, or undefined if the note is empty. */
export function currentNote(messages: StoredMessage[]): FoundNote | undefined {
  const live = messages.filter(({ abandoned, superseded }) => !abandoned && !superseded)
  const [message, ...later] = live
  const [first, second] = message?.parts ?? []
  if (!message || first?.type !== "text") return undefined
  const isByPerson = message.role === "user" && first.origin === "person"
  const rejects =
    second?.type === "text" && second.text.startsWith(REJECTS_PREFIX)
      ? second.text.slice(REJECTS_PREFIX.length)
      : undefined
  return {
    message,
    quote: first.text,
    ...(isByPerson ? { text: first.text } : parseAgentNote(first.text)),
    confirmed: isByPerson || later.some(({ role }) => role === "user"),
    files: message.effects.flatMap((effect) => (effect.type === "file" ? effect.path : [])),
    rejects,
  }
}
