import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, markedTitle, projectName } from "../../render/words.ts"
import type { notes } from "../../tools/note/note.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { dateIn, factsWithRef } from "./words.ts"

type Output = OutputOf<typeof notes>
type ShownNote = Output["notes"][number]

export function printNote(output: Output, { terminal }: PrintContext, input: { all?: boolean }): PrintedOutput {
  const { done, notes, total, conversation } = output
  if (conversation) return { lines: [clip(safeLine(markedTitle(conversation)), terminal.columns)], notes: [] }
  if (notes.length === 0)
    return {
      lines: [],
      notes: [
        input.all
          ? 'There are no notes yet. To add one: dex note "…"'
          : 'There are no notes in this project. To add one: dex note "…". `dex note --all` lists the notes of every project.',
      ],
    }
  const moreHint = notes.length < total ? ` The newest ${notes.length} are shown; --limit shows more.` : ""
  return {
    lines: notes.flatMap((note, i) => [...linesOf(note, i + 1, terminal), ""]),
    notes: [done === "listed" ? `${many(total, "note")}.${moreHint}` : OUTCOME_TEXTS[done](notes[0]!)],
    listing: notes.map(({ ref }) => ref),
  }
}

const OUTCOME_TEXTS = {
  kept: ({ ref, confirmed }: ShownNote) =>
    confirmed
      ? `Saved. To delete it: dex forget ${safeLine(ref)}`
      : `Saved as an agent's note. ${unconfirmedNote(ref)}`,
  corrected: ({ ref, confirmed }: ShownNote) =>
    confirmed ? "Corrected." : `Corrected, as an agent's note. ${unconfirmedNote(ref)}`,
  confirmed: () => "Confirmed: it may be suggested to agents from now on.",
  marked: () => "",
} as const

function unconfirmedNote(ref: string): string {
  return `dex suggests it only after a person has confirmed it: dex note confirm ${safeLine(ref)}`
}

function linesOf(note: ShownNote, row: number, terminal: Terminal): string[] {
  const room = terminal.columns - 4
  const author =
    note.by === "person" ? "you" : `${safeLine(note.by)}, ${note.confirmed ? "confirmed" : "not confirmed"}`
  const lines = note.text.split("\n").map((line) => clip(safeLine(line), room))
  const details = [
    ...(note.files.length > 0 ? [note.files.map(safeLine).join(", ")] : []),
    ...(note.rejects === undefined ? [] : [`rejects ${safeLine(note.rejects)}`]),
  ]
  const refLines = factsWithRef(
    [`by ${author} ${dateIn(terminal, note.date)}`, projectName(safeLine(note.project))],
    safeLine(note.ref),
    room,
  )
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", lines[0] ?? "")}`,
    ...lines.slice(1).map((line) => `    ${line}`),
    ...[...refLines, ...details.map((line) => clip(line, room))].map((line) => `    ${paint(terminal, "dim", line)}`),
  ]
}
