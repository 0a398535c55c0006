// Prints a file without its secrets, by dex's own rules, so that a session can be shown to others: `npm run --silent redact --
// session.jsonl > redacted.jsonl`. JSON stays JSON, as one document or line by line.
import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import { redactedSession } from "./redacted.ts"

const [file] = process.argv.slice(2)
if (file === undefined) {
  console.error("Which file? For example: npm run --silent redact -- session.jsonl > redacted.jsonl")
  process.exit(2)
}
// npm changes into the package's folder, but the user means the current one.
process.stdout.write(redactedSession(readFileSync(resolve(process.env.INIT_CWD ?? ".", file), "utf8")))
