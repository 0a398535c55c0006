import { formatCount } from "../../core/format.ts"
import { ownerIn } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safeLine, widthOf } from "../../render/terminal.ts"
import { many, markedTitle, projectNames } from "../../render/words.ts"
import { describeConversations, describeOtherKinds, nounForRows } from "../../tools/kinds.ts"
import type { list } from "../../tools/list/list.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { dateIn, showFirst, titleColumns } from "./words.ts"

type Output = OutputOf<typeof list>
type Row = Output["conversations"][number]

export function printList(
  output: Output,
  { terminal, numbered }: PrintContext,
  _input?: unknown,
  now = Date.now(),
): PrintedOutput {
  const notes: string[] = []
  const listing = output.conversations.map((row) => row.id)
  const leftOut = describeOtherKinds(output.left_out)
  if (output.conversations.length === 0) notes.push(output.note ?? "No conversations here.")
  else
    notes.push(
      `${output.conversations.length} of ${output.kinds ? describeConversations(output.kinds) : many(output.total, nounForRows(output.conversations))}. Read one: ${showFirst(listing, { numbered })}${output.next_offset === undefined || output.continue_with !== undefined ? "" : `. More: --offset ${output.next_offset}`}`,
    )
  const columns = columnsOf(output.conversations, { terminal, numbered, now })
  if (output.conversations.some((row) => workOf(row) !== "" && columns.right(row).includes(workOf(row))))
    notes.push("+ and - are lines changed, f files edited, c commits made.")
  if (output.conversations.some((row) => row.superseded))
    notes.push("superseded: no longer in the agent's file; dex has a copy.")
  if (output.continue_with !== undefined)
    notes.push(`Cut to stay within the budget. Continue with: ${output.continue_with}`)
  if (leftOut !== "") notes.push(`Not shown: ${leftOut}; show with --all`)
  const lines = output.conversations.map((row, i) => rowLine(row, i + 1, columns, terminal))
  return { lines, notes, listing }
}

/** The number of a row, and the spaces after it. */
const NUMBER_COLUMNS = 5
const MAX_PROJECT_COLUMNS = 20

/** `right` is the aligned text after the title. */
type Columns = { date: (row: Row) => string; right: (row: Row) => string; titleWidth: number }

/**
 * A column is shown only if the rows differ in it, and if the titles do not need its room; the first ones are the most useful.
 * Programs that read a pipe get all columns, and the id, which a person does not need to name a row.
 */
function columnsOf(
  rows: Row[],
  { terminal, numbered, now }: { terminal: PrintContext["terminal"]; numbered: boolean; now: number },
): Columns {
  const widest = (textOf: (row: Row) => string) => Math.max(0, ...rows.map((row) => widthOf(textOf(row))))
  const hasDifferentValues = (textOf: (row: Row) => string) => new Set(rows.map(textOf)).size > 1
  const nameOf = projectNames(rows.map(({ project }) => safeLine(project)))
  const project = (row: Row) => clip(nameOf(safeLine(row.project)), MAX_PROJECT_COLUMNS)
  const ids = rows.map(nativeId)
  const length = [8, 12, 16, 24].find((n) => new Set(ids.map((id) => id.slice(0, n))).size === ids.length) ?? 36
  const facts = [
    ownerOf,
    ...(terminal.interactive && numbered ? [] : [(row: Row) => nativeId(row).slice(0, length)]),
    ...[project, (row: Row) => row.source].filter(hasDifferentValues),
    workOf,
    sizeOf,
  ]
  const date = (row: Row) => dateIn(terminal, row.date, now)
  const dateWidth = widest(date)
  const longestTitle = widest((row) => safeLine(markedTitle(row)) + kindOf(row))
  const leastTitle = Math.min(longestTitle, titleColumns(terminal.columns))
  let room = terminal.columns - NUMBER_COLUMNS - dateWidth - 2
  const shownFacts = facts.flatMap((fact) => {
    const width = widest(fact)
    if (width === 0 || (terminal.interactive && room - width - 2 < leastTitle)) return []
    room -= width + 2
    return [(row: Row) => `  ${padEnd(fact(row), width)}`]
  })
  return {
    date: (row) => padEnd(date(row), dateWidth),
    right: (row) => shownFacts.map((fact) => fact(row)).join(""),
    titleWidth: Math.max(Math.min(longestTitle, room), terminal.interactive ? 0 : leastTitle),
  }
}

function rowLine(row: Row, number: number, columns: Columns, terminal: PrintContext["terminal"]): string {
  const kind = kindOf(row)
  // Shortens the title, but never the kind.
  const title = clip(safeLine(markedTitle(row)), columns.titleWidth - kind.length) + kind
  const head = `${paint(terminal, "cyan", String(number).padStart(3))}  ${columns.date(row)}  `
  return `${head}${padEnd(title, columns.titleWidth)}${paint(terminal, "dim", columns.right(row).trimEnd())}`.trimEnd()
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
