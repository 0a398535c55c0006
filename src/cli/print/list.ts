import { formatCount } from "../../core/format.ts"
import { ownerIn } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine, widthOf } from "../../render/terminal.ts"
import { many, projectName, when } from "../../render/words.ts"
import { describeConversations, describeOtherKinds, nounForRows } from "../../tools/kinds.ts"
import type { list } from "../../tools/list/list.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { showFirst } from "./words.ts"

type Output = OutputOf<typeof list>
type Row = Output["conversations"][number]

export function printList(output: Output, { terminal, numbered }: PrintContext): PrintedOutput {
  const notes: string[] = []
  const listing = output.conversations.map((row) => row.id)
  const leftOut = describeOtherKinds(output.left_out)
  if (output.conversations.length === 0) notes.push(output.note ?? "No conversations here.")
  else
    notes.push(
      `${output.conversations.length} of ${output.kinds ? describeConversations(output.kinds) : many(output.total, nounForRows(output.conversations))}. Read one: ${showFirst(listing, { numbered })}${output.next_offset === undefined || output.continue_with !== undefined ? "" : `. More: --offset ${output.next_offset}`}`,
    )
  if (output.conversations.some((row) => workOf(row) !== ""))
    notes.push("+ and - are lines changed, f files edited, c commits made.")
  if (output.conversations.some((row) => row.superseded))
    notes.push("superseded: no longer in the agent's file; dex has a copy.")
  if (output.continue_with !== undefined)
    notes.push(`Cut to stay within the budget. Continue with: ${output.continue_with}`)
  if (leftOut !== "") notes.push(`Not shown: ${leftOut}; show with --all`)
  const columns = columnsOf(output.conversations, terminal)
  const lines = output.conversations.flatMap((row, i) => rowLines(row, i + 1, columns, terminal))
  return { lines, notes, listing }
}

/** The narrowest column for a title. If there is less room, the title gets a line of its own. */
const MIN_TITLE_COLUMNS = 30
const HEAD_COLUMNS = 23

/** A column is shown only if the rows differ in it. `right` is the aligned text after the title. */
type Columns = {
  id: (row: Row) => string
  right: (row: Row) => string
  rightWidth: number
  titleWidth: number
  longestTitle: number
  lines: 1 | 2
}

function columnsOf(rows: Row[], terminal: PrintContext["terminal"]): Columns {
  const differ = (textOf: (row: Row) => string) => new Set(rows.map(textOf)).size > 1
  const ids = rows.map(nativeId)
  const length = [8, 12, 16, 24].find((n) => new Set(ids.map((id) => id.slice(0, n))).size === ids.length) ?? 36
  const id = (row: Row) => nativeId(row).slice(0, length)
  const facts: ((row: Row) => string)[] = [
    ownerOf,
    id,
    ...(differ((row) => row.source) ? [(row: Row) => row.source] : []),
    ...(differ((row) => projectName(row.project)) ? [(row: Row) => clip(projectName(safeLine(row.project)), 14)] : []),
    sizeOf,
    workOf,
  ]
  const widths = facts.map((fact) => Math.max(0, ...rows.map((row) => widthOf(fact(row)))))
  const rightWidth = widths.reduce((sum, width) => sum + (width === 0 ? 0 : width + 2), 0)
  const titleWidth = MIN_TITLE_COLUMNS + Math.max(0, ...rows.map((row) => kindOf(row).length))
  const fitsOnOneLine = terminal.columns - HEAD_COLUMNS - rightWidth >= titleWidth
  return {
    id,
    right: (row) => facts.map((fact, i) => (widths[i] === 0 ? "" : `  ${padEnd(fact(row), widths[i]!)}`)).join(""),
    rightWidth,
    titleWidth,
    longestTitle: Math.max(0, ...rows.map((row) => widthOf(safeLine(row.title)) + kindOf(row).length)),
    // Programs that read a pipe expect one line per row, however long.
    lines: !terminal.interactive || (terminal.columns >= 100 && fitsOnOneLine) ? 1 : 2,
  }
}

function rowLines(row: Row, number: number, columns: Columns, terminal: PrintContext["terminal"]): string[] {
  const head = `${paint(terminal, "cyan", String(number).padStart(3))}  ${when(row.date).padEnd(HEAD_COLUMNS - 7)}  `
  const room = terminal.columns - HEAD_COLUMNS
  const kind = kindOf(row)
  // Shortens the title, but never the kind.
  const titleText = (columns: number) => clip(safeLine(row.title), columns - kind.length) + kind
  if (columns.lines === 2) {
    const project = projectName(safeLine(row.project))
    const facts = [ownerOf(row), columns.id(row), row.source, project, sizeOf(row), workOf(row)].filter(
      (fact) => fact !== "",
    )
    return [head + titleText(room), `     ${paint(terminal, "dim", clip(facts.join(" · "), terminal.columns - 5))}`]
  }
  const title = Math.max(columns.titleWidth, Math.min(columns.longestTitle, room - columns.rightWidth))
  return [`${head}${padEnd(titleText(title), title)}${paint(terminal, "dim", columns.right(row).trimEnd())}`]
}

/** The owner of a conversation in a team's list. Empty in other lists. */
function ownerOf(row: Row): string {
  return safeLine(ownerIn(row.id) ?? "")
}

function kindOf(row: Row): string {
  return `${["person", "document"].includes(row.kind) ? "" : ` (${row.kind})`}${row.superseded ? " (superseded)" : ""}`
}

function sizeOf(row: Row): string {
  return `${row.message_count} ${row.kind === "document" ? "sections" : "msg"}, ${formatCount(row.estimated_tokens)} tok`
}

/** Lines, files and commits: `+120 -8 3f 1c`. */
function workOf(row: Row): string {
  const hasLines = row.lines_added + row.lines_removed > 0
  return [
    ...(hasLines ? [`+${formatCount(row.lines_added)} -${formatCount(row.lines_removed)}`] : []),
    ...(row.files > 0 ? [`${row.files}f`] : []),
    ...(row.commits > 0 ? [`${row.commits}c`] : []),
  ].join(" ")
}

function nativeId(row: Row): string {
  return row.id.slice(row.id.indexOf(":") + 1)
}
