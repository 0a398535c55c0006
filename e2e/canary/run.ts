import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { parseArgs } from "node:util"
import { isoDate } from "../../src/core/dates.ts"
import { type Agent, ALL_AGENTS } from "../agents.ts"
import { endProcessesOf } from "../children.ts"
import { setUpMachine } from "../machine.ts"
import type { AgentReport, Difference, Report } from "./difference.ts"
import { NOT_RUN } from "./explained.ts"
import { installNewest } from "./install.ts"
import { filesIn, observe, scriptFor } from "./observe.ts"
import { differencesIn, hasDifference, textOf } from "./report.ts"

// Installs the newest version of every agent, runs it with the scripted model, and compares what it wrote with what dex reads.

const { values: options, positionals: names } = parseArgs({
  allowPositionals: true,
  options: { json: { type: "boolean", default: false }, folder: { type: "string" } },
})
const agents = ALL_AGENTS.filter(({ name }) => names.length === 0 || names.includes(name))
const folder = options.folder ?? mkdtempSync(join(tmpdir(), "canary-"))
mkdirSync(folder, { recursive: true })

/** An install mostly waits for the network, and a run for a process. */
const AT_ONCE = 2

/** What the scripted model says if an agent does not offer the tool of the script. */
const EXCUSE = /^(?:No tool |The script )/

const reports = new Map<Agent, AgentReport>()
const waiting = [...agents]
try {
  await Promise.all(Array.from({ length: AT_ONCE }, work))
} finally {
  if (options.folder === undefined) rmSync(folder, { recursive: true, force: true, maxRetries: 20 })
}
const report: Report = {
  date: isoDate(Date.now()),
  agents: agents.map((agent) => reports.get(agent)!),
  not_run: names.length === 0 ? [...NOT_RUN] : [],
}
console.log(options.json ? JSON.stringify(report, null, 1) : textOf(report))
process.exitCode = hasDifference(report) ? 1 : 0

async function work(): Promise<void> {
  for (let agent = waiting.shift(); agent; agent = waiting.shift()) {
    console.error(`${agent.title} …`)
    reports.set(agent, await tryAgent(agent))
    if (options.folder === undefined) rmSync(join(folder, agent.name), { recursive: true, force: true, maxRetries: 20 })
  }
}

async function tryAgent(agent: Agent): Promise<AgentReport> {
  const { newest, version, agent: installed, problem } = await installNewest(agent, join(folder, agent.name))
  const empty = {
    agent: agent.name,
    title: agent.title,
    newest,
    version,
    files: 0,
    read: 0,
    records: {},
    explained: [],
  }
  if (!installed) return { ...empty, differences: [notRun(`not installed: ${problem}`)] }
  const machine = await setUpMachine([installed])
  try {
    const before = new Set(filesIn(machine.home))
    const { ran, asked } = await machine.play(installed, scriptFor(installed, machine.projectOf(installed)))
    endProcessesOf(machine.home)
    const seconds = Math.round(ran.ms / 1000)
    const excuses = asked.flatMap(({ turns }) =>
      turns.filter(({ role, text }) => role === "assistant" && EXCUSE.test(text)),
    )
    const failed = ran.code !== 0 || asked.length === 0
    const problems = failed ? [notRun(lastLines(ran))] : excuses.slice(0, 1).map(({ text }) => notRun(text))
    if (failed) return { ...empty, seconds, differences: problems }
    const seen = await observe(installed, machine, before)
    const { differences, explained } = differencesIn(agent.name, seen)
    const { records, files, read } = seen
    const counts = { seconds, records, files: files.length, read: read.length }
    return { ...empty, ...counts, differences: [...problems, ...differences], explained }
  } catch (error) {
    return { ...empty, differences: [notRun(String(error))] }
  } finally {
    endProcessesOf(machine.home)
    await machine.takeDown()
  }
}

function notRun(name: string): Difference {
  return { what: "run", name: name.slice(0, 500), count: 1 }
}

function lastLines({ code, stdout, stderr }: { code: number | null; stdout: string; stderr: string }): string {
  return `it ended with ${code}: ${(stderr.trim() || stdout.trim()).split("\n").slice(-3).join(" ")}`
}
