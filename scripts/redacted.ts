import { isDeeperThan, MAX_DEPTH } from "../src/core/record.ts"
import { redactRecord, redactText } from "../src/redact/redact.ts"

/** A session without its secrets, by the rules that dex itself uses. JSON stays JSON, as a whole or line by line. */
export function redactedSession(text: string): string {
  return redactedJson(text) ?? redactedLines(text) ?? redactText(text)
}

/** Undefined where the text is not JSON. */
function redactedJson(text: string): string | undefined {
  try {
    const parsed: unknown = JSON.parse(text)
    // Fields are known by their names, so the record is redacted and not its text.
    if (isDeeperThan(parsed, MAX_DEPTH)) return redactText(text)
    return JSON.stringify(redactRecord({ record: parsed }).record.record)
  } catch {
    return undefined
  }
}

/** Undefined where the first line is no object: then it is text, and a key may go over many lines of it. */
function redactedLines(text: string): string | undefined {
  const lines = text.split("\n")
  if (!lines[0]?.startsWith("{") || redactedJson(lines[0]) === undefined) return undefined
  return lines.map((line) => redactedJson(line) ?? redactText(line)).join("\n")
}
