import { formatCount } from "../../core/format.ts"
import { hitRef, ownerIn } from "../../core/ref.ts"
import type { OutputOf } from "../../core/tool.ts"
import {
  clip,
  endThatFits,
  paint,
  type Style,
  safe,
  safeLine,
  type Terminal,
  widthOf,
  wrap,
} from "../../render/terminal.ts"
import { many, markedTitle, projectName, projectNames, shortDate, when } from "../../render/words.ts"
import { isOneTerm, parseQuery } from "../../search/query.ts"
import { clipSnippet, MATCH_MARK } from "../../store/index/snippets.ts"
import { laterChangeLines } from "../../tools/changed-later.ts"
import { describeMatches, nounForRows, sizeOfRow } from "../../tools/kinds.ts"
import type { search } from "../../tools/search/search.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { scoreSumLine, showFirst, titleColumns } from "./words.ts"

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
  const { pack } = output
  if (pack && pack.passages.length > 0)
    return {
      lines: pack.text.split("\n"),
      notes: [`${many(pack.passages.length, "passage")}, about ${pack.estimated_tokens} tokens.`, ...notes],
      listing: pack.passages.map(({ ref }) => ref),
    }
  if (output.mode === "pattern" && output.results.length === 0 && output.total > 0)
    return { lines: [patternCountText(output)], notes, listing: [] }
  if (output.results.length === 0)
    // The listing is empty, so that a row number does not open a row of the previous listing.
    return { lines: [], notes: [output.notes.length > 0 ? "Nothing found." : NOTHING_FOUND, ...notes], listing: [] }
  const nameOf = projectNames(output.results.map(({ project }) => safeLine(project)))
  const drawnResults = output.results.map((hit, i) => [
    ...(terminal.interactive
      ? screenLines(hit, i + 1, terminal, originOf(hit, nameOf, now))
      : hitLines(hit, i + 1, terminal)),
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
  if (output.mode === "pattern") {
    const countText = output.total_is_at_least ? "" : ` Found: ${patternCountText(output)}.`
    notes.unshift(`${many(results.length, noun)} shown, newest first.${countText} ${readHint}`)
    return { lines, notes, listing, words: markedWords(results) }
  }
  const vectorHits = results.filter((hit) => hit.rank_source === "vector").length
  const byMeaning = vectorHits > 0 ? `, ${vectorHits} found by meaning alone` : ""
  const isCounted = isOneTerm(parseQuery(input.query ?? "")) && vectorHits === 0
  notes.unshift(
    `${(isCounted && matchCountText(output, results.length, noun)) || `${many(results.length, noun)} shown`}${byMeaning}. ${readHint}`,
  )
  return { lines, notes, listing, words: markedWords(results) }
}

function patternCountText({ total, total_is_at_least, conversations = 0 }: Output): string {
  return `${total_is_at_least ? "at least " : ""}${many(total, "message")} in ${many(conversations, "conversation")}`
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

/** Says how many of all matches are shown; undefined if not all were counted. */
function matchCountText({ kinds, total, total_is_at_least }: Output, shown: number, noun: string): string | undefined {
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
function screenLines(hit: Hit, number: number, terminal: Terminal, origin: string[]): string[] {
  const isNarrow = terminal.columns < NARROW_COLUMNS
  const facts = clip(
    origin.join(" · "),
    terminal.columns - INDENT.length - (isNarrow ? 0 : titleColumns(terminal.columns) + 2),
  )
  const room = terminal.columns - INDENT.length - (isNarrow ? 0 : widthOf(facts) + 2)
  const title = clip(safeLine(markedTitle(hit)), room)
  const head = `${paint(terminal, "cyan", String(number).padStart(2))}  ${paint(terminal, "bold", title)}`
  const gap = " ".repeat(room - widthOf(title) + 2)
  const dim = (text: string) => paint(terminal, "dim", text)
  return [
    ...(isNarrow ? [head, INDENT + dim(facts)] : [head + gap + dim(facts)]),
    ...(hit.lines ?? (hit.snippet === "" ? [] : [hit.snippet])).map(
      (line) => INDENT + snippetLine(line, terminal.columns - INDENT.length, terminal),
    ),
    ...laterChangeLines(hit).map((line) => INDENT + dim(clip(safeLine(line), terminal.columns - INDENT.length))),
    ...sumLines(hit, terminal),
  ]
}

function originOf(hit: Hit, nameOf: (project: string) => string, now: number): string[] {
  return [...ownerPrefix(hit), shortDate(hit.date, now), hit.source, nameOf(safeLine(hit.project)), ...marksOf(hit)]
}

/** The owner of a conversation in a team's results, as a fact to show first. Empty in other results. */
function ownerPrefix({ id }: Hit): string[] {
  const owner = ownerIn(id)
  return owner === undefined ? [] : [safeLine(owner)]
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
    `${paint(terminal, "cyan", String(row).padStart(2))}  ${paint(terminal, "bold", clip(safeLine(markedTitle(hit)), terminal.columns - 4))}`,
    INDENT + clip(origin, terminal.columns - 4),
    ...(hit.lines?.map((line) => INDENT + safe(line)) ??
      (hit.snippet === "" ? [] : wrap(safeLine(hit.snippet), terminal.columns - 4).map((line) => INDENT + line))),
    ...laterChangeLines(hit).map((line) => INDENT + clip(safeLine(line), terminal.columns - 4)),
    ...sumLines(hit, terminal),
    INDENT + paint(terminal, "dim", clip(`${safeLine(hitRef(hit))} · ${size}`, terminal.columns - 4)),
  ].map((line) => highlight(line, terminal))
}

function markedWords(hits: Hit[]): string[] {
  const words = hits.flatMap(({ snippet }) => [...snippet.matchAll(HIGHLIGHTED)].map(([, word]) => word!.toLowerCase()))
  return [...new Set(words)]
}

const HIGHLIGHTED = /\*\*([^*]+)\*\*/g

/** Colours the words that a snippet marks as `**word**`. Without colour the asterisks stay, so that the match is still marked. */
function highlight(line: string, terminal: Terminal): string {
  return terminal.color ? line.replace(HIGHLIGHTED, (_, word: string) => paint(terminal, "yellow", word)) : line
}

const MAX_LEAD_WORDS = 4

/**
 * As much of a snippet as fits on a line, from word to word, around the first match. Matches are coloured; without colour, they
 * are between asterisks. Lists of matches show snippets only through this function.
 */
export function snippetLine(snippet: string, columns: number, look: Pick<Terminal, "color">, style?: Style): string {
  const visibleWidth = (text: string) => widthOf(look.color ? text.replaceAll(MATCH_MARK, "") : text)
  const plain = safeLine(snippet)
  // A text without spaces is a single word, so what is before the match is cut inside it.
  const wordBefore = /^[^*]*/.exec(plain)![0].split(" ").at(-1)!
  const start = widthOf(wordBefore) > columns / 2 ? `…${endThatFits(wordBefore, columns / 3)}` : undefined
  const shownText = start === undefined ? plain : start + plain.slice(plain.indexOf(MATCH_MARK))
  const line = clipSnippet(shownText, columns, visibleWidth, MAX_LEAD_WORDS)
  let room = columns
  return line
    .split(MATCH_MARK)
    .map((piece, i) => {
      const mark = i % 2 === 1 && !look.color ? MATCH_MARK : ""
      const shown = clip(piece, room - 2 * mark.length)
      if (room <= 2 * mark.length || piece === "") return ""
      room -= widthOf(shown) + 2 * mark.length
      return i % 2 === 0 ? (style ? paint(look, style, shown) : shown) : `${mark}${paint(look, "yellow", shown)}${mark}`
    })
    .join("")
}
