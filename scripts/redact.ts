// Prints a file without its secrets, by the rules that dex itself uses, so that a session can be shown to others:
// `npm run --silent redact -- session.jsonl > redacted.jsonl`. JSON stays JSON, as a whole or line by line.
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { redactedSession } from "./redacted.ts"

const [file] = process.argv.slice(2)
if (file === undefined) {
  console.error("Which file? For example: npm run --silent redact -- session.jsonl > redacted.jsonl")
  process.exit(2)
}
// npm changes into the package's folder; the person meant the one they are in.
process.stdout.write(redactedSession(readFileSync(resolve(process.env.INIT_CWD ?? ".", file), "utf8")))
