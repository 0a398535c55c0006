import { chmodSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

/** Puts a shell script in the place of an agent's program. Returns a PATH on which it comes first. */
export function standIn(root: string, program: string, script: string): string {
  const bin = join(root, "bin")
  mkdirSync(bin, { recursive: true })
  writeFileSync(join(bin, program), `#!/bin/sh\n${script}\n`)
  chmodSync(join(bin, program), 0o755)
  return `${bin}:/usr/bin:/bin`
}

/** An answer as Claude Code prints it. */
export function claudeAnswer(result: string, more: object = {}): string {
  const usage = { input_tokens: 20, cache_creation_input_tokens: 3, cache_read_input_tokens: 7, output_tokens: 5 }
  return JSON.stringify({ type: "result", is_error: false, result, usage, total_cost_usd: 0.0123, ...more })
}

/** A script that saves its input to a file and then prints a text. */
export function printScript(text: string, input = "/dev/null"): string {
  return `cat >${input}\ncat <<'END_OF_TEXT'\n${text}\nEND_OF_TEXT`
}
