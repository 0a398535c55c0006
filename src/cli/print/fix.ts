import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safe, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, projectName, when } from "../../render/words.ts"
import type { fix } from "../../tools/fix/fix.ts"
import type { tests } from "../../tools/tests/tests.ts"
import { factsWithRef, type PrintContext, type PrintedOutput, showFirst } from "./words.ts"

type Output = OutputOf<typeof fix>
type ShownFix = Output["fixes"][number]

export function printFix(output: Output, { terminal, numbered }: PrintContext): PrintedOutput {
  if (output.fixes.length === 0)
    return {
      lines: [],
      notes: [`No fix found. \`dex search\` finds conversations about the error.`, ...output.notes],
    }
  const lines = output.fixes.flatMap((fix, i) => [...fixLines(fix, i + 1, terminal), ""])
  const isSolved = output.fixes[0]!.solved
  const listing = output.fixes.map(({ ref, failed_ref }) => ref ?? failed_ref)
  const summary = isSolved
    ? `${output.fixes.length} of ${many(output.total, "fix", "fixes")}.`
    : "Similar errors were found, but no run is known to have passed afterwards."
  return {
    lines,
    notes: [`${summary} Read one: ${showFirst(listing, { numbered })}`, ...output.notes],
    listing,
  }
}

function fixLines(fix: ShownFix, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  const moreFiles = fix.files_left_out ? ` and ${many(fix.files_left_out, "more file")}` : ""
  const files = fix.files.map(({ path, added, removed }) => `${safeLine(path)} +${added} -${removed}`).join(", ")
  const moreLines = fix.edit_lines_left_out ? [`… ${many(fix.edit_lines_left_out, "more line")}`] : []
  const failed = safeLine(fix.failed_ref)
  const refLines = factsWithRef(
    [fix.ref ? `failed at ${failed.slice(failed.lastIndexOf("#"))}` : "", projectName(safeLine(fix.project))],
    fix.ref ? safeLine(fix.ref) : failed,
    room,
  )
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(fix.error), room))}`,
    ...[
      clip(`$ ${safeLine(fix.command)}`, room),
      clip(
        `${fix.solved ? `solved ${when(fix.date)} by` : `not known to be solved, ${when(fix.date)}; edited`} ${files}${moreFiles}`,
        room,
      ),
      ...(fix.edit === "" ? [] : fix.edit.split("\n").map((line) => editLine(line, room, terminal))),
      ...[...moreLines, ...refLines].map((line) => paint(terminal, "dim", line)),
    ].map((line) => `    ${line}`),
  ]
}

function editLine(line: string, room: number, terminal: Terminal): string {
  const visibleText = clip(safe(line).replaceAll("\n", " ").replaceAll("\t", "  "), room)
  if (/^(?:---|\+\+\+|@@)/.test(line)) return paint(terminal, "dim", visibleText)
  if (line.startsWith("+")) return paint(terminal, "green", visibleText)
  return line.startsWith("-") ? paint(terminal, "red", visibleText) : visibleText
}

type TestsOutput = OutputOf<typeof tests>
type FailingTest = TestsOutput["failing"][number]
type UnnamedRun = TestsOutput["unnamed"][number]

export function printTests(output: TestsOutput, { terminal }: PrintContext): PrintedOutput {
  const { failing, unnamed, newest } = output
  if (newest === undefined)
    return {
      lines: [],
      notes: ["No test runs of this project are known. dex reads test runs from conversations.", ...output.notes],
    }
  const lines = [
    ...failing.flatMap((test, i) => [...testLines(test, i + 1, terminal), ""]),
    ...unnamed.flatMap((run, i) => [...runLines(run, failing.length + i + 1, terminal), ""]),
  ]
  const basis = `dex knows ${many(output.runs_known, "test run")} from conversations, the last one ${when(newest)}. dex ran no test itself.`
  const summary =
    lines.length === 0 ? `No test is known to fail. ${basis}` : `${many(output.total, "failing test")}. ${basis}`
  return {
    lines,
    notes: [summary, ...output.notes],
    listing: [...failing.map(({ ref }) => ref), ...unnamed.map(({ ref }) => ref)],
  }
}

function testLines({ test, message, date, ref, command }: FailingTest, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(test), room))}`,
    ...(message === undefined ? [] : [`    ${paint(terminal, "red", clip(safeLine(message), room))}`]),
    `    ${clip(`failed ${when(date)}  $ ${safeLine(command)}`, room)}`,
    `    ${paint(terminal, "dim", safeLine(ref))}`,
  ]
}

function runLines({ command, failed, date, ref }: UnnamedRun, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(`$ ${safeLine(command)}`, room))}`,
    `    ${clip(`failed ${when(date)}, at least ${many(failed, "test")}; the output does not name them`, room)}`,
    `    ${paint(terminal, "dim", safeLine(ref))}`,
  ]
}
