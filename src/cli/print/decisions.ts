import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, projectName } from "../../render/words.ts"
import { laterChangeLines } from "../../tools/changed-later.ts"
import type { decisions } from "../../tools/decisions/decisions.ts"
import { commandLine } from "../../tools/view.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { dateIn, factsWithRef, showFirst } from "./words.ts"

type Output = OutputOf<typeof decisions>
type ShownDecision = Output["decisions"][number]

const MAX_QUOTE_LINES = 4

export function printDecisions(
  output: Output,
  { terminal, numbered }: PrintContext,
  input: { all?: boolean; words?: string[]; file?: string; symbol?: string },
): PrintedOutput {
  if (output.decisions.length === 0 && output.total > 0)
    return { lines: [], notes: [`There are only ${many(output.total, "decision")}.`, ...output.notes] }
  if (output.decisions.length === 0) {
    const emptyNote = input.all
      ? "No decisions found in any project. `dex search` finds what was said."
      : `No decisions found in this project. \`${allProjectsCommand(input)}\` shows the decisions of every project.`
    return { lines: [], notes: [emptyNote, ...output.notes] }
  }
  const listing = output.decisions.map(({ ref }) => ref)
  return {
    lines: output.decisions.flatMap((decision, i) => [...linesOf(decision, i + 1, terminal), ""]),
    notes: [
      `${many(output.total, "decision")}. Read where it was made: ${showFirst(listing, { numbered })}`,
      ...output.notes,
    ],
    listing,
  }
}

function allProjectsCommand({
  words = [],
  file,
  symbol,
}: {
  words?: string[]
  file?: string
  symbol?: string
}): string {
  return `${commandLine("decisions", words, { file, symbol })} --all`
}

const KIND_LABELS: Record<string, string> = {
  said: "said",
  answer: "answered",
  plan: "approved plan",
  adr: "decision record",
  breaking: "breaking change",
  revert: "revert",
  note: "note",
}

function linesOf(decision: ShownDecision, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  const successor = decision.superseded_by
  const [first = "", ...rest] = decision.quote.split("\n").slice(0, MAX_QUOTE_LINES).map(safeLine)
  const moreFiles = decision.files_left_out ? ` and ${many(decision.files_left_out, "more file")}` : ""
  const files = decision.files.length > 0 ? `${decision.files.map(safeLine).join(", ")}${moreFiles}` : ""
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, successor ? "dim" : "bold", clip(first, room))}`,
    ...[
      ...rest.map((line) => clip(line, room)),
      ...(successor
        ? [
            clip(
              `superseded ${dateIn(terminal, successor.date)}: ${safeLine(successor.quote.split("\n")[0] ?? "")}`,
              room,
            ),
            paint(terminal, "dim", safeLine(successor.ref)),
          ]
        : laterChangeLines(decision).map((line) => clip(safeLine(line), room))),
      ...[
        ...factsWithRef(
          [
            `${KIND_LABELS[decision.kind] ?? safeLine(decision.kind)} ${dateIn(terminal, decision.date)}`,
            projectName(safeLine(decision.project)),
          ],
          safeLine(decision.ref),
          room,
        ),
        ...(files === "" ? [] : [clip(files, room)]),
      ].map((line) => paint(terminal, "dim", line)),
    ].map((line) => `    ${line}`),
  ]
}
