import { joinNames } from "../../core/format.ts"
import type { OutputOf } from "../../core/tool.ts"
import { paint, safe, safeLine, wrap } from "../../render/terminal.ts"
import { many, megabytes, shortPath } from "../../render/words.ts"
import type { install } from "../tools/install.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"
import { asTyped } from "./words.ts"

export type WiringOutput = OutputOf<typeof install>
type FileOutput = WiringOutput["files"][number]

/** The planned changes for each agent, what the agent will then do without asking, problems, and the totals. */
export function summaryLines({ agents, files }: WiringOutput, { terminal, home }: PrintContext): string[] {
  const indented = (text: string) => wrap(text, terminal.columns - 2).map((line) => `  ${line}`)
  const changesOf = (agent: string) =>
    CHANGES.flatMap((change) => {
      const paths = files.filter((file) => file.agent === agent && file.change === change).map(({ path }) => path)
      return paths.length === 0
        ? []
        : [`${PLANNED_CHANGES[change]} ${paths.map((path) => withShortPaths(path, home)).join(", ")}`]
    })
  const changedAgents = [...agents, { agent: "dex", title: "Programs that agents start", trust: undefined }]
    .map((agent) => ({ ...agent, changes: changesOf(agent.agent) }))
    .filter(({ changes }) => changes.length > 0)
  return [
    ...changedAgents.flatMap(({ title, changes }) => [paint(terminal, "bold", title), ...changes.flatMap(indented)]),
    ...changedAgents.flatMap(({ title, trust }) =>
      trust === undefined
        ? []
        : wrap(`${title} ${trust}`, terminal.columns).map((line) => paint(terminal, "yellow", line)),
    ),
    ...files.flatMap(({ problem }) =>
      problem === undefined ? [] : [paint(terminal, "red", `problem: ${withShortPaths(problem, home)}`)],
    ),
    ...wrap(totalText(files), terminal.columns),
  ]
}

const CHANGES = ["create", "edit", "remove"] as const
const PLANNED_CHANGES = { create: "create", edit: "change", remove: "remove" }

function totalText(files: readonly FileOutput[]): string {
  const counts = CHANGES.map((change) => ({ change, count: files.filter((file) => file.change === change).length }))
  const changes = counts
    .filter(({ count }) => count > 0)
    .map(({ change, count }) => `${PLANNED_CHANGES[change]} ${many(count, "file")}`)
  return `In total: ${changes.join(", ")}. ${files.some(({ change }) => change === "edit") ? "Changed files are backed up first." : ""}`.trimEnd()
}

export function diffLines({ files }: WiringOutput, { terminal, home }: PrintContext): string[] {
  const shownBefore = new Set<string>()
  return files.flatMap(({ diff, problem }) => {
    if (problem !== undefined) return [paint(terminal, "red", `problem: ${withShortPaths(problem, home)}`), ""]
    if (diff === "") return []
    const lines = safe(diff).trimEnd().split("\n")
    const body = lines.slice(2).join("\n")
    if (shownBefore.has(body)) return [...lines.slice(0, 2), paint(terminal, "dim", "(the same lines as above)"), ""]
    shownBefore.add(body)
    return [...lines.map((line, i) => (i < 2 ? paint(terminal, "bold", line) : paintDiff(line, terminal))), ""]
  })
}

function paintDiff(line: string, terminal: PrintContext["terminal"]): string {
  if (line.startsWith("+")) return paint(terminal, "green", line)
  if (line.startsWith("-")) return paint(terminal, "red", line)
  return line.startsWith("@@") ? paint(terminal, "cyan", line) : line
}

export function printInstall(
  output: WiringOutput,
  context: PrintContext,
  { speak }: { speak?: boolean } = {},
): PrintedOutput {
  if (output.servers) return printCheck(output, context)
  const { home } = context
  if (!output.agents.some(({ found }) => found))
    return {
      lines: [],
      notes: [
        `No coding agent was found on this machine. dex looks for ${joinNames(output.agents.map(({ title }) => title))}.`,
      ],
    }
  const lines = output.agents
    .filter(({ found }) => found)
    .flatMap(({ agent, title, note, absent }) => [
      paint(context.terminal, "bold", title) + paint(context.terminal, "dim", absentNote(absent)),
      ...changeLines(output, agent, context),
      ...(note
        ? wrap(note, context.terminal.columns - 2).map((line) => `  ${paint(context.terminal, "dim", line)}`)
        : []),
    ])
  const { only_read: onlyRead = [] } = output
  const missingAgents = output.agents
    .filter(({ title, found }) => !found && !onlyRead.includes(title))
    .map(({ title }) => title)
  const hasChanges = output.files.some(({ change }) => ["create", "edit"].includes(change))
  return {
    lines,
    notes: [
      ...(onlyRead.length > 0 ? [onlyReadNote(onlyRead, output)] : []),
      ...(missingAgents.length > 0 ? [`Not found: ${missingAgents.join(", ")}.`] : []),
      ...problemNotes(
        output.files.filter(({ agent }) => agent === "dex"),
        home,
      ),
      ...backupNotes(output, home),
      hasChanges
        ? "Restart open agents to use dex. `dex install --check` starts the server to test it; `dex uninstall` removes everything again."
        : "Nothing had to be changed. `dex install --check` starts the server to test it.",
      ...(hasChanges && output.hooks === true
        ? [
            speak
              ? "dex makes suggestions to your agents. `dex suggest --mute <kind|project>` turns some of them off, and `dex install --no-hooks` all of them."
              : "Agents' hooks now ask dex for suggestions. For the first week it only records them; then `dex` shows them and asks you. `dex install --no-hooks` removes them.",
          ]
        : []),
      ...(output.private_asked === false
        ? [
            "Agents may read every project's conversations. `dex private <folder>` hides a project from agents in other projects.",
          ]
        : []),
    ],
  }
}

function absentNote(program: string | undefined): string {
  return program === undefined ? "" : `  settings folder found, \`${program}\` is not on PATH`
}

function onlyReadNote(names: string[], { agents }: WiringOutput): string {
  const reasons = names.map((name) => {
    const isWirable = agents.some(({ title }) => title === name)
    return `${name} (${isWirable ? "its settings folder was not found" : "dex has nothing to add to its settings"})`
  })
  return `Read, but not connected: ${reasons.join(", ")}.`
}

export function printUninstall(output: WiringOutput, context: PrintContext): PrintedOutput {
  if (output.files.length === 0 && output.data) return { lines: [], notes: dataNotes(output.data, context.home) }
  if (output.files.length === 0)
    return { lines: [], notes: ["dex is not connected to these agents; nothing was changed."] }
  const lines = output.agents.flatMap(({ agent, title }) => [
    paint(context.terminal, "bold", title),
    ...changeLines(output, agent, context),
  ])
  const failedCount = output.files.filter(({ problem }) => problem !== undefined).length
  return {
    lines,
    notes: [
      ...backupNotes(output, context.home),
      failedCount > 0
        ? `${many(failedCount, "file")} could not be restored; see above, then run \`dex uninstall\` again.`
        : output.launcher_kept
          ? "The rest was removed. The remaining entries still start dex, so its launcher stays. Delete them, then run `dex uninstall` again."
          : output.data?.deleted
            ? "Removed."
            : "Removed. Your history stays where it is; `dex install` connects the agents again.",
      ...(output.data ? dataNotes(output.data, context.home) : []),
    ],
  }
}

function dataNotes({ folder, bytes, deleted, stays }: NonNullable<WiringOutput["data"]>, home: string): string[] {
  const path = shortPath(folder, home)
  if (!deleted) return [`${path} was not deleted.`]
  const others = stays.length > 0 ? ` What dex did not write stays there: ${joinNames(stays.map(safeLine))}.` : ""
  return [`Deleted ${megabytes(bytes)} in ${path}.${others}`]
}

const MADE_CHANGES: Record<string, string> = {
  none: "unchanged",
  create: "created  ",
  edit: "changed  ",
  remove: "removed  ",
}

function changeLines({ files }: WiringOutput, agent: string, { terminal, home }: PrintContext): string[] {
  return files
    .filter((file) => file.agent === agent)
    .flatMap(({ path, change, problem, note }) => {
      if (problem !== undefined)
        return wrap(withShortPaths(problem, home), terminal.columns - 2).map((line) => `  ${line}`)
      const notes =
        note === undefined ? [] : wrap(withShortPaths(note, home), terminal.columns - 4).map((line) => `    ${line}`)
      return [`  ${MADE_CHANGES[change]}  ${safeLine(shortPath(path, home))}`, ...notes]
    })
}

function backupNotes({ files }: WiringOutput, home: string): string[] {
  const backups = files.flatMap(({ backup }) => (backup === undefined ? [] : [backup]))
  if (backups.length === 0) return []
  const folder = backups[0]!.replace(/[\\/][^\\/]*$/, "")
  return [`Backed up ${many(backups.length, "file")} to ${shortPath(folder, home)}`]
}

function problemNotes(files: FileOutput[], home: string): string[] {
  return files.flatMap(({ problem, note }) =>
    [problem, note].filter((text) => text !== undefined).map((text) => withShortPaths(text, home)),
  )
}

const SUBAGENT_TEXTS = {
  there: "The dex-retrieval sub-agent is installed.",
  changed: "The dex-retrieval sub-agent is installed, but differs from the one that this version of dex writes.",
  missing: "The dex-retrieval sub-agent is missing; `dex install` writes it.",
}

function printCheck({ agents, servers = [] }: WiringOutput, { terminal, home }: PrintContext): PrintedOutput {
  const lines = agents.flatMap(({ agent, title, found, wired, problems = [], subagent }) => {
    const server = servers.find((candidate) => candidate.agents.includes(agent))
    const isHealthy = wired && server?.works === true && problems.length === 0
    const mark = isHealthy
      ? paint(terminal, "green", "ok      ")
      : wired
        ? paint(terminal, "red", "problem ")
        : "        "
    const state = wired ? "connected" : found ? `not connected: dex install ${agent}` : "not found"
    const details = [
      ...problems.map((problem) => withShortPaths(problem, home)),
      ...(server
        ? [`${safeLine(server.message)}${server.tools === undefined ? "" : ` ${many(server.tools, "tool")}.`}`]
        : []),
      ...(subagent === undefined ? [] : [SUBAGENT_TEXTS[subagent]]),
    ]
    return [
      `${mark}${paint(terminal, wired ? "bold" : "dim", title)}  ${paint(terminal, "dim", asTyped(state, terminal))}`,
      ...details.flatMap((detail) =>
        wrap(asTyped(detail, terminal), terminal.columns - 10).map((line) => `          ${line}`),
      ),
    ]
  })
  const notes = servers.map(
    ({ command }) =>
      `Checked by starting \`${withShortPaths(command.join(" "), home)}\` and ending it again; nothing stays running.`,
  )
  const hasProblem = servers.some(({ works }) => !works) || agents.some(({ problems }) => problems?.length)
  const connectedAgent = agents.find(({ wired }) => wired)
  if (!hasProblem && servers.length > 0 && connectedAgent)
    notes.push(`Try it: in ${connectedAgent.title}, ask "what did I do in this repository last week?"`)
  if (servers.length === 0) notes.push("No agent is connected yet. Run `dex install` to connect them.")
  else if (hasProblem) notes.push("`dex install` adds what is missing.")
  return { lines, notes }
}

function withShortPaths(message: string, home: string): string {
  return safeLine(message.replaceAll(`${home}/`, "~/").replaceAll(`${home}\\`, "~\\"))
}
