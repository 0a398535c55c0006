import { safe, terminalOf, wrap } from "../render/terminal.ts"
import { asTyped } from "./print/as-typed.ts"

/** What is not a result: on stderr, with the commands in it as they are typed here, and no word torn. */
export function say(...texts: string[]): void {
  const terminal = terminalOf(process.stderr, process.env)
  const lines = texts.flatMap((text) => wrap(asTyped(safe(text), terminal), terminal.columns))
  process.stderr.write(`${lines.join("\n")}\n`)
}
