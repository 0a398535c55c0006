import { safe } from "../../render/terminal.ts"
import type { Printed } from "./printer.ts"

type Output = {
  id: string
  brief: string
  estimated_tokens: number
  command?: string[]
  folder?: string
  problem?: string
}
type Input = { to?: string; print?: boolean }

/** Undefined where only the brief is wanted. */
export function toOpen(
  output: Output,
  input: Input,
): { command: string[]; folder?: string; problem?: string } | undefined {
  const { command, folder, problem } = output
  if (command === undefined || input.print) return undefined
  return {
    command: [...command, output.brief],
    ...(folder !== undefined && { folder }),
    ...(problem !== undefined && { problem }),
  }
}

export function printHandover(output: Output, input: Input): Printed {
  const notes = [`About ${output.estimated_tokens} tokens.`]
  if (output.problem !== undefined) notes.push(output.problem)
  else if (input.to === undefined) notes.push(`Open an agent with it: dex handover ${output.id} --to codex`)
  return { lines: safe(output.brief).split("\n"), notes }
}
