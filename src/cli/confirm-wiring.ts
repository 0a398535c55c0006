import { DexError } from "../core/error.ts"
import { terminalOf } from "../render/terminal.ts"
import { diffLines, type WiringOutput } from "./print/install.ts"

/** Shows every change and asks. Returns when the answer is yes; throws a DexError when it is no or nobody can be asked. */
export async function confirmWiring(output: WiringOutput, home: string): Promise<void> {
  const terminal = terminalOf(process.stdout, process.env)
  process.stdout.write(`${diffLines(output, { terminal, home }).join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError(
      "needs_yes",
      "Nothing was changed: there is no terminal to ask on. Add --yes to make these changes.",
    )
  const { confirm, isCancel } = await import("@clack/prompts")
  const count = output.files.filter(({ change }) => change !== "none" && change !== "problem").length
  const yes = await confirm({
    message: `Make ${count === 1 ? "this change" : `these changes to ${count} files`}? Files that were there are kept as backups.`,
    output: process.stderr,
  })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was changed.")
}
