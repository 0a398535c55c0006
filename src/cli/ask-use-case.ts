import { DexError } from "../core/error.ts"

/** An answer is better when it is known what it is for; nobody has to say. */
export async function withUseCase<I extends { use_case?: string }>(input: I): Promise<I> {
  if (input.use_case !== undefined || !process.stdin.isTTY || !process.stdout.isTTY) return input
  const { text, isCancel } = await import("@clack/prompts")
  const said = await text({ message: "What is the answer for? (Enter to leave it open)", output: process.stderr })
  if (isCancel(said)) throw new DexError("cancelled", "Nothing was asked.")
  return said ? { ...input, use_case: said } : input
}
