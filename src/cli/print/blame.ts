import { grouped } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safe, safeLine, type Terminal, widthOf } from "../../render/terminal.ts"
import type { blame } from "../../tools/blame/blame.ts"
import type { PrintContext, Printed } from "./printer.ts"
import { many } from "./words.ts"

type Output = OutputOf<typeof blame>
type Line = Output["lines"][number]
type Commit = Output["commits"][number]
type ToldOwner = Pick<Line, "level" | "conversation" | "ref" | "agent" | "title" | "recorded">

export function printBlame(output: Output, { terminal }: PrintContext, input: InputOf<typeof blame>): Printed {
  if (input.porcelain) return { lines: output.lines.flatMap(porcelainOf), notes: output.notes }
  const lines =
    output.kind === "file"
      ? fileLines(output.lines, terminal)
      : output.kind === "commits"
        ? output.commits.flatMap((commit) => commitLines(commit, terminal))
        : agentLines(output.agents, terminal)
  return { lines, notes: [...legend(output), ...output.notes] }
}

function legend({ total, proved, likely, unknown, kind }: Output): string[] {
  if (total === 0) return ["No lines."]
  const marks = kind === "file" ? { likely: " (~)", unknown: " (-)" } : { likely: "", unknown: "" }
  return [
    `${many(total, "line")}: ${grouped(proved)} proved, ${grouped(likely)} likely${marks.likely}, ${grouped(unknown)} unknown${marks.unknown}.`,
  ]
}

const MARKS = { proved: " ", likely: "~", unknown: "-" }

/** The first signs of the conversation's id, which every command takes. */
function shortRef({ ref, conversation }: ToldOwner): string {
  const id = safeLine(conversation ?? "")
    .split(":")
    .at(-1)!
    .slice(0, 8)
  const number = /#\d+$/.exec(ref ?? "")?.[0] ?? ""
  return id === "" ? "" : id + number
}

const LONGEST_TITLE = 30

/** Hundreds of lines have the same title. */
function once(make: (text: string) => string): (text: string) => string {
  const made = new Map<string, string>()
  return (text) => {
    const known = made.get(text) ?? make(text)
    made.set(text, known)
    return known
  }
}

function fileLines(lines: readonly Line[], terminal: Terminal): string[] {
  const agentOf = once((agent) => clip(safeLine(agent), 14))
  const titleOf = once((title) => clip(safeLine(title), terminal.columns < 100 ? 16 : LONGEST_TITLE))
  const rows = lines.map((line) => ({
    line,
    ref: shortRef(line),
    agent: agentOf(line.agent ?? ""),
    title: titleOf(line.title ?? line.recorded ?? ""),
    date: line.commit === "" ? "not committed" : line.date.slice(0, 10),
    number: String(line.line),
  }))
  const wide = (of: (row: (typeof rows)[number]) => string) => Math.max(0, ...rows.map((row) => widthOf(of(row))))
  const widths = {
    ref: wide(({ ref }) => ref),
    agent: wide(({ agent }) => agent),
    title: wide(({ title }) => title),
    date: wide(({ date }) => date),
    number: wide(({ number }) => number),
  }
  return rows.map(({ line, ref, agent, title, date, number }) => {
    const who = [
      paint(terminal, "cyan", padEnd(ref, widths.ref)),
      padEnd(agent, widths.agent),
      padEnd(title, widths.title),
      paint(terminal, "dim", padEnd(date, widths.date)),
    ].filter((_, i) => [widths.ref, widths.agent, widths.title, widths.date][i]! > 0)
    const text = safe(line.text).replaceAll("\t", "    ").trimEnd()
    return `${MARKS[line.level]} ${who.join("  ")} ${paint(terminal, "dim", `${number.padStart(widths.number)})`)} ${text}`.trimEnd()
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

function whoLines(told: Commit, room: number): string[] {
  if (told.conversation === undefined) {
    const recorded = told.recorded === undefined ? "" : ` · ${safeLine(told.recorded)}`
    return [`  ${clip(`unknown${recorded}`, room)}`]
  }
  return [
    `  ${clip(
      [told.level, told.agent, told.title]
        .map((one) => safeLine(one ?? ""))
        .filter(Boolean)
        .join(" · "),
      room,
    )}`,
    `  ${safeLine(told.conversation)}`,
  ]
}

function agentLines(agents: Output["agents"], terminal: Terminal): string[] {
  const total = agents.reduce((sum, one) => sum + one.total, 0)
  const names = agents.map(({ agent }) => (agent === "" ? "nobody known" : safeLine(agent)))
  const width = Math.max(0, ...names.map(widthOf))
  return agents.map((one, i) => {
    const share = `${((100 * one.total) / Math.max(1, total)).toFixed(1)} %`
    const counts = one.agent === "" ? many(one.total, "line") : agentCounts(one)
    return `${paint(terminal, "bold", padEnd(names[i]!, width))}  ${share.padStart(7)}  ${counts}`
  })
}

/** Of lines whose conversation is unknown, the repository named the agent. */
function agentCounts({ total, proved, likely, unknown }: Output["agents"][number]): string {
  const named = unknown === 0 ? "" : `, ${grouped(unknown)} named only by the repository`
  return `${many(total, "line")}: ${grouped(proved)} proved, ${grouped(likely)} likely${named}`
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

/** As `git blame --porcelain`, each line with its whole head, and with what dex adds to it. */
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
