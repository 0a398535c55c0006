import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, projectName, when } from "../../render/words.ts"
import type { notes } from "../../tools/note/note.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { factsWithRef } from "./words.ts"

type Output = OutputOf<typeof notes>
type Shown = Output["notes"][number]

export function printNote(output: Output, { terminal }: PrintContext, input: { all?: boolean }): PrintedOutput {
  const { done, notes, total } = output
  if (notes.length === 0)
    return {
      lines: [],
      notes: [
        input.all
          ? 'There are no notes yet. To add one: dex note "…"'
          : 'There are no notes in this project. To add one: dex note "…". `dex note --all` lists those of every project.',
      ],
    }
  const more = notes.length < total ? ` The newest ${notes.length} are shown; --limit shows more.` : ""
  return {
    lines: notes.flatMap((one, i) => [...linesOf(one, i + 1, terminal), ""]),
    notes: [done === "listed" ? `${many(total, "note")}.${more}` : OUTCOMES[done](notes[0]!)],
    listing: notes.map(({ ref }) => ref),
  }
}

const OUTCOMES = {
  kept: ({ ref, confirmed }: Shown) =>
    confirmed ? `Saved. To delete it: dex forget ${safeLine(ref)}` : `Saved as an agent's note. ${notYet(ref)}`,
  corrected: ({ ref, confirmed }: Shown) =>
    confirmed ? "Corrected." : `Corrected, as an agent's note. ${notYet(ref)}`,
  confirmed: () => "Confirmed: it may be suggested to agents from now on.",
} as const

function notYet(ref: string): string {
  return `dex suggests it only after a person has confirmed it: dex note confirm ${safeLine(ref)}`
}

function linesOf(one: Shown, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  const by = one.by === "person" ? "you" : `${safeLine(one.by)}, ${one.confirmed ? "confirmed" : "not confirmed"}`
  const lines = one.text.split("\n").map((line) => clip(safeLine(line), room))
  const about = [
    ...(one.files.length > 0 ? [one.files.map(safeLine).join(", ")] : []),
    ...(one.rejects === undefined ? [] : [`rejects ${safeLine(one.rejects)}`]),
  ]
  const where = factsWithRef(
    [`by ${by} ${when(one.date)}`, projectName(safeLine(one.project))],
    safeLine(one.ref),
    room,
  )
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", lines[0] ?? "")}`,
    ...lines.slice(1).map((line) => `    ${line}`),
    ...[...where, ...about.map((line) => clip(line, room))].map((line) => `    ${paint(terminal, "dim", line)}`),
  ]
}
