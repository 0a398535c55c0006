import { isDeeperThan, MAX_DEPTH } from "../src/core/record.ts"
import { redactRecord, redactText } from "../src/redact/redact.ts"

/** Removes the secrets from a session, by dex's own rules. JSON stays JSON, as one document or line by line. */
export function redactedSession(text: string): string {
  return redactedJson(text) ?? redactedLines(text) ?? redactText(text)
}

/** Returns undefined if the text is not JSON. */
function redactedJson(text: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    // Some rules depend on the names of fields, so the record is redacted and not its text.
    if (isDeeperThan(parsed, MAX_DEPTH)) return redactText(text)
    return JSON.stringify(redactRecord({ record: parsed }).record.record)
  } catch {
    return undefined
  }
}

/** Returns undefined if the first line is not an object: the file is then text, and a key may span many lines of it. */
function redactedLines(text: string): string | undefined {
  const lines = text.split("\n")
  if (!lines[0]?.startsWith("{") || redactedJson(lines[0]) === undefined) return undefined
  return lines.map((line) => redactedJson(line) ?? redactText(line)).join("\n")
}
