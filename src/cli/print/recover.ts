import type { OutputOf } from "../../core/tool.ts"
import { clip, safe, safeLine } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import type { recover } from "../../tools/recover/recover.ts"
import { dateIn, factsWithRef, type PrintContext, type PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof recover>

export function printRecover(output: Output, context: PrintContext): PrintedOutput {
  const notes = output.notes.map(safeLine)
  if (output.versions) return printVersions(output, output.versions, context)
  if (output.text !== undefined)
    return { lines: safe(output.text).replace(/\n$/, "").split("\n"), notes: [stateOf(output), ...notes] }
  if (output.exists !== undefined)
    return {
      lines: [],
      notes,
      problem: `${shortPath(safeLine(output.exists), context.home)} exists. Nothing was written. Add --yes to replace it, or name another file.`,
    }
  return { lines: [shortPath(safeLine(output.written ?? ""), context.home)], notes: [stateOf(output), ...notes] }
}

function stateOf({ level, lines = 0, missing_lines = 0, id, base, confirmed_by }: Output): string {
  const size = level === "complete" ? many(lines, "line") : `${many(lines - missing_lines, "line")} known`
  const facts = [
    `${level === "complete" ? "Complete" : "PARTIAL"}: ${size}, as of ${safeLine(id ?? "")}.`,
    ...(base === undefined ? [] : [`The lines that no message shows are those of commit ${base.slice(0, 12)}.`]),
    ...(confirmed_by === undefined ? [] : [`Commit ${confirmed_by.slice(0, 12)} has exactly this text.`]),
  ]
  return facts.join(" ")
}

function printVersions(
  { path, notes }: Output,
  versions: NonNullable<Output["versions"]>,
  { terminal, numbered }: PrintContext,
): PrintedOutput {
  const name = safeLine(path)
  if (versions.length === 0) return { lines: [], notes: [`No conversation changed ${name}.`, ...notes] }
  const first = numbered ? "1" : versions[0]!.id
  return {
    lines: versions.flatMap(({ id, date, what, title }, i) => {
      const number = numbered ? `${String(i + 1).padStart(3)}  ` : ""
      const [line = "", ...rest] = factsWithRef([dateIn(terminal, date), what], id, terminal.columns - number.length)
      return [
        `${number}${line}`,
        ...rest.map((one) => `     ${one}`),
        `     ${clip(safeLine(title), terminal.columns - 5)}`,
      ]
    }),
    notes: [...notes.map(safeLine), `To get it back as it was then: dex recover ${name} --at ${first}`],
    listing: numbered ? versions.map(({ id }) => id) : undefined,
  }
}
