import { DexError } from "../core/error.ts"
import type { OutputOf } from "../core/tool.ts"
import { terminalOf, wrap } from "../render/terminal.ts"
import type { config } from "../tools/config/config.ts"
import { localModelLines } from "./print/config.ts"

/** Says what the local model costs, and asks. Throws a DexError when the answer is no or nobody can be asked. */
export async function confirmLocalModel(output: OutputOf<typeof config>): Promise<true> {
  const { columns } = terminalOf(process.stderr, process.env)
  for (const line of localModelLines(output.local_model!)) process.stderr.write(`${wrap(line, columns).join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError("needs_yes", "Nothing was changed: there is no terminal to ask on. Add --yes to install it.")
  const { confirm, isCancel } = await import("@clack/prompts")
  const yes = await confirm({ message: "Install the local model?", output: process.stderr })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was changed.")
  process.stderr.write("Installing it with npm…\n")
  return true
}
