import picomatch from "picomatch"
import { grouped } from "../../src/core/format.ts"
import { visibleText } from "../../src/render/visible.ts"
import type { Agent } from "../agents.ts"
import { type AgentReport, type Difference, type Report, type What, WORDS } from "./difference.ts"
import { EXPLAINED, KNOWN_COLUMNS } from "./explained.ts"
import type { Observation } from "./observe.ts"

/** What is different, without what is explained. */
export function differencesIn(agent: Agent["name"], seen: Observation): Pick<AgentReport, "differences" | "explained"> {
  const counted = (what: What, counts: Record<string, number>) =>
    Object.entries(counts).map(([name, count]): Difference => ({ what, name, count }))
  const named = (what: What, names: string[]) => names.map((name): Difference => ({ what, name, count: 1 }))
  const all = [
    ...counted("record", seen.unknown),
    ...counted("skipped", seen.skipped),
    ...counted("table", seen.tables),
    ...named("column", newColumns(agent, seen.columns)),
    ...unread(seen).map(
      (name): Difference => ({ what: seen.telling.includes(name) ? "copy" : "file", name, count: 1 }),
    ),
    ...named("file", seen.unreadable),
    ...named("text", seen.lost),
  ].map((difference) => ({ ...difference, why: reasonFor(agent, difference) }))
  return {
    differences: all.filter(({ why }) => why === undefined),
    explained: all.filter(({ why }) => why !== undefined),
  }
}

function reasonFor(agent: Agent["name"], { what, name }: Difference): string | undefined {
  return EXPLAINED.find(
    (one) => one.what === what && one.agents.includes(agent) && picomatch.isMatch(name, [...one.names], { dot: true }),
  )?.why
}

function newColumns(agent: Agent["name"], columns: Record<string, string[]>): string[] {
  const known = KNOWN_COLUMNS[agent] ?? {}
  return Object.entries(columns).flatMap(([table, names]) =>
    known[table] ? names.filter((name) => !known[table]!.includes(name)).map((name) => `${table}.${name}`) : [],
  )
}

function unread({ files, read }: Observation): string[] {
  return files.filter((path) => !read.includes(path))
}

export function hasDifference({ agents }: Report): boolean {
  return agents.some(({ differences }) => differences.length > 0)
}

/** The report as plain text. Names come from the agents' files, so nothing in them may move a cursor or hide. */
export function textOf(report: Report): string {
  const lines = report.agents.flatMap((one) => [
    headOf(one),
    ...one.differences.map((difference) => `  ${describe(difference)}`),
  ])
  const others = report.not_run.map(({ title, why }) => `${title}: not run: ${why}`)
  return [...lines, ...others].map((line) => visibleText(line)).join("\n")
}

function headOf({
  title,
  newest,
  version,
  seconds,
  files,
  read,
  records,
  differences,
  explained,
}: AgentReport): string {
  const name = version === undefined ? title : `${title} ${version}`
  const older =
    newest !== undefined && version !== undefined && newest !== version
      ? ` (npm has ${newest}, which cannot be installed)`
      : ""
  const verdict =
    differences.length === 0
      ? "all is read"
      : differences.length === 1
        ? "1 difference"
        : `${differences.length} differences`
  if (version === undefined || seconds === undefined) return `${name}${older}: ${verdict}`
  const count = Object.values(records).reduce((sum, records) => sum + records, 0)
  const kinds = Object.entries(records)
    .map(([kind, records]) => `${kind} ${records}`)
    .join(", ")
  return `${name}${older}: ${verdict}; wrote ${files} files, ${read} of them conversations with ${grouped(count)} records (${kinds}); ${explained.length} explained; ${seconds} s`
}

function describe({ what, name, count }: Difference): string {
  return `${WORDS[what]}: ${name.replace(/\s+/g, " ")}${count > 1 ? ` (${grouped(count)})` : ""}`
}
