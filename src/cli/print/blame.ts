import { grouped } from "../../core/format.ts"
import type { InputOf, OutputOf } from "../../core/tool.ts"
import { clip, padEnd, paint, safe, safeLine, type Terminal, widthOf } from "../../render/terminal.ts"
import { many } from "../../render/words.ts"
import type { blame } from "../../tools/blame/blame.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type Output = OutputOf<typeof blame>
type Line = Output["lines"][number]
type Commit = Output["commits"][number]

export function printBlame(output: Output, { terminal }: PrintContext, input: InputOf<typeof blame>): PrintedOutput {
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

const LEVEL_MARKS = { proved: " ", likely: "~", unknown: "-" }

const MAX_TITLE_LENGTH = 30

/** Returns a function that caches its results, because hundreds of lines have the same values. */
function memoized(make: (text: string) => string): (text: string) => string {
  const results = new Map<string, string>()
  return (text) => {
    const result = results.get(text) ?? make(text)
    results.set(text, result)
    return result
  }
}

function fileLines(lines: readonly Line[], terminal: Terminal): string[] {
  // The first characters of the conversation's id, which every command accepts. For a colleague's conversation, the owner and the
  // agent come before them.
  const idOf = memoized((conversation) => {
    const [source = "", id = ""] = safeLine(conversation).split(/:(?=[^:]*$)/)
    return `${source.includes("/") ? `${source}:` : ""}${id.slice(0, 8)}`
  })
  const agentOf = memoized((agent) => clip(safeLine(agent), 14))
  const titleOf = memoized((title) => clip(safeLine(title), terminal.columns < 100 ? 16 : MAX_TITLE_LENGTH))
  const rows = lines.map(({ conversation, ref, agent, title, recorded, commit, date }) => [
    conversation === undefined ? "" : idOf(conversation) + (/#\d+$/.exec(ref ?? "")?.[0] ?? ""),
    agentOf(agent ?? ""),
    titleOf(title ?? recorded ?? ""),
    commit === "" ? "not committed" : date.slice(0, 10),
  ])
  const widths = [0, 1, 2, 3].map((column) =>
    Math.max(0, ...[...new Set(rows.map((row) => row[column]!))].map(widthOf)),
  )
  const styles = ["cyan", undefined, undefined, "dim"] as const
  const paintRow = memoized((row) =>
    row
      .split("\n")
      .map((text, column) => padEnd(text, widths[column]!))
      .map((text, column) => (styles[column] ? paint(terminal, styles[column], text) : text))
      .filter((_, column) => widths[column]! > 0)
      .join("  "),
  )
  const digits = String(lines.at(-1)?.line ?? "").length
  return lines.map(({ level, line, text }, i) => {
    const number = paint(terminal, "dim", `${String(line).padStart(digits)})`)
    const visibleText = safe(text).replaceAll("\t", "    ")
    return `${LEVEL_MARKS[level]} ${paintRow(rows[i]!.join("\n"))} ${number} ${visibleText}`.trimEnd()
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

/** The format of `git blame --porcelain`, with all fields on every line, including those that dex adds. */
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
