// Prints a file without its secrets, by the rules that dex itself uses, so that a session can be shown to others:
// `npm run --silent redact -- session.jsonl > redacted.jsonl`. JSON stays JSON, as a whole or line by line.
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { isDeeperThan, MAX_DEPTH } from "../src/core/record.ts"
import { redactRecord, redactText } from "../src/redact/redact.ts"

const [file] = process.argv.slice(2)
if (file === undefined) {
  console.error("Which file? For example: npm run --silent redact -- session.jsonl > redacted.jsonl")
  process.exit(2)
}
// npm changes into the package's folder; the person meant the one they are in.
const text = readFileSync(resolve(process.env.INIT_CWD ?? ".", file), "utf8")
process.stdout.write(redactedJson(text) ?? redactedLines(text) ?? redactText(text))

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
