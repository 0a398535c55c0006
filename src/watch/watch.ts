import { basename } from "node:path"
import type { Connector, Watched } from "../agents/kit/connector.ts"
import { optedIn, prepareProjects, projectsFile } from "../config/projects.ts"
import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import type { Dex } from "../tools/context.ts"
import { watchArea } from "./area.ts"
import { listeners } from "./listeners.ts"
import { watchFile } from "./one-file.ts"
import { createPace, type LookOutcome, type Pace } from "./pace.ts"
import { openProject, type Project, realOr } from "./project.ts"
import { createReader } from "./reader.ts"
import { type AgentArea, createReport, POLL_MS, type WatchEvent } from "./report.ts"

export type WatchOptions = {
  dex: Pick<Dex, "home" | "machine" | "now" | "cwd" | "version">
  connectors: readonly Connector[]
  signal: AbortSignal
  say(event: WatchEvent): void
}

const ALL = "*"
const PROJECT = "project:"
/** Events can be lost: a full queue, a network disk. */
const LOOK_AT_ALL_MS = 600_000
const RECHECK_MS = 60_000

/** Keeps the history and the opted-in projects current until told to stop. */
export async function watchAll(options: WatchOptions): Promise<void> {
  const { dex, signal } = options
  const said = createReport(dex, options.say)
  const reader = createReader({ env: { ...dex.machine.env }, cwd: dex.home.dir, version: dex.version }, (line) =>
    said.problem("reader", line),
  )
  const projects = new Map<string, Project>()
  let seen: string | undefined
  const syncOrder = (key: string) => ({
    type: "sync" as const,
    ...(key !== ALL && { source: key as SourceId }),
    ...(seen !== undefined && { after: seen }),
  })
  const readAgents = async (key: string): Promise<LookOutcome> => {
    const answer = await reader.ask(syncOrder(key), said.progress)
    if (answer.busy) return "busy"
    seen = answer.seen
    said.problem(key, answer.problems[0])
    said.looked(key === ALL ? undefined : (key as SourceId), answer)
    return { tookMs: answer.duration_ms }
  }
  const readProject = async (project: Project): Promise<LookOutcome> => {
    const change = project.take()
    said.project(change)
    if (listeners.project.length === 0) return "done"
    try {
      const { busy, problems } = await reader.ask({ type: "project", ...change }, () => {})
      said.problem(PROJECT + change.project, problems[0])
      if (busy) project.missed()
      return busy ? "busy" : "done"
    } catch (error) {
      project.missed()
      throw error
    }
  }
  const look = async (key: string): Promise<LookOutcome> => {
    try {
      if (!key.startsWith(PROJECT)) return await readAgents(key)
      const project = projects.get(key.slice(PROJECT.length))
      return project ? await readProject(project) : "done"
    } catch (error) {
      if (signal.aborted) return "done"
      said.problem(key, messageOf(error))
      return "failed"
    }
  }
  const pace = createPace(look)
  const areas = watchAgents(options, pace, said.area)
  const all = () => [...areas.map(({ area }) => area), ...[...projects.values()].flatMap((project) => project.areas)]
  const state = () => said.state(areas, all(), [...projects.keys()])

  const follow = async () => {
    const wanted = optedIn(dex.home)
    for (const [path, project] of projects) {
      if (wanted.includes(path)) continue
      project.close()
      projects.delete(path)
    }
    for (const path of wanted) {
      if (projects.has(path)) continue
      const touched = () => pace.touch(PROJECT + path)
      const project = await openProject(path, dex.home.dir, {
        touched,
        problem: (why) => said.area(path, false, why),
      })
      projects.set(path, project)
      // What changed while nobody watched.
      project.missed()
      touched()
    }
    state()
  }
  let following = Promise.resolve()
  const followProjects = () => {
    following = following.then(follow)
    return following
  }
  prepareProjects(dex.home)
  const list = watchFile(projectsFile(dex.home), () => void followProjects())
  await followProjects()
  pace.touch(ALL)
  const timers = [
    setInterval(() => {
      for (const area of all()) area.recheck()
      state()
    }, RECHECK_MS),
    setInterval(() => {
      pace.touch(ALL)
      for (const project of projects.values()) void project.lookAgain()
    }, LOOK_AT_ALL_MS),
  ]
  said.onLook(state)
  await aborted(signal)
  for (const timer of timers) clearInterval(timer)
  list.close()
  for (const area of all()) area.close()
  await Promise.all([pace.stop(), reader.stop()])
  said.stopped()
}

function watchAgents(
  { dex, connectors }: WatchOptions,
  pace: Pace,
  problem: ReturnType<typeof createReport>["area"],
): AgentArea[] {
  const own = realOr(dex.home.dir)
  const everything = (root: string): Watched[] => [{ folder: root, depth: Infinity }]
  return connectors.flatMap((connector) =>
    connector.roots(dex.machine).flatMap((root) =>
      (connector.watched?.(root) ?? everything(root)).map(({ folder, depth, files, skip = [] }) => ({
        source: connector.source,
        area: watchArea(
          {
            folder,
            depth,
            ...(files && { files }),
            skips: (path) => path === own || basename(path) === "node_modules" || skip.includes(basename(path)),
            pollEveryMs: POLL_MS,
            // Waiting for it would mean to wake up at every write of our own.
            awaits: !folder.startsWith(dex.home.dir),
          },
          {
            changed: () => pace.touch(connector.source),
            problem: (why) => problem(folder, true, why),
          },
        ),
      })),
    ),
  )
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener("abort", () => resolve(), { once: true })
  })
}
