import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, when } from "../../render/words.ts"
import type { tests } from "../../tools/tests/tests.ts"
import type { PrintContext, Printed } from "./printer.ts"

type Output = OutputOf<typeof tests>
type Failing = Output["failing"][number]
type Unnamed = Output["unnamed"][number]

export function printTests(output: Output, { terminal }: PrintContext): Printed {
  const { failing, unnamed, newest } = output
  if (newest === undefined)
    return {
      lines: [],
      notes: ["No test runs of this project are known. They are read from conversations.", ...output.notes],
    }
  const lines = [
    ...failing.flatMap((test, i) => [...testLines(test, i + 1, terminal), ""]),
    ...unnamed.flatMap((run, i) => [...runLines(run, failing.length + i + 1, terminal), ""]),
  ]
  const seen = `Last run seen ${when(newest)}; from ${many(output.runs_known, "test run")} in conversations. No test was run now.`
  const head =
    lines.length === 0 ? `No test is known to fail. ${seen}` : `${many(output.total, "failing test")}. ${seen}`
  return {
    lines,
    notes: [head, ...output.notes],
    listing: [...failing.map(({ ref }) => ref), ...unnamed.map(({ ref }) => ref)],
  }
}

function testLines({ test, message, date, ref, command }: Failing, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(test), room))}`,
    ...(message === undefined ? [] : [`    ${paint(terminal, "red", clip(safeLine(message), room))}`]),
    `    ${clip(`failed ${when(date)}  $ ${safeLine(command)}`, room)}`,
    `    ${paint(terminal, "dim", safeLine(ref))}`,
  ]
}

function runLines({ command, failed, date, ref }: Unnamed, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(`$ ${safeLine(command)}`, room))}`,
    `    ${clip(`failed ${when(date)}, at least ${many(failed, "test")}; which ones was not told`, room)}`,
    `    ${paint(terminal, "dim", safeLine(ref))}`,
  ]
}
