import { DexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { serviceLines, type WatchOutput } from "./print/watch.ts"

/** Shows the file and the commands, and asks. Throws a DexError when the answer is no or nobody can be asked. */
export async function confirmService(output: WatchOutput): Promise<true> {
  const service = output.service!
  process.stdout.write(`${serviceLines(service, terminalOf(process.stdout, process.env)).join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError("needs_yes", "Nothing was changed: there is no terminal to ask on. Add --yes to do this.")
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = service.change === "remove" ? "Remove the service?" : "Write this file and start the service?"
  const yes = await confirm({ message, output: process.stderr })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was changed.")
  return true
}
