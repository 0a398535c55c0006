import { DexError } from "../core/error.ts"
import type { OutputOf } from "../core/tool.ts"
import { terminalOf } from "../render/terminal.ts"
import type { forget } from "../tools/forget/forget.ts"
import { toBeForgotten } from "./print/keeping.ts"
import { many } from "./print/words.ts"

/** What cannot be undone is asked about on a terminal; elsewhere nothing is done without --yes. */
export async function confirmForgetting(output: OutputOf<typeof forget>): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const { confirm, isCancel } = await import("@clack/prompts")
  const { columns } = terminalOf(process.stderr, process.env)
  process.stderr.write(`${toBeForgotten(output, columns).join("\n")}\n`)
  const yes = await confirm({
    message: `Permanently delete ${output.count === 1 ? "this conversation" : `these ${many(output.count, "conversation")}`}?`,
    initialValue: false,
    output: process.stderr,
  })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was deleted.")
  return true
}
