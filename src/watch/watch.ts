import { type FSWatcher, watch } from "node:fs"
import { basename } from "node:path"
import type { Connector, Watched } from "../agents/kit/connector.ts"
import { optedInProjects, prepareProjects, projectsFile } from "../config/projects.ts"
import type { SourceId } from "../core/conversation.ts"
import { messageOf } from "../core/error.ts"
import type { SyncProgress } from "../ingest/sync-types.ts"
import { isSubprocessEnded, type Subprocess, subprocessFile } from "../subprocess/link.ts"
import { startProcess } from "../subprocess/process.ts"
import type { Dex } from "../tools/context.ts"
import { watchArea } from "./area.ts"
import { listeners } from "./listeners.ts"
import type { Order, OrderReport } from "./orders.ts"
import { openProject, type Project, resolveLinks } from "./project.ts"
import { type AgentArea, createReport, POLL_MS, type WatchEvent } from "./report.ts"

type WatchOptions = {
  dex: Pick<Dex, "home" | "machine" | "now" | "cwd" | "version">
  connectors: readonly Connector[]
  signal: AbortSignal
  say(event: WatchEvent): void
}

const ALL_AGENTS_KEY = "*"
const PROJECT_KEY_PREFIX = "project:"
/** The time between two reads of everything, in milliseconds. Events can be lost when a queue is full or on a network disk. */
const READ_ALL_INTERVAL_MS = 600_000
const RECHECK_INTERVAL_MS = 60_000

/** Keeps the history and the opted-in projects current until the signal is aborted. */
export async function watchAll(options: WatchOptions): Promise<void> {
  const { dex, signal } = options
  const report = createReport(dex, options.say)
  const reader = createReader({ env: { ...dex.machine.env }, cwd: dex.home.dir, version: dex.version }, (line) =>
    report.problem("reader", line),
  )
  const projects = new Map<string, Project>()
  let revision: string | undefined
  const syncOrder = (key: string) => ({
    type: "sync" as const,
    source: key !== ALL_AGENTS_KEY ? (key as SourceId) : undefined,
    after: revision,
  })
  const readAgents = async (key: string): Promise<LookOutcome> => {
    const answer = await reader.ask(syncOrder(key), report.progress)
    if (answer.busy) return "busy"
    revision = answer.seen
    report.problem(key, answer.problems[0])
    report.looked(key === ALL_AGENTS_KEY ? undefined : (key as SourceId), answer)
    return { tookMs: answer.duration_ms }
  }
  const readProject = async (project: Project): Promise<LookOutcome> => {
    const change = project.take()
    report.project(change)
    if (listeners.project.length === 0) return "done"
    try {
      const { busy, problems } = await reader.ask({ type: "project", ...change }, () => {})
      report.problem(PROJECT_KEY_PREFIX + change.project, problems[0])
      if (busy) project.missed()
      return busy ? "busy" : "done"
    } catch (error) {
      project.missed()
      throw error
    }
  }
  const look = async (key: string): Promise<LookOutcome> => {
    try {
      if (!key.startsWith(PROJECT_KEY_PREFIX)) return await readAgents(key)
      const project = projects.get(key.slice(PROJECT_KEY_PREFIX.length))
      return project ? await readProject(project) : "done"
    } catch (error) {
      if (signal.aborted) return "done"
      report.problem(key, messageOf(error))
      return "failed"
    }
  }
  const schedule = createLookSchedule(look)
  const areas = watchAgents(options, schedule, report.area)
  const allAreas = () => [
    ...areas.map(({ area }) => area),
    ...[...projects.values()].flatMap((project) => project.areas),
  ]
  const reportState = () => report.state(areas, allAreas(), [...projects.keys()])

  const updateProjects = async () => {
    const optedInPaths = optedInProjects(dex.home)
    for (const [path, project] of projects) {
      if (optedInPaths.includes(path)) continue
      project.close()
      projects.delete(path)
    }
    for (const path of optedInPaths) {
      if (projects.has(path)) continue
      const touched = () => schedule.touch(PROJECT_KEY_PREFIX + path)
      const project = await openProject(path, dex.home.dir, {
        touched,
        problem: (watchProblem) => report.area(path, false, watchProblem),
      })
      projects.set(path, project)
      // Something may have changed before the watch began.
      project.missed()
      touched()
    }
    reportState()
  }
  let pendingUpdate = Promise.resolve()
  const queueUpdate = () => {
    pendingUpdate = pendingUpdate.then(updateProjects)
    return pendingUpdate
  }
  prepareProjects(dex.home)
  const projectsFileWatch = watchFile(projectsFile(dex.home), () => void queueUpdate())
  await queueUpdate()
  schedule.touch(ALL_AGENTS_KEY)
  const timers = [
    setInterval(() => {
      for (const area of allAreas()) area.recheck()
      reportState()
    }, RECHECK_INTERVAL_MS),
    setInterval(() => {
      schedule.touch(ALL_AGENTS_KEY)
      for (const project of projects.values()) void project.recheck()
    }, READ_ALL_INTERVAL_MS),
  ]
  report.onLook(reportState)
  await waitForAbort(signal)
  for (const timer of timers) clearInterval(timer)
  projectsFileWatch.close()
  for (const area of allAreas()) area.close()
  await Promise.all([schedule.stop(), reader.stop()])
  report.stopped()
}

function watchAgents(
  { dex, connectors }: WatchOptions,
  schedule: LookSchedule,
  problem: ReturnType<typeof createReport>["area"],
): AgentArea[] {
  const dexFolder = resolveLinks(dex.home.dir)
  const everything = (root: string): Watched[] => [{ folder: root, depth: Infinity }]
  return connectors.flatMap((connector) =>
    connector.roots(dex.machine).flatMap((root) =>
      (connector.watched?.(root) ?? everything(root)).map(({ folder, depth, files, skip = [] }) => ({
        source: connector.source,
        area: watchArea(
          {
            folder,
            depth,
            files,
            skips: (path) => path === dexFolder || basename(path) === "node_modules" || skip.includes(basename(path)),
            pollEveryMs: POLL_MS,
            // Do not wait for folders to be created in dex's own folder, because every write by dex there would be an event.
            awaits: !folder.startsWith(dex.home.dir),
          },
          {
            changed: () => schedule.touch(connector.source),
            problem: (watchProblem) => problem(folder, true, watchProblem),
          },
        ),
      })),
    ),
  )
}

function waitForAbort(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener("abort", () => resolve(), { once: true })
  })
}

/**
 * Watches a small file that is replaced, never modified in place. The file itself is watched, because its folder also contains
 * the databases.
 */
function watchFile(path: string, changed: () => void): { close(): void } {
  let watcher: FSWatcher | undefined
  let closed = false
  const open = () => {
    watcher?.close()
    if (closed) return
    try {
      watcher = watch(path, () => {
        open()
        changed()
      })
      watcher.on("error", () => watcher?.close())
    } catch {
      // The file always exists. If it cannot be watched, changes take effect when dex watch is restarted.
    }
  }
  open()
  return {
    close: () => {
      closed = true
      watcher?.close()
    },
  }
}

/**
 * The outcome of a look, which reads what changed for one agent or project. After `busy`, try again soon, because another process
 * is doing the work. `tookMs` is how long the work took, without the start of the reading process.
 */
export type LookOutcome = "done" | { tookMs: number } | "busy" | "failed"

type LookSchedule = {
  /** Marks a key as changed. The key is looked at soon, and only once, however often this is called until then. */
  touch(key: string): void
  /** Starts no more looks, and resolves when the current one is done. */
  stop(): Promise<void>
}

/** How long to wait after the first change, in milliseconds, because programs write a message in several pieces. */
const GATHER_DELAY_MS = 100
/** The minimum time between two looks at something that changes all the time, in milliseconds. */
const MIN_INTERVAL_MS = 1_000
/** The time between the starts of two looks at a key is at least this many times the duration of the first one. */
const PAUSE_FACTOR = 5
const MAX_INTERVAL_MS = 60_000
const FIRST_RETRY_MS = 5_000
const MAX_RETRY_MS = 300_000

type ScheduleEntry = { wantedAt?: number; notBefore: number; failures: number }

/**
 * Decides when to look at each key, which stands for an agent or a project: soon after it changed, never continuously, one at a
 * time, and less often after failures.
 */
export function createLookSchedule(
  look: (key: string) => Promise<LookOutcome>,
  now: () => number = () => performance.now(),
): LookSchedule {
  const entries = new Map<string, ScheduleEntry>()
  let timer: NodeJS.Timeout | undefined
  let currentLook: Promise<void> | undefined
  let stopped = false

  const dueAt = (entry: ScheduleEntry) => Math.max(entry.wantedAt! + GATHER_DELAY_MS, entry.notBefore)
  const planNext = () => {
    clearTimeout(timer)
    if (stopped || currentLook) return
    const nextEntry = [...entries]
      .filter(([, entry]) => entry.wantedAt !== undefined)
      .sort(([, a], [, b]) => dueAt(a) - dueAt(b))[0]
    if (nextEntry) timer = setTimeout(() => startLook(...nextEntry), Math.max(0, dueAt(nextEntry[1]) - now()))
  }
  const startLook = (key: string, entry: ScheduleEntry) => {
    entry.wantedAt = undefined
    const startedAt = now()
    currentLook = look(key)
      .catch((): LookOutcome => "failed")
      .then((outcome) => {
        currentLook = undefined
        recordOutcome(entry, outcome, startedAt)
        planNext()
      })
  }
  const recordOutcome = (entry: ScheduleEntry, outcome: LookOutcome, startedAt: number) => {
    entry.failures = outcome === "failed" ? entry.failures + 1 : 0
    if (outcome === "done" || typeof outcome === "object") {
      const tookMs = typeof outcome === "object" ? outcome.tookMs : now() - startedAt
      entry.notBefore = startedAt + Math.min(MAX_INTERVAL_MS, Math.max(MIN_INTERVAL_MS, tookMs * PAUSE_FACTOR))
      return
    }
    entry.wantedAt ??= now()
    const waitMs =
      outcome === "busy" ? MIN_INTERVAL_MS : Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (entry.failures - 1))
    entry.notBefore = now() + waitMs
  }
  return {
    touch: (key) => {
      const entry = entries.get(key) ?? { notBefore: Number.NEGATIVE_INFINITY, failures: 0 }
      entries.set(key, entry)
      if (entry.wantedAt !== undefined) return
      entry.wantedAt = now()
      planNext()
    },
    stop: async () => {
      stopped = true
      clearTimeout(timer)
      await currentLook
    },
  }
}

type ReaderStart = { env: Record<string, string | undefined>; cwd: string; version: string }

type ReaderProcess = {
  /**
   * Sends an order. The caller must wait for each order before it sends the next one. Throws if the order failed, or if the
   * process ended or cannot be started.
   */
  ask(order: Order, onProgress: (progress: SyncProgress) => void): Promise<OrderReport>
  stop(): Promise<void>
}

/** How long the reading process may be idle, in milliseconds. After that, dex ends it to free its memory. */
const IDLE_MS = 20_000
/** Flags that limit the memory for new objects. By default, V8 lets garbage grow to 50 MB or more before collecting it. */
const HEAP_FLAGS = ["--max-semi-space-size=4"]

/** Reads in a separate process, which is started when there is something to do. */
export function createReader({ env, cwd, version }: ReaderStart, log: (line: string) => void): ReaderProcess {
  let current: Subprocess<Order, OrderReport, SyncProgress> | undefined
  let idleTimer: NodeJS.Timeout | undefined
  const ensureRunning = (): NonNullable<typeof current> => {
    const file = subprocessFile("./reader-process.ts", import.meta.url)
    if (!current || current.hasEnded())
      current = startProcess(file, { args: [version], flags: HEAP_FLAGS, cwd, env, log })
    return current
  }
  const endProcess = async () => {
    const endingProcess = current
    clearTimeout(idleTimer)
    current = undefined
    await endingProcess?.end()
  }
  return {
    stop: endProcess,
    ask: async (order, onEvent) => {
      clearTimeout(idleTimer)
      try {
        return await ensureRunning().ask(order, { onEvent })
      } catch (error) {
        if (!isSubprocessEnded(error)) throw error
        throw error.isNotStarted
          ? startError(error)
          : new Error(`The reading process ended unexpectedly (${error.message}).`)
      } finally {
        idleTimer = setTimeout(() => void endProcess(), IDLE_MS).unref()
      }
    },
  }
}

function startError(error: Error): Error {
  return new Error(
    `The reading process cannot be started (${error.message}). dex will try again. If Node or dex was moved or replaced, stop dex watch and start it again.`,
    { cause: error },
  )
}
