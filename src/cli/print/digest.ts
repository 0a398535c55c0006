import type { ProjectFacts } from "../../answers/digest/facts.ts"
import { factsPage } from "../../answers/digest/page.ts"
import type { digest } from "../../answers/digest.ts"
import { markdownOf } from "../../answers/map/markdown.ts"
import type { MapOutput } from "../../answers/map.ts"
import { localDay } from "../../core/dates.ts"
import { formatCount, joinNames } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { clip, paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, shortPath } from "../../render/words.ts"
import { costText } from "./ask.ts"
import { type PrintContext, type PrintedOutput, showFirst } from "./words.ts"

type Output = OutputOf<typeof digest>

export function printDigest(output: Output, context: PrintContext, input: { all?: boolean }): PrintedOutput {
  const { projects, mapped, notes } = output
  const days = daysOf(output)
  if (projects.length === 0)
    return {
      lines: [],
      notes: [`No conversations in this period (${days}). \`dex sync\` reads what is new.`, ...notes],
    }
  if (mapped?.dry_run) return printMap(mapped, context)
  const report = mapped?.result
    ? [...markdownOf(`Digest: ${days}`, mapped.result, []).split("\n"), "# The facts", ""]
    : []
  const { lines, listing, left_out } = input.all ? allFacts(projects) : factsScreen(projects, context)
  return {
    lines: [...(mapped?.partial ? ["PARTIAL", ""] : []), ...report, headLine(days, projects), "", ...lines],
    notes: [
      ...(listing.length > 0 ? [`Read one: ${showFirst(listing, context)}`] : []),
      ...(left_out.length > 0 ? [`Not shown: ${joinNames(left_out)}. --all shows everything.`] : []),
      ...notes,
      ...(mapped ? [...mapped.notes, ...costLines(mapped)] : []),
    ],
    listing,
  }
}

function allFacts(projects: ProjectFacts[]): { lines: string[]; listing: string[]; left_out: string[] } {
  const listing = projects.flatMap(({ conversations }) => conversations.map(({ id }) => id))
  return { lines: factsPage(projects), listing, left_out: [] }
}

const PERIOD_PREFIXES: Record<string, string> = {
  today: "today, ",
  yesterday: "yesterday, ",
  week: "the last seven days, ",
}

function daysOf({ period, from, to }: Output): string {
  const [first, last] = [localDay(Date.parse(from)), localDay(Date.parse(to))]
  return `${PERIOD_PREFIXES[period] ?? ""}${first === last ? first : `${first} to ${last}`}`
}

function headLine(days: string, projects: ProjectFacts[]): string {
  const sum = (countOf: (facts: ProjectFacts) => number) => projects.reduce((total, facts) => total + countOf(facts), 0)
  const messages = sum(({ conversations }) =>
    conversations.reduce((total, conversation) => total + conversation.messages, 0),
  )
  const counts = [
    many(
      sum(({ conversations }) => conversations.length),
      "conversation",
    ),
    many(messages, "message"),
    many(
      sum(({ decisions_total }) => decisions_total),
      "decision",
    ),
    many(
      sum(({ commits }) => commits.length),
      "commit",
    ),
  ]
  return `${days.charAt(0).toUpperCase()}${days.slice(1)}: ${joinNames(counts)} in ${many(projects.length, "project")}`
}

/** The number of lines that, with the notes below them, fill about one screen. */
const SCREEN_LINES = 38
const MAX_PROJECTS = 3
const MAX_OTHER_PROJECTS = 5
const MAX_ROWS = 20
const LABEL_COLUMNS = 11
const DECIDED_LABEL = "Decided"

type Row = { text: string; ref: string }
type Screen = { lines: string[]; listing: string[]; left_out: string[] }

/** The facts on one screen: each project's newest decisions and commits, and its longest conversations. Rows are numbered. */
function factsScreen(
  projects: ProjectFacts[],
  { terminal, home, numbered }: { terminal: Terminal; home: string; numbered: boolean },
): Screen {
  const shownProjects = projects.slice(0, MAX_PROJECTS)
  const others = projects.slice(MAX_PROJECTS)
  const maxRows = rowsThatFit(shownProjects, Math.min(others.length, MAX_OTHER_PROJECTS + 1))
  const listing: string[] = []
  const lineOf = ({ text, ref }: Row, label: string) => {
    listing.push(ref)
    const row = paint(terminal, "cyan", String(listing.length).padStart(3))
    const refText = numbered ? "" : `  ${safeLine(ref)}`
    const room = terminal.columns - LABEL_COLUMNS - 6
    return `  ${label.padEnd(LABEL_COLUMNS)}${row} ${clip(safeLine(text), room)}${refText}`
  }
  const lines = shownProjects.flatMap((facts) => [
    paint(terminal, "bold", clip(projectHead(facts, home), terminal.columns)),
    ...sectionsOf(facts).flatMap(([label, rows]) =>
      rows.slice(0, maxRowsOf(label, maxRows)).map((row, i) => lineOf(row, i === 0 ? label : "")),
    ),
    ...filesLine(facts, terminal),
    "",
  ])
  return {
    lines: [...lines, ...otherLines(others, terminal, home)],
    listing,
    left_out: leftOutNotes(shownProjects, maxRows, others),
  }
}

/** How many rows of each kind fit on the screen, at least one. Decisions get twice as many. */
function rowsThatFit(shownProjects: ProjectFacts[], others: number): number {
  const linesWith = (maxRows: number) =>
    shownProjects
      .flatMap(sectionsOf)
      .reduce((sum, [label, rows]) => sum + Math.min(rows.length, maxRowsOf(label, maxRows)), 0)
  const fixedLines = others + shownProjects.reduce((sum, { files }) => sum + (files.length > 0 ? 3 : 2), 0)
  let maxRows = 1
  while (maxRows < MAX_ROWS && fixedLines + linesWith(maxRows + 1) <= SCREEN_LINES) maxRows++
  return maxRows
}

function maxRowsOf(label: string, maxRows: number): number {
  return label === DECIDED_LABEL ? 2 * maxRows : maxRows
}

function sectionsOf(facts: ProjectFacts): [label: string, rows: Row[]][] {
  return [
    [
      DECIDED_LABEL,
      facts.decisions.map(({ quote, ref, superseded_by }) => ({
        text: `${superseded_by ? "(superseded) " : ""}${quote.split("\n", 1)[0]}`,
        ref,
      })),
    ],
    ["Commits", facts.commits.map(({ subject, ref }) => ({ text: subject, ref })).reverse()],
    [
      "Worked on",
      [...facts.conversations]
        .sort((a, b) => b.messages - a.messages)
        .map(({ title, messages, id }) => ({ text: `${title} (${many(messages, "message")})`, ref: id })),
    ],
    [
      "Left open",
      facts.failed_commands.map(({ command, error, times, ref }) => ({
        text: `${command}${times > 1 ? `, ${times} times` : ""}${error ? `: ${error}` : ""}`,
        ref,
      })),
    ],
  ]
}

function projectHead(facts: ProjectFacts, home: string): string {
  return `${safeLine(shortPath(facts.project, home)) || "no project"}: ${countsOf(facts)}`
}

function countsOf(facts: ProjectFacts): string {
  const { decisions_total, commits, conversations, other_conversations, failed_commands_total } = facts
  return [
    `${many(conversations.length, "conversation")}${other_conversations > 0 ? ` (and ${other_conversations} by subagents or scripts)` : ""}`,
    ...(decisions_total > 0 ? [many(decisions_total, "decision")] : []),
    ...(commits.length > 0 ? [many(commits.length, "commit")] : []),
    ...(failed_commands_total > 0 ? [`${failed_commands_total} left open`] : []),
  ].join(", ")
}

function filesLine({ files, files_total }: ProjectFacts, terminal: Terminal): string[] {
  if (files.length === 0) return []
  const room = terminal.columns - LABEL_COLUMNS - 2
  const total = files_total === 1 ? "" : `${files_total}: `
  return [
    `  ${"Files".padEnd(LABEL_COLUMNS)}${clip(`${total}${files.map(({ path, added, removed }) => `${safeLine(path)} +${added} -${removed}`).join(", ")}`, room)}`,
  ]
}

function otherLines(others: ProjectFacts[], terminal: Terminal, home: string): string[] {
  const line = (facts: ProjectFacts) => clip(projectHead(facts, home), terminal.columns)
  const hiddenCount = others.length - MAX_OTHER_PROJECTS
  return [
    ...others.slice(0, MAX_OTHER_PROJECTS).map(line),
    ...(hiddenCount > 0 ? [`and ${many(hiddenCount, "more project")}`] : []),
  ]
}

/** Says how many rows of each kind are not on the screen. */
function leftOutNotes(shownProjects: ProjectFacts[], maxRows: number, others: ProjectFacts[]): string[] {
  const countHidden = (count: (facts: ProjectFacts) => number, room = maxRows) =>
    shownProjects.reduce((sum, facts) => sum + Math.max(0, count(facts) - room), 0) +
    others.reduce((sum, facts) => sum + count(facts), 0)
  return [
    [countHidden((facts) => facts.decisions_total, maxRowsOf(DECIDED_LABEL, maxRows)), "decision"] as const,
    [countHidden((facts) => facts.commits.length), "commit"] as const,
    [countHidden((facts) => facts.conversations.length), "conversation"] as const,
    [countHidden((facts) => facts.failed_commands_total), "failed check"] as const,
  ].flatMap(([count, word]) => (count > 0 ? [many(count, word)] : []))
}

export function printMap(output: MapOutput, context: PrintContext): PrintedOutput {
  if (output.conversations === 0)
    return { lines: [], notes: ["No conversations match. `dex list` shows what there is.", ...output.notes] }
  if (output.dry_run) return printDryRun(output, context)
  const { written, result, partial, notes } = output
  const writtenNote = written === undefined ? [] : [`Written: ${shortPath(safeLine(written), context.home)}`]
  const lines = written === undefined ? markdownOf(output.title, result ?? {}, []).split("\n") : []
  return { lines: partial ? ["PARTIAL", "", ...lines] : lines, notes: [...writtenNote, ...notes, ...costLines(output)] }
}

function printDryRun(output: MapOutput, { terminal }: PrintContext): PrintedOutput {
  const { conversations, batches, packed = [], estimated_tokens, batch_tokens, notes } = output
  const rows = packed.map(({ conversations, estimated_tokens, cached }, i) => {
    const fillText = `${Math.round((100 * estimated_tokens) / batch_tokens)} %`.padStart(6)
    const size = `${formatCount(estimated_tokens).padStart(6)} tokens${fillText}  ${many(conversations, "conversation")}`
    return `${paint(terminal, "cyan", String(i + 1).padStart(4))}  ${size}${cached ? "  already answered" : ""}`
  })
  const unansweredTokens = packed
    .filter(({ cached }) => !cached)
    .reduce((sum, batch) => sum + batch.estimated_tokens, 0)
  return {
    lines: [
      `${many(conversations, "conversation")}, ${many(batches.total, "batch", "batches")}, about ${formatCount(estimated_tokens)} tokens to read`,
      ...rows,
    ],
    notes: [
      ...notes,
      `Nothing was sent. ${batches.cached} of ${many(batches.total, "batch", "batches")} have already been answered; about ${formatCount(unansweredTokens)} tokens of conversations would be sent, not counting answers and merging.`,
    ],
  }
}

function costLines({ model, batches, merges, used }: MapOutput): string[] {
  if (!used || model === undefined) return []
  const { requests, input_tokens, output_tokens, is_estimate } = used
  return [
    `${many(batches.total, "batch", "batches")}: ${batches.asked ?? 0} asked, ${batches.cached} answered earlier; ${many((merges?.asked ?? 0) + (merges?.cached ?? 0), "merge")}, ${merges?.cached ?? 0} of them made earlier.`,
    `${safeLine(model)}: ${many(requests, "request")}, ${is_estimate ? "about " : ""}${input_tokens} tokens read and ${output_tokens} written${costText(used)}.`,
  ]
}
