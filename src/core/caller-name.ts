import { string } from "./record.ts"

const MAX_NAME_LENGTH = 40
/** Words in a client's name that could make it look like the person. */
const PERSON_WORDS = /\b(?:you|yours?|person|users?|humans?|developer|owner|confirmed|approved)\b/i

/**
 * Returns the name that a client gives itself, without unusual characters. Returns `an agent` if the name is empty or could be
 * mistaken for the person, because a client can choose any name.
 */
export function callerName(given: unknown): string {
  const plain = (string(given) ?? "").replaceAll(/[^\w.@/-]+/g, " ").trim()
  return plain === "" || PERSON_WORDS.test(plain.replaceAll("_", " "))
    ? "an agent"
    : plain.slice(0, MAX_NAME_LENGTH).trim()
}
