import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { readFields, withFields } from "../../render/fields.ts"
import type { StoredMessage } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { resolveConversation } from "../resolve.ts"
import { originsText } from "../view.ts"

type ViewLimits = { max_tokens?: number; show?: string[]; hide?: string[] }

export async function openConversation(dex: Dex, target: { id?: string; session?: string }) {
  const { row, number } = await resolveConversation(dex, target)
  return { row, number, store: await dex.store() }
}

/** The messages with the parts that `show` and `hide` select, and the number of hidden parts. */
export function selectParts(
  messages: StoredMessage[],
  input: ViewLimits,
): { messages: StoredMessage[]; hidden?: number } {
  const selected = withFields(messages, readFields(input))
  return { messages: selected.messages, hidden: selected.hidden || undefined }
}

/** The options that a call to continue must repeat. */
export function limitOptions({ max_tokens, show, hide }: ViewLimits) {
  return { "max-tokens": max_tokens, show, hide }
}

/** The facts about a message that every view shows first. */
export function messageFacts(message: StoredMessage) {
  return {
    index: message.number,
    role: message.role,
    origin: originsText(message),
    date: message.at === undefined ? undefined : isoDate(message.at),
  }
}

export function noMessageError(number: number, last: number): DexError {
  return new DexError("no_message", `There is no message ${number} in this conversation; the last one is ${last}.`)
}
