import type { InputOf, OutputOf } from "../../core/tool.ts"
import { safe, type Terminal, wrapLine } from "../../render/terminal.ts"
import type { handover } from "../../tools/handover/handover.ts"
import { openOrPrint } from "../open-program.ts"
import type { PrintContext, Printed } from "./printer.ts"

type Output = OutputOf<typeof handover>
type Input = InputOf<typeof handover>

export async function printHandover(output: Output, { terminal }: PrintContext, input: Input): Promise<Printed> {
  const printed = briefOf(output, input, terminal)
  const { command, folder, note, problem } = output
  if (command === undefined || input.print) return printed
  return openOrPrint({ command: [...command, output.brief], folder, note, problem }, printed)
}

function briefOf(output: Output, input: Input, { interactive, columns }: Terminal): Printed {
  const notes = [`About ${output.estimated_tokens} tokens.`]
  if (output.problem !== undefined && !interactive) notes.push(output.problem)
  else if (input.to === undefined) notes.push(`Open an agent with it: dex handover ${output.id} --to codex`)
  const lines = safe(output.brief).split("\n")
  return { lines: interactive ? lines.flatMap((line) => wrapLine(line, columns)) : lines, notes }
}
