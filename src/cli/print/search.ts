import { formatCount } from "../../core/format.ts"
import { hitRef, ownerIn } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal, widthOf, wrap } from "../../render/terminal.ts"
import { age, many, projectName, when } from "../../render/words.ts"
import { isOneTerm, parseQuery } from "../../search/query.ts"
import { clipSnippet } from "../../store/index/snippets.ts"
import { describeMatches, nounForRows, sizeOfRow } from "../../tools/kinds.ts"
import type { search } from "../../tools/search/search.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { scoreSumLine, showFirst } from "./words.ts"

type Output = OutputOf<typeof search>
type Hit = Output["results"][number]

const NOTHING_FOUND = "Nothing found. Try fewer or other words, or `dex list` to browse."

export function printSearch(
  output: Output,
  { terminal, numbered, rows }: PrintContext,
  input: { query?: string; by?: string } = {},
  now = Date.now(),
): PrintedOutput {
  const notes = [...output.notes, ...(output.degraded ?? [])]
  if (output.results.length === 0)
    // The listing is empty, so that a row number does not open a row of the previous listing.
    return { lines: [], notes: [output.notes.length > 0 ? "Nothing found." : NOTHING_FOUND, ...notes], listing: [] }
  const drawnResults = output.results.map((hit, i) => [
    ...(terminal.interactive ? screenLines(hit, i + 1, terminal, now) : hitLines(hit, i + 1, terminal)),
    "",
  ])
  const shownCount =
    terminal.interactive && rows !== undefined
      ? countThatFits(drawnResults, rows - notes.length - LINES_BELOW)
      : drawnResults.length
  const lines = drawnResults.slice(0, shownCount).flat()
  const results = output.results.slice(0, shownCount)
  const listing = results.map(hitRef)
  const moreHint = shownCount < drawnResults.length ? `. More: --limit ${drawnResults.length}` : ""
  const readHint = `Read one: ${showFirst(listing, { numbered })}${moreHint}`
  if (output.mode === "list") {
    notes.unshift(`${results.length} of ${many(output.total, "conversation")}, newest first. ${readHint}`)
    return { lines, notes, listing }
  }
  const noun = nounFor(results, input.by === "message")
  const vectorHits = results.filter((hit) => hit.rank_source === "vector").length
  const byMeaning = vectorHits > 0 ? `, ${vectorHits} found by meaning alone` : ""
  const isCounted = isOneTerm(parseQuery(input.query ?? "")) && vectorHits === 0
  notes.unshift(
    `${(isCounted && shownOfAll(output, results.length, noun)) || `${many(results.length, noun)} shown`}${byMeaning}. ${readHint}`,
  )
  return { lines, notes, listing, words: markedWords(results) }
}

/** The number of lines below the results: a blank line, the line with the count (which may be wrapped), and the prompt. */
const LINES_BELOW = 4
const MIN_RESULTS_SHOWN = 3

/** How many results fit on `room` lines, but at least MIN_RESULTS_SHOWN. */
function countThatFits(drawn: string[][], room: number): number {
  let freeLines = room
  let count = 0
  for (const lines of drawn) {
    freeLines -= lines.length
    if (freeLines < 0) break
    count++
  }
  return Math.max(count, Math.min(MIN_RESULTS_SHOWN, drawn.length))
}

/** How many of all matches are shown; undefined if not all were counted. */
function shownOfAll({ kinds, total, total_is_at_least }: Output, shown: number, noun: string): string | undefined {
  const counts = noun === "message" ? { message: total } : kinds
  return counts && describeMatches(counts, shown, noun, total_is_at_least)
}

function nounFor(hits: Hit[], byMessage: boolean): string {
  const noun = nounForRows(hits)
  return noun === "conversation" && byMessage ? "message" : noun
}

const INDENT = "    "
/** On a screen with fewer columns, age, agent and project get their own line. Otherwise the title would have only half a line. */
const NARROW_COLUMNS = 72

/** On a terminal: title, age, agent and project, and one line of the snippet. Ten results fit on a screen. */
function screenLines(hit: Hit, number: number, terminal: Terminal, now: number): string[] {
  const isNarrow = terminal.columns < NARROW_COLUMNS
  const facts = clip(
    [...ownerPrefix(hit), age(hit.date, now), hit.source, projectName(safeLine(hit.project)), ...marksOf(hit)].join(
      " · ",
    ),
    isNarrow ? terminal.columns - INDENT.length : Math.floor(terminal.columns / 2),
  )
  const room = terminal.columns - INDENT.length - (isNarrow ? 0 : widthOf(facts) + 2)
  const title = clip(safeLine(hit.title), room)
  const head = `${paint(terminal, "cyan", String(number).padStart(2))}  ${paint(terminal, "bold", title)}`
  const gap = " ".repeat(room - widthOf(title) + 2)
  const dim = (text: string) => paint(terminal, "dim", text)
  return [
    ...(isNarrow ? [head, INDENT + dim(facts)] : [head + gap + dim(facts)]),
    ...(hit.snippet === "" ? [] : [INDENT + highlight(oneLine(hit.snippet, terminal), terminal)]),
    ...sumLines(hit, terminal),
  ]
}

/** In a team's results, the owner comes first. */
function ownerPrefix({ id }: Hit): string[] {
  const owner = ownerIn(id)
  return owner === undefined ? [] : [safeLine(owner)]
}

/**
 * As much text around the first highlighted word as fits on a line. The asterisks around the word take no room if colour
 * replaces them.
 */
function oneLine(snippet: string, terminal: Terminal): string {
  const room = terminal.columns - INDENT.length
  const withoutMarks = (text: string) => text.replaceAll("**", "")
  const visibleWidth = (text: string) => widthOf(terminal.color ? withoutMarks(text) : text)
  const line = clipSnippet(safeLine(snippet), room, visibleWidth, 4)
  // If the line is still too wide, the text has no spaces or a very long word, and is cut.
  return visibleWidth(line) <= room ? line : clip(withoutMarks(line), room)
}

function marksOf(hit: Hit): string[] {
  return [...(["person", "document"].includes(hit.kind) ? [] : [hit.kind]), ...(hit.superseded ? ["superseded"] : [])]
}

function sumLines(hit: Hit, terminal: Terminal): string[] {
  if (!hit.score_parts) return []
  const sum = scoreSumLine({ score_final: hit.score_final, terms: hit.score_parts })
  return wrap(sum, terminal.columns - INDENT.length).map((line) => INDENT + paint(terminal, "dim", line))
}

/** The lines of a hit in a pipe, with the ref and the complete snippet. */
function hitLines(hit: Hit, row: number, terminal: Terminal): string[] {
  const kind = marksOf(hit)
    .map((mark) => ` (${mark})`)
    .join("")
  const origin = `${hit.source} · ${projectName(safeLine(hit.project))} · ${when(hit.date)}${kind}`
  const size = `${sizeOfRow(hit)}, ${formatCount(hit.estimated_tokens)} tokens${hit.more_matches > 0 ? `, +${hit.more_matches} more` : ""}`
  return [
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(hit.title), terminal.columns - 4))}`,
    INDENT + clip(origin, terminal.columns - 4),
    ...(hit.snippet === "" ? [] : wrap(safeLine(hit.snippet), terminal.columns - 4).map((line) => INDENT + line)),
    ...sumLines(hit, terminal),
    INDENT + paint(terminal, "dim", clip(`${safeLine(hitRef(hit))} · ${size}`, terminal.columns - 4)),
  ].map((line) => highlight(line, terminal))
}

function markedWords(hits: Hit[]): string[] {
  const words = hits.flatMap(({ snippet }) => [...snippet.matchAll(HIGHLIGHTED)].map(([, word]) => word!.toLowerCase()))
  return [...new Set(words)]
}

const HIGHLIGHTED = /\*\*([^*]+)\*\*/g

/** Colours the words that the snippet marks as `**word**`. Without colour the stars stay, so that a pipe shows the match too. */
function highlight(line: string, terminal: Terminal): string {
  return terminal.color ? line.replace(HIGHLIGHTED, (_, word: string) => paint(terminal, "yellow", word)) : line
}
