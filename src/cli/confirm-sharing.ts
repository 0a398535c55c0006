import { DexError } from "../core/error.ts"
import type { OutputOf } from "../core/tool.ts"
import { terminalOf } from "../render/terminal.ts"
import { many } from "../render/words.ts"
import type { hub } from "../tools/hub/hub.ts"
import { sharingLines } from "./print/hub.ts"

/** Shows what would be sent or deleted, and asks. Throws a DexError where the answer is no or nobody can be asked. */
export async function confirmSharing(output: OutputOf<typeof hub>): Promise<true> {
  const { columns } = terminalOf(process.stderr, process.env)
  const lines = output.summary
    ? sharingLines(output.summary, output.address ?? "", columns)
    : [`${many(output.on_hub ?? 0, "conversation")} would be deleted on the hub, and cannot be sent again.`]
  process.stderr.write(`${lines.join("\n")}\n`)
  if (!process.stdin.isTTY || !process.stdout.isTTY)
    throw new DexError("needs_yes", "Nothing was changed: there is no terminal to ask on. Add --yes to do this.")
  const { confirm, isCancel } = await import("@clack/prompts")
  const message = output.summary ? "Share this, and what is added to it later?" : "Delete this on the hub?"
  const yes = await confirm({ message, initialValue: false, output: process.stderr })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was changed.")
  return true
}
