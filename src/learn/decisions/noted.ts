import { REJECTS, writtenIn } from "../../agents/dex-note/connector.ts"
import type { StoredMessage } from "../../store/history/store.ts"

export type NoteFound = {
  message: StoredMessage
  /** As it is kept: an agent's begins with who wrote it. */
  quote: string
  /** Without that. */
  text: string
  /** The agent that wrote it. Absent: the person did. */
  agent?: string
  /** The person wrote it, or confirmed what an agent wrote. */
  confirmed: boolean
  /** Whole paths. */
  files: string[]
  rejects?: string
}

/** What a note says now: its last wording. Undefined where nothing is left of it. */
export function noteIn(messages: StoredMessage[]): NoteFound | undefined {
  const live = messages.filter(({ abandoned, superseded }) => !abandoned && !superseded)
  const [message, ...after] = live
  const [said, second] = message?.parts ?? []
  if (!message || said?.type !== "text") return undefined
  const isPersons = message.role === "user" && said.origin === "person"
  const rejects =
    second?.type === "text" && second.text.startsWith(REJECTS) ? second.text.slice(REJECTS.length) : undefined
  return {
    message,
    quote: said.text,
    ...(isPersons ? { text: said.text } : writtenIn(said.text)),
    confirmed: isPersons || after.some(({ role }) => role === "user"),
    files: message.effects.flatMap((effect) => (effect.type === "file" ? effect.path : [])),
    rejects,
  }
}
