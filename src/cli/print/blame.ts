import { grouped } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safe, safeLine, type Terminal, widthOf } from "../../render/terminal.ts"
import { many, shortDate } from "../../render/words.ts"
import type { blame } from "../../tools/blame/blame.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof blame>
type Line = Output["lines"][number]
type Commit = Output["commits"][number]

export function printBlame(
  output: Output,
  { terminal, numbered }: PrintContext,
  input: InputOf<typeof blame>,
  now = Date.now(),
): PrintedOutput {
  if (input.porcelain) return { lines: output.lines.flatMap(porcelainOf), notes: output.notes }
  const notes = [...legend(output), ...output.notes]
  if (output.kind === "commits")
    return { lines: output.commits.flatMap((commit) => commitLines(commit, terminal)), notes }
  if (output.kind === "folder") return { lines: agentLines(output.agents, terminal), notes }
  if (!terminal.interactive) return { lines: linesForPipe(output.lines), notes }
  const listing = [...new Set(output.lines.flatMap(({ ref, conversation }) => ref ?? conversation ?? []))]
  return {
    lines: fileLines(output.lines, { terminal, listing, numbered, now }),
    notes,
    title: output.path,
    listing: numbered ? listing : undefined,
  }
}

function legend({ total, proved, likely, unknown, kind }: Output): string[] {
  if (total === 0) return ["No lines."]
  const count = (lines: number, level: Line["level"]) =>
    `${grouped(lines)} ${level}${kind === "file" ? ` (${LEVELS[level].letter})` : ""}`
  return [
    `${many(total, "line")}: ${count(proved, "proved")}, ${count(likely, "likely")}, ${count(unknown, "unknown")}.`,
  ]
}

const LEVELS = {
  proved: { letter: "p", style: "green" },
  likely: { letter: "l", style: "yellow" },
  unknown: { letter: "u", style: "dim" },
} as const

/** The share of a line's width for the name, title, date and number in front of the code. */
const FACTS_SHARE = 0.4
const MIN_TITLE_COLUMNS = 8

type FileLook = { terminal: Terminal; listing: readonly string[]; numbered: boolean; now: number }

/** The lines on a terminal: each run of lines names its conversation once, and no line is wrapped. Below them, the conversations. */
function fileLines(lines: readonly Line[], { terminal, listing, numbered, now }: FileLook): string[] {
  const indexes = new Map(listing.map((ref, i) => [ref, i]))
  const runs = lines.map((line) => {
    const ref = line.ref ?? line.conversation
    const index = ref === undefined ? undefined : indexes.get(ref)!
    const date = line.commit === "" ? "now" : shortDate(line.date, now)
    return {
      key: `${index ?? line.recorded} ${line.commit}`,
      name: index === undefined ? "" : numbered ? String(index + 1) : shortRef(listing[index]!),
      title: safeLine(
        (index === undefined ? line.recorded : line.title) ?? (line.commit.slice(0, 8) || "not committed"),
      ),
      date,
    }
  })
  const widest = (texts: string[]) => Math.max(0, ...[...new Set(texts)].map(widthOf))
  const nameWidth = widest(runs.map(({ name }) => name))
  const dateWidth = widest(runs.map(({ date }) => date))
  const digits = String(lines.at(-1)?.line ?? "").length
  const room = Math.floor(terminal.columns * FACTS_SHARE) - nameWidth - dateWidth - digits - GAPS
  const titleWidth = room < MIN_TITLE_COLUMNS ? 0 : Math.min(room, widest(runs.map(({ title }) => title)))
  const shown = lines.map(({ level, line, text }, i) => {
    const { key, name, title, date } = runs[i]!
    const { letter, style } = LEVELS[level]
    const facts = [
      [name.padStart(nameWidth), nameWidth],
      [padEnd(clip(title, titleWidth), titleWidth), titleWidth],
      [date.padStart(dateWidth), dateWidth],
    ] as const
    const columns = facts.filter(([, width]) => width > 0)
    const who = columns.map(([fact]) => fact).join(" ")
    const lead = `${letter} ${runs[i - 1]?.key === key ? " ".repeat(widthOf(who)) : who}`
    const code = clip(codeOf(text), terminal.columns - widthOf(lead) - digits - 2)
    return `${paint(terminal, style, lead)} ${paint(terminal, "dim", String(line).padStart(digits))} ${code}`.trimEnd()
  })
  const keys = listing.map((ref, i) => {
    const { agent = "", title = "" } = lines.find((line) => (line.ref ?? line.conversation) === ref)!
    const name = numbered ? String(i + 1).padStart(nameWidth) : shortRef(ref)
    return `${paint(terminal, "cyan", name)}  ${clip([title, agent].map(safeLine).filter(Boolean).join(" · "), terminal.columns - widthOf(name) - 2)}`
  })
  return keys.length === 0 ? shown : [...shown, "", ...keys]
}

/** The columns between the facts and the code: after the level, the name, the title, the date and the line number. */
const GAPS = 6

const codeOf = (text: string) => safe(text).replaceAll("\t", "    ")

/**
 * The beginning of a ref, which every command accepts: the conversation's id and the message. For a colleague's conversation, the
 * owner and the agent come before them.
 */
function shortRef(ref: string): string {
  const [, source = "", id = "", number = ""] = /^(.*?):([^:#]*)(#\d+)?$/.exec(safeLine(ref)) ?? []
  return `${source.includes("/") ? `${source}:` : ""}${id.slice(0, 8)}${number}`
}

/** The lines in a pipe: each says everything about itself. */
function linesForPipe(lines: readonly Line[]): string[] {
  const rows = lines.map(({ conversation, ref, agent, title, recorded, commit, date }) => [
    conversation === undefined ? "" : shortRef(ref ?? conversation),
    clip(safeLine(agent ?? ""), 14),
    clip(safeLine(title ?? recorded ?? ""), 30),
    commit === "" ? "not committed" : date.slice(0, 10),
  ])
  const widths = [0, 1, 2, 3].map((column) => Math.max(0, ...rows.map((row) => widthOf(row[column]!))))
  const digits = String(lines.at(-1)?.line ?? "").length
  return lines.map(({ level, line, text }, i) => {
    const facts = rows[i]!.map((fact, column) => padEnd(fact, widths[column]!)).filter(
      (_, column) => widths[column]! > 0,
    )
    return `${LEVELS[level].letter} ${facts.join("  ")} ${String(line).padStart(digits)}) ${codeOf(text)}`.trimEnd()
  })
}

function commitLines(commit: Commit, terminal: Terminal): string[] {
  const { also } = commit
  const room = terminal.columns - 2
  const head = `${paint(terminal, "yellow", commit.commit.slice(0, 10))}  ${commit.date.slice(0, 10)}  ${safeLine(commit.subject)}`
  const counts = countsText(commit)
  const others = also.length === 0 ? [] : [`  and ${also.map((ref) => safeLine(ref)).join(", ")}`]
  return [
    clip(head, terminal.columns + (terminal.color ? 9 : 0)),
    ...whoLines(commit, room),
    `  ${counts}`,
    ...others,
    "",
  ]
}

function whoLines(commit: Commit, room: number): string[] {
  if (commit.conversation === undefined) {
    const recordedText = commit.recorded === undefined ? "" : ` · ${safeLine(commit.recorded)}`
    return [`  ${clip(`unknown${recordedText}`, room)}`]
  }
  return [
    `  ${clip(
      [commit.level, commit.agent, commit.title]
        .map((text) => safeLine(text ?? ""))
        .filter(Boolean)
        .join(" · "),
      room,
    )}`,
    `  ${safeLine(commit.conversation)}`,
  ]
}

function agentLines(agents: Output["agents"], terminal: Terminal): string[] {
  const total = agents.reduce((sum, agent) => sum + agent.total, 0)
  const names = agents.map(({ agent }) => (agent === "" ? "author unknown" : safeLine(agent)))
  const width = Math.max(0, ...names.map(widthOf))
  return agents.map((agent, i) => {
    const share = `${((100 * agent.total) / Math.max(1, total)).toFixed(1)} %`
    const counts = agent.agent === "" ? many(agent.total, "line") : agentCounts(agent)
    return `${paint(terminal, "bold", padEnd(names[i]!, width))}  ${share.padStart(7)}  ${counts}`
  })
}

/** For some lines the conversation is unknown, but the repository names the agent. */
function agentCounts({ total, proved, likely, unknown }: Output["agents"][number]): string {
  const namedOnlyText = unknown === 0 ? "" : `, ${grouped(unknown)} named only by the repository`
  return `${many(total, "line")}: ${grouped(proved)} proved, ${grouped(likely)} likely${namedOnlyText}`
}

function countsText({
  total,
  proved,
  likely,
  unknown,
}: Pick<Commit, "total" | "proved" | "likely" | "unknown">): string {
  return `${many(total, "line")}: ${grouped(proved)} proved, ${grouped(likely)} likely, ${grouped(unknown)} unknown`
}

const NOT_COMMITTED = "0".repeat(40)

/** The format of `git blame --porcelain`, with all fields for every line, and with fields that dex adds. */
function porcelainOf(line: Line): string[] {
  const field = (name: string, value: string | undefined) =>
    value === undefined || value === "" ? [] : [`${name} ${safeLine(value)}`]
  return [
    `${line.commit || NOT_COMMITTED} ${line.was_line} ${line.line} 1`,
    ...field("author-time", line.date === "" ? undefined : String(Math.floor(Date.parse(line.date) / 1000))),
    ...field("summary", line.subject),
    ...field("filename", line.was_path),
    ...field("dex-level", line.level),
    ...field("dex-reason", line.reason),
    ...field("dex-ref", line.ref),
    ...field("dex-agent", line.agent),
    ...field("dex-title", line.title),
    ...field("dex-recorded", line.recorded),
    `\t${safe(line.text)}`,
  ]
}
