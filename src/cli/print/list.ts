import { formatCount } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine } from "../../render/terminal.ts"
import { otherKinds } from "../../tools/kinds.ts"
import type { list } from "../../tools/list/list.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { many, projectName, showFirst, when } from "./words.ts"

type Output = OutputOf<typeof list>
type Row = Output["conversations"][number]

export function printList(output: Output, { terminal, numbered }: PrintContext): Printed {
  const notes: string[] = []
  const listing = output.conversations.map((row) => row.id)
  const leftOut = otherKinds(output.left_out)
  if (output.conversations.length === 0)
    notes.push(
      "No conversations here. `dex sync` reads what your agents have written; `dex sources` shows where dex looks.",
    )
  else
    notes.push(
      `${output.conversations.length} of ${many(output.total, "conversation")}. Read one: ${showFirst(listing, { numbered })}${output.next_offset === undefined || output.continue_with !== undefined ? "" : `. More: --offset ${output.next_offset}`}`,
    )
  if (output.conversations.some((row) => workOf(row) !== ""))
    notes.push("+ and - are lines changed, f files edited, c commits made.")
  if (output.conversations.some((row) => row.superseded))
    notes.push("superseded: no longer in the agent's file; dex kept it.")
  if (output.continue_with !== undefined)
    notes.push(`Cut to stay within the budget. Continue with: ${output.continue_with}`)
  if (leftOut !== "") notes.push(`Not shown: ${leftOut}; show with --all`)
  const columns = columnsOf(output.conversations)
  const lines = output.conversations.flatMap((row, i) => rowLines(row, i + 1, columns, terminal))
  return { lines, notes, listing }
}

/** What tells rows apart: a column in which all are the same is not shown. */
type Columns = { id: (row: Row) => string; source: boolean; project: boolean }

function columnsOf(rows: Row[]): Columns {
  const differ = (of: (row: Row) => string) => new Set(rows.map(of)).size > 1
  const ids = rows.map(nativeId)
  const length = [8, 12, 16, 24].find((n) => new Set(ids.map((id) => id.slice(0, n))).size === ids.length) ?? 36
  return {
    id: (row) => nativeId(row).slice(0, length),
    source: differ((row) => row.source),
    project: differ((row) => projectName(row.project)),
  }
}

function rowLines(row: Row, number: number, columns: Columns, terminal: PrintContext["terminal"]): string[] {
  const head = `${paint(terminal, "cyan", String(number).padStart(3))}  ${when(row.date)}  `
  const room = terminal.columns - 23
  const kind = `${row.kind === "person" ? "" : ` (${row.kind})`}${row.superseded ? " (superseded)" : ""}`
  // Of the two, the title can be cut.
  const titled = (columns: number) => clip(safeLine(row.title), columns - kind.length) + kind
  const id = columns.id(row)
  const project = projectName(safeLine(row.project))
  const size = `${row.message_count} msg, ${formatCount(row.estimated_tokens)} tok`
  if (terminal.columns < 100) {
    const facts = [id, row.source, project, size, workOf(row)].filter((fact) => fact !== "")
    return [head + titled(room), `     ${paint(terminal, "dim", clip(facts.join(" · "), terminal.columns - 5))}`]
  }
  const right = [
    padEnd(id, id.length + 2),
    columns.source ? padEnd(row.source, 13) : "",
    columns.project ? padEnd(clip(project, 14), 16) : "",
    padEnd(size, 19),
    padEnd(workOf(row), 17),
  ].join("")
  return [
    `${head}${padEnd(titled(room - right.length - 2), room - right.length)}${paint(terminal, "dim", right.trimEnd())}`,
  ]
}

/** +120 -8 3f 1c: lines, files and commits. */
function workOf(row: Row): string {
  const lines = row.lines_added + row.lines_removed > 0
  return [
    ...(lines ? [`+${formatCount(row.lines_added)} -${formatCount(row.lines_removed)}`] : []),
    ...(row.files > 0 ? [`${row.files}f`] : []),
    ...(row.commits > 0 ? [`${row.commits}c`] : []),
  ].join(" ")
}

function nativeId(row: Row): string {
  return row.id.slice(row.id.indexOf(":") + 1)
}
