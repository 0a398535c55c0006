import { byName } from "../../core/by-name.ts"
import { grouped } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import type { Trace, TraceRow } from "../../core/trace.ts"
import { clip, padEnd, paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import { many, seconds, shortPath, when } from "../../render/words.ts"
import type { Replay } from "../../tools/trace/replay.ts"
import type { trace } from "../../tools/trace/trace.ts"
import type { traces } from "../../tools/traces/traces.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { scoreSumLine } from "./words.ts"

type TracesOutput = OutputOf<typeof traces>
type Line = TracesOutput["traces"][number]

/** The number of characters of a trace's id that are shown. They are enough to identify the trace in a command. */
const SHORT_ID_CHARS = 10

export function printTraces(output: TracesOutput, { terminal }: PrintContext): PrintedOutput {
  const notes: string[] = []
  if (output.traces.length === 0)
    notes.push("There are no traces yet. Every search, show and reindex leaves one, unless the setting traces is off.")
  else
    notes.push(
      `The last ${many(output.traces.length, "trace")}, newest last. See one: dex trace ${output.traces.at(-1)!.trace_id.slice(0, SHORT_ID_CHARS)}`,
    )
  if (output.hidden_private > 0)
    notes.push(
      `${grouped(output.hidden_private)} of the latest traces were made in private projects and are not shown.`,
    )
  if (output.unreadable > 0) notes.push(`${many(output.unreadable, "line")} could not be read.`)
  return { lines: output.traces.map((line) => lineFor(line, terminal)), notes }
}

function lineFor(line: Line, terminal: Terminal): string {
  const isWide = terminal.columns >= 100
  const id = isWide ? line.trace_id : line.trace_id.slice(0, SHORT_ID_CHARS)
  const time = isWide ? when(line.ts) : when(line.ts).slice(5)
  const rightText = `${padStart(countOf(line), 9)}${padStart(seconds(line.duration_ms), 8)}`
  const room = terminal.columns - id.length - time.length - 8 - rightText.length - 8
  const aboutText =
    line.error === undefined ? safeLine(line.about) : `${safeLine(line.about)} (${safeLine(line.error)})`
  return `${paint(terminal, "cyan", id)}  ${time}  ${padEnd(line.command, 8)}  ${padEnd(clip(aboutText, room), room)}${paint(terminal, line.error === undefined ? "dim" : "red", rightText)}`
}

function countOf(line: Line): string {
  if (line.error !== undefined) return "error"
  if (line.command === "search" || line.command === "suggest") return many(line.hits, "hit")
  if (line.command === "ask") return many(line.hits, "source")
  return line.messages === undefined ? "" : `${grouped(line.messages)} msg`
}

type TraceOutput = OutputOf<typeof trace>

export function printTrace(output: TraceOutput, context: PrintContext): PrintedOutput {
  const { trace, replay } = output
  const lines = [...headLines(trace, context), ""]
  if (replay) lines.push(...replayLines(trace, replay, context.terminal))
  else {
    lines.push(...explainRows(trace.ranking, context.terminal))
    lines.push(...explainSkipped(trace, context.terminal))
  }
  const notes = [...output.notes]
  if (!output.adds_up)
    notes.push("The parts of a score do not add up to the score. This is a bug in dex. Please report it.")
  const canReplay = trace.command !== "ask" && trace.command !== "suggest"
  if (!replay && canReplay && trace.error === undefined && trace.ranking.length > 0)
    notes.push(`Run it again and see what changed: dex trace ${trace.trace_id.slice(0, SHORT_ID_CHARS)} --replay`)
  return { lines, notes }
}

function headLines(trace: Trace, { terminal, home }: PrintContext): string[] {
  const { inputs } = trace
  const query = trace.query === undefined ? "" : ` "${safeLine(trace.query)}"`
  const facts = [
    when(trace.ts),
    seconds(trace.duration_ms),
    ...(trace.mode === undefined ? [] : [`by ${safeLine(trace.mode)}`]),
    ...(inputs.index_is_current === false ? ["the index was behind"] : []),
    ...(inputs.candidates === undefined ? [] : [many(inputs.candidates, "candidate")]),
    ...(inputs.conversations === undefined ? [] : [many(inputs.conversations, "conversation")]),
    ...(inputs.messages === undefined ? [] : [many(inputs.messages, "message")]),
    `run in ${shortPath(safeLine(trace.project), home)}`,
    `history ${safeLine(shortRevision(trace.state_revision))}`,
  ]
  const options = [...Object.entries(trace.args), ...Object.entries(trace.budgets)].map(nameAndValue)
  const truncations = Object.entries(trace.truncation ?? {}).map(nameAndValue)
  const dim = (text: string) => wrap(text, terminal.columns).map((line) => paint(terminal, "dim", line))
  return [
    paint(terminal, "bold", clip(`${trace.trace_id}  ${trace.command}${query}`, terminal.columns)),
    ...dim(facts.join(" · ")),
    ...(options.length > 0 ? dim(`with ${[...new Set(options)].join(" · ")}`) : []),
    ...(truncations.length > 0 ? dim(`cut: ${truncations.join(" · ")}`) : []),
    ...(trace.error
      ? wrap(`${safeLine(trace.error.code)}: ${safeLine(trace.error.message)}`, terminal.columns).map((line) =>
          paint(terminal, "red", line),
        )
      : []),
  ]
}

function nameAndValue([name, value]: [string, unknown]): string {
  const text = Array.isArray(value) ? value.join(", ") : typeof value === "string" ? value : JSON.stringify(value)
  return `${name} ${safeLine(text)}`
}

/** The rows of an answer, each with its score as a sum. */
function explainRows(rows: TraceRow[], terminal: Terminal): string[] {
  const indent = "     "
  return rows.flatMap((row) => {
    const source = row.rank_source === undefined ? "" : ` (${safeLine(row.rank_source)})`
    const lines = [
      `${paint(terminal, "cyan", padStart(String(row.rank), 3))}  ${clip(safeLine(row.ref) + source, terminal.columns - 5)}`,
    ]
    if (row.summary !== "") lines.push(indent + clip(safeLine(row.summary), terminal.columns - 5))
    if (row.terms.length > 0)
      lines.push(...wrap(scoreSumLine(row), terminal.columns - 5).map((line) => indent + paint(terminal, "dim", line)))
    return lines
  })
}

const REASONS: Record<string, string> = {
  filter: "excluded by a filter",
  floor: "too weak",
  duplicate: "the same text as another candidate",
  folded: "in the row of the same conversation",
  budget: "no room left",
  not_top_k: "others ranked higher",
}

/** The candidates that are not in the answer, grouped by reason. */
function explainSkipped(trace: Pick<Trace, "skipped" | "skipped_total">, terminal: Terminal): string[] {
  if (trace.skipped_total === 0) return []
  const shownNote = trace.skipped.length < trace.skipped_total ? `, ${grouped(trace.skipped.length)} of them here` : ""
  const lines = [
    "",
    paint(terminal, "bold", `Not in the answer: ${many(trace.skipped_total, "candidate")}${shownNote}`),
  ]
  for (const reason of [...new Set(trace.skipped.map((row) => row.skipped_reason))]) {
    const rows = trace.skipped.filter((row) => row.skipped_reason === reason)
    lines.push(`  ${paint(terminal, "yellow", reason)}  ${byName(REASONS, reason) ?? ""}`.trimEnd())
    for (const row of rows) {
      const score = row.score === undefined ? "" : row.score.toPrecision(4)
      lines.push(`    ${padEnd(score, 9)} ${clip(safeLine(row.ref), terminal.columns - 14)}`)
    }
  }
  return lines
}

function replayLines(trace: Trace, replay: Replay, terminal: Terminal): string[] {
  const oldRevision = shortRevision(trace.state_revision)
  const newRevision = shortRevision(replay.state_revision)
  const history =
    oldRevision === newRevision ? "from the same history" : `from history ${newRevision}, not ${oldRevision}`
  const verdict = `Run again: ${replay.same ? "the same rows" : "other rows"}`
  const lines = [
    ...wrap(
      `${paint(terminal, "bold", verdict)} ${history}, in ${seconds(replay.duration_ms)} (${seconds(trace.duration_ms)} then).`,
      terminal.columns,
    ),
    ...replay.counts.map(({ name, before, now }) => `${name}: ${grouped(before)} then, ${grouped(now)} now`),
  ]
  if (replay.error) lines.push(paint(terminal, "red", safeLine(`${replay.error.code}: ${replay.error.message}`)))
  const titles = new Map(trace.ranking.map((row) => [row.ref, row.summary]))
  const changeLines = (mark: string, ranks: string, scores: string, ref: string, details = "") => [
    `${padEnd(mark, 6)}${padEnd(ranks, 11)}${clip(safeLine(ref), terminal.columns - 17)}`,
    ...[clip(safeLine(titles.get(ref) ?? ""), terminal.columns - 17), scores, details]
      .filter((text) => text !== "")
      .map((text) => " ".repeat(17) + paint(terminal, "dim", text)),
  ]
  for (const { ref, rank, score_final } of replay.came)
    lines.push(...changeLines("came", `at ${rank}`, scoreText(score_final), ref))
  for (const { ref, rank, score_final, skipped_reason } of replay.went)
    lines.push(
      ...changeLines(
        "went",
        `from ${rank}`,
        scoreText(score_final),
        ref,
        skipped_reason && byName(REASONS, skipped_reason),
      ),
    )
  for (const movedRow of replay.moved) {
    const terms = movedRow.terms.map(
      ({ name, change }) => `${safeLine(name)} ${change < 0 ? "−" : "+"}${digits(Math.abs(change))}`,
    )
    const ranks =
      movedRow.rank_before === movedRow.rank_now
        ? `at ${movedRow.rank_now}`
        : `${movedRow.rank_before} → ${movedRow.rank_now}`
    const scores =
      movedRow.score_before === movedRow.score_now
        ? scoreText(movedRow.score_now)
        : `score ${digits(movedRow.score_before)} → ${digits(movedRow.score_now)}`
    lines.push(
      ...changeLines(
        movedRow.rank_before === movedRow.rank_now ? "score" : "moved",
        ranks,
        scores,
        movedRow.ref,
        terms.join(", "),
      ),
    )
  }
  if (replay.unchanged > 0) lines.push(`${many(replay.unchanged, "row")} unchanged.`)
  return lines
}

function scoreText(score: number): string {
  return score === 0 ? "" : `score ${digits(score)}`
}

function digits(value: number): string {
  return String(Number(value.toPrecision(5)))
}

/**
 * The revision with a shortened history id, because that id means nothing to a person. The number of the last change stays
 * complete.
 */
function shortRevision(revision: string): string {
  const [id = "", change] = revision.split("@")
  return change === undefined ? "unknown" : `${id.slice(0, 4)}@${change}`
}

function padStart(text: string, columns: number): string {
  return text.padStart(columns)
}
