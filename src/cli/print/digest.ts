import type { ProjectFacts } from "../../answers/digest/facts.ts"
import {
  countDecisions,
  decisionsOf,
  decisionText,
  factsPage,
  finishedTopics,
  headCounts,
  otherWork,
  repositoryName,
  shortRef,
  topicTitle,
} from "../../answers/digest/page.ts"
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
const MAX_TOPICS = 20

/** A line of a project, with a ref if it can be opened. */
type Line = { text: string; ref?: string; isDecision?: true }
type DigestScreen = { lines: string[]; listing: string[]; left_out: string[] }

/**
 * The facts on one screen: for the first projects their topics with what was committed and decided, then what else was worked on
 * and left open, and for the others one line each. What can be opened is numbered.
 */
function factsScreen(projects: ProjectFacts[], { terminal, home, numbered }: PrintContext): DigestScreen {
  const shown = projects.slice(0, MAX_PROJECTS)
  const others = projects.slice(MAX_PROJECTS)
  const maxTopics = topicsThatFit(shown, Math.min(others.length, MAX_OTHER_PROJECTS + 1))
  const listing: string[] = []
  const lineOf = ({ text, ref }: Line) => {
    const end = ref === undefined || numbered ? "" : ` (${shortRef(ref)})`
    const line = clip(safeLine(text), terminal.columns - 6 - end.length)
    if (ref === undefined) return `      ${paint(terminal, "dim", line)}`
    listing.push(ref)
    return `  ${paint(terminal, "cyan", String(listing.length).padStart(3))} ${line}${paint(terminal, "dim", end)}`
  }
  const lines = shown.flatMap((facts) => [
    paint(terminal, "bold", clip(projectHead(facts, home), terminal.columns)),
    ...sectionsOf(facts, maxTopics).flatMap(([label, rows]) => [
      ...(label === "" || rows.length === 0 ? [] : [`  ${label}`]),
      ...rows.map(lineOf),
    ]),
    ...filesLine(facts, terminal),
    "",
  ])
  return {
    lines: [...lines, ...otherLines(others, terminal, home)],
    listing,
    left_out: leftOutNotes(shown, maxTopics, others),
  }
}

/** How many topics of each project fit on the screen, at least one. */
function topicsThatFit(shown: ProjectFacts[], others: number): number {
  const linesWith = (maxTopics: number) =>
    shown
      .flatMap((facts) => sectionsOf(facts, maxTopics))
      .reduce((sum, [label, rows]) => sum + rows.length + (label === "" || rows.length === 0 ? 0 : 1), 0)
  const fixedLines = others + shown.reduce((sum, { files }) => sum + (files.length > 0 ? 3 : 2), 0)
  let maxTopics = 1
  while (maxTopics < MAX_TOPICS && fixedLines + linesWith(maxTopics + 1) <= SCREEN_LINES) maxTopics++
  return maxTopics
}

const decisionsEach = (maxTopics: number) => (maxTopics < 8 ? 1 : 2)
const othersEach = (maxTopics: number) => Math.ceil(maxTopics / 3)

function sectionsOf(facts: ProjectFacts, maxTopics: number): [label: string, rows: Line[]][] {
  const decided = (place?: number) =>
    decisionsOf(facts, place)
      .slice(0, decisionsEach(maxTopics))
      .map((one): Line => ({ text: `Decided: ${decisionText(one)}`, ref: one.ref, isDecision: true }))
  const topics = finishedTopics(facts)
  return [
    [
      "",
      topics
        .slice(0, maxTopics)
        .flatMap(({ topic, place }): Line[] => [
          { text: topicTitle(topic), ref: topic.ref },
          ...commitsLine(facts, place),
          ...decided(place),
        ]),
    ],
    ["Also decided", decided()],
    [
      "Also worked on",
      otherWork(facts)
        .slice(0, othersEach(maxTopics))
        .map(({ title, messages, id }) => ({ text: `${title} (${many(messages, "message")})`, ref: id })),
    ],
    [
      "Left open",
      facts.failed_commands.slice(0, othersEach(maxTopics)).map(({ command, error, times, ref }) => ({
        text: `${command}${times > 1 ? `, ${times} times` : ""}${error ? `: ${error}` : ""}`,
        ref,
      })),
    ],
  ]
}

/** The newest commits of a topic. Left out if the title already says the only one. */
function commitsLine({ commits, topics }: ProjectFacts, place: number): Line[] {
  const subjects = commits.flatMap(({ topic, subject }) => (topic === place ? subject : [])).reverse()
  if (subjects.length === 0 || (subjects.length === 1 && subjects[0] === topics[place]!.title)) return []
  return [{ text: `${many(subjects.length, "commit")}: ${subjects.join("; ")}` }]
}

function projectHead(facts: ProjectFacts, home: string): string {
  return `${repositoryName(facts, (folder) => shortPath(folder, home))}: ${headCounts(facts)}`
}

function filesLine({ files, files_total }: ProjectFacts, terminal: Terminal): string[] {
  if (files.length === 0) return []
  const total = files_total === 1 ? "" : `${files_total}: `
  const names = files.map(({ path, added, removed }) => `${safeLine(path)} +${added} -${removed}`).join(", ")
  return [`  ${clip(`Files  ${total}${names}`, terminal.columns - 2)}`]
}

function otherLines(others: ProjectFacts[], terminal: Terminal, home: string): string[] {
  const line = (facts: ProjectFacts) => clip(projectHead(facts, home), terminal.columns)
  const hiddenCount = others.length - MAX_OTHER_PROJECTS
  return [
    ...others.slice(0, MAX_OTHER_PROJECTS).map(line),
    ...(hiddenCount > 0 ? [`and ${many(hiddenCount, "more project")}`] : []),
  ]
}

/** Says how many topics, decisions and so on are not on the screen. */
function leftOutNotes(shown: ProjectFacts[], maxTopics: number, others: ProjectFacts[]): string[] {
  const decisionsShown = shown
    .flatMap((facts) => sectionsOf(facts, maxTopics))
    .flatMap(([, rows]) => rows.filter(({ isDecision }) => isDecision)).length
  const sum = (list: ProjectFacts[], countOf: (facts: ProjectFacts) => number) =>
    list.reduce((total, facts) => total + countOf(facts), 0)
  const beyond = (countOf: (facts: ProjectFacts) => number, room: number) =>
    sum(shown, (facts) => Math.max(0, countOf(facts) - room)) + sum(others, countOf)
  return [
    [beyond((facts) => finishedTopics(facts).length, maxTopics), "topic"] as const,
    [sum([...shown, ...others], countDecisions) - decisionsShown, "decision"] as const,
    [beyond((facts) => otherWork(facts).length, othersEach(maxTopics)), "conversation"] as const,
    [beyond((facts) => facts.failed_commands_total, othersEach(maxTopics)), "failed command"] as const,
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
