import { DexError } from "../core/error.ts"
import type { OutputOf } from "../core/tool.ts"
import { terminalOf } from "../render/terminal.ts"
import { many } from "../render/words.ts"
import type { forget } from "../tools/forget/forget.ts"
import { toBeForgotten } from "./print/keeping.ts"

type Output = OutputOf<typeof forget>

/** What cannot be undone is asked about on a terminal; elsewhere nothing is done without --yes. */
export async function confirmForgetting(output: Output): Promise<boolean | { copies: true }> {
  if (!process.stdin.isTTY || !process.stdout.isTTY) return false
  const { columns } = terminalOf(process.stderr, process.env)
  process.stderr.write(`${toBeForgotten(output, columns).join("\n")}\n`)
  const answer = output.kept_copies ? await askWithCopies(output, output.kept_copies.length) : await askPlainly(output)
  if (answer === "no") throw new DexError("cancelled", "Nothing was deleted.")
  return answer === "copies" ? { copies: true } : true
}

async function askPlainly(output: Output): Promise<"yes" | "no"> {
  const { confirm } = await import("@clack/prompts")
  const message = `Permanently delete ${these(output.count)}?`
  return (await confirm({ message, initialValue: false, output: process.stderr })) === true ? "yes" : "no"
}

async function askWithCopies(output: Output, copies: number): Promise<"yes" | "no" | "copies"> {
  const { isCancel, select } = await import("@clack/prompts")
  const answer = await select<"yes" | "no" | "copies">({
    message: `Permanently delete ${these(output.count)}?`,
    options: [
      { value: "no", label: "No" },
      { value: "yes", label: "Yes; copies of the same messages stay readable" },
      { value: "copies", label: `Yes, and ${copies === 1 ? "the one" : `the ${copies}`} with copies too` },
    ],
    initialValue: "no",
    output: process.stderr,
  })
  return isCancel(answer) ? "no" : answer
}

function these(count: number): string {
  return count === 1 ? "this conversation" : `these ${many(count, "conversation")}`
}
