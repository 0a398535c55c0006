import { string } from "./record.ts"

const LONGEST_NAME = 40
/** Words that suggest the person, or something that only the person does. */
const PERSONS = /\b(?:you|yours?|person|users?|humans?|developer|owner|confirmed|approved)\b/i

/**
 * The name that an agent gives itself, in plain letters. Any client can choose any name, so one that could be mistaken for the
 * person is not used.
 */
export function callerName(given: unknown): string {
  const plain = (string(given) ?? "").replaceAll(/[^\w.@/-]+/g, " ").trim()
  return plain === "" || PERSONS.test(plain.replaceAll("_", " ")) ? "an agent" : plain.slice(0, LONGEST_NAME).trim()
}
