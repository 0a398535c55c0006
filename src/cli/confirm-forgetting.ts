import { DexError } from "../core/error.ts"

/** What cannot be undone is asked about on a terminal; elsewhere nothing is done without --yes. */
export async function confirmForgetting({ forgotten }: { forgotten: string[] }): Promise<boolean> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const { confirm, isCancel } = await import("@clack/prompts")
  process.stderr.write(`${forgotten.map((ref) => `  ${ref}`).join("\n")}\n`)
  const yes = await confirm({
    message: `Forget ${forgotten.length === 1 ? "this conversation" : `these ${forgotten.length} conversations`} for good?`,
    initialValue: false,
    output: process.stderr,
  })
  if (isCancel(yes) || !yes) throw new DexError("cancelled", "Nothing was forgotten.")
  return true
}
