import { string } from "./record.ts"

const LONGEST_NAME = 40
/** A name that speaks of the person, or of what only the person does. */
const PERSONS = /\b(?:you|yours?|person|users?|humans?|developer|owner|confirmed|approved)\b/i

/**
 * As an agent calls itself, in plain letters. Whoever connects chooses that name, so one that could be read as the person's
 * is not used.
 */
export function callerName(given: unknown): string {
  const plain = (string(given) ?? "").replaceAll(/[^\w.@/-]+/g, " ").trim()
  return plain === "" || PERSONS.test(plain.replaceAll("_", " ")) ? "an agent" : plain.slice(0, LONGEST_NAME).trim()
}
