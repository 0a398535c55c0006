import { createPlacePatterns, maskPlaces, type RemovedText, redactForSharing } from "../../hub-client/for-others.ts"
import type { StoredMessage } from "../../store/history/store.ts"

export type SharedMessage = Pick<StoredMessage, "number" | "role" | "at" | "parts">

/** Prepares messages for other people: redacts them again, removes invisible characters and masks the home folder's path. */
export function redactForOthers(
  stored: readonly SharedMessage[],
  title: string,
  home: string,
  textOnly: boolean,
): { messages: SharedMessage[]; title: string; taken_out: RemovedText[] } {
  const included = textOnly ? stored.map(withoutTools).filter(({ parts }) => parts.length > 0) : stored
  const messages = included.map(({ number, role, at, parts }) => ({ number, role, at, parts }))
  const { value, taken_out } = redactForSharing({ title, messages }, createPlacePatterns({ home }))
  return { ...value, taken_out }
}

/** Replaces the home folder's path with `~`. */
export function withoutHome(text: string, home: string): string {
  return maskPlaces(text, createPlacePatterns({ home })).text
}

function withoutTools(message: SharedMessage): SharedMessage {
  return { ...message, parts: message.parts.filter((part) => part.type === "text" && part.origin !== "injected") }
}
