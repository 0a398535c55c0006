import { formatCount } from "../../core/format.ts"
import { hitRef } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import type { search } from "../../tools/search/search.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { sumLine } from "./sum.ts"
import { many, projectName, showFirst, when } from "./words.ts"

type Output = OutputOf<typeof search>
type Hit = Output["results"][number]

const NOTHING = "Nothing found. Try fewer or other words, or `dex list` to browse."

export function printSearch(output: Output, { terminal, numbered }: PrintContext): Printed {
  const notes = [...output.notes, ...(output.degraded ?? [])]
  if (output.results.length === 0)
    return { lines: [], notes: [output.notes.length > 0 ? "Nothing found." : NOTHING, ...notes] }
  const lines: string[] = []
  for (const [i, hit] of output.results.entries()) lines.push(...hitLines(hit, i + 1, terminal), "")
  const listing = output.results.map(hitRef)
  const read = `Read one: ${showFirst(listing, { numbered })}`
  if (output.mode === "list") {
    notes.unshift(`${output.results.length} of ${many(output.total, "conversation")}, newest first. ${read}`)
    return { lines, notes, listing }
  }
  const { row, match: unit } = nounsFor(output.results)
  const total = `${output.total_is_at_least ? "more than " : ""}${many(output.total, unit)}`
  const match = output.total === 1 ? "matches" : "match"
  const near = output.results.filter((hit) => hit.rank_source === "vector").length
  const byMeaning = near > 0 ? `, ${near} found by meaning alone` : ""
  notes.unshift(`${many(output.results.length, row)} shown${byMeaning}; ${total} ${match}. ${read}`)
  return { lines, notes, listing }
}

function nounsFor(hits: Hit[]): { row: string; match: string } {
  const documents = hits.filter((hit) => hit.kind === "document").length
  if (documents === 0) return { row: "conversation", match: "message" }
  return documents === hits.length ? { row: "document", match: "section" } : { row: "result", match: "passage" }
}

function hitLines(hit: Hit, row: number, terminal: Terminal): string[] {
  const indent = "    "
  const kind = `${["person", "document"].includes(hit.kind) ? "" : ` (${hit.kind})`}${hit.superseded ? " (superseded)" : ""}`
  const where = `${hit.source} · ${projectName(safeLine(hit.project))} · ${when(hit.date)}${kind}`
  const size = `${many(hit.message_count, hit.kind === "document" ? "section" : "message")}, ${formatCount(hit.estimated_tokens)} tokens${hit.more_matches > 0 ? `, +${hit.more_matches} more` : ""}`
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(hit.title), terminal.columns - 4))}`,
    indent + clip(where, terminal.columns - 4),
    ...(hit.snippet === "" ? [] : wrap(safeLine(hit.snippet), terminal.columns - 4)).map((line) => indent + line),
    ...(hit.score_parts
      ? wrap(sumLine({ score_final: hit.score_final, terms: hit.score_parts }), terminal.columns - 4)
      : []
    ).map((line) => indent + paint(terminal, "dim", line)),
    indent + paint(terminal, "dim", clip(`${safeLine(hitRef(hit))} · ${size}`, terminal.columns - 4)),
  ].map((line) => highlight(line, terminal))
}

/** `**word**` as the snippet marks it; without colour the stars stay, so that a pipe shows the match too. */
function highlight(line: string, terminal: Terminal): string {
  return terminal.color ? line.replace(/\*\*([^*]+)\*\*/g, (_, word: string) => paint(terminal, "yellow", word)) : line
}
