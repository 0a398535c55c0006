import { isDexSource } from "../agents/registry.ts"
import type { SourceId } from "../core/conversation.ts"
import type { Dex } from "../tools/context.ts"
import type { AreaWatch } from "./area.ts"
import type { WatchProblem } from "./folders.ts"
import { writeState } from "./instance.ts"
import type { ProjectChange } from "./listeners.ts"
import type { WatchState } from "./state.ts"

export type WatchEvent =
  | { event: "watching"; at: string; pid: number; folders: number; sources: SourceId[]; projects: string[] }
  | { event: "progress"; at: string; done: number; total: number }
  /** `source` is missing if everything was checked. */
  | { event: "looked"; at: string; source?: SourceId; conversations: number; messages: number; duration_ms: number }
  | { event: "project"; at: string; project: string; files?: number; git: boolean }
  | { event: "problem"; at: string; message: string }
  | { event: "stopped"; at: string }

export type AgentArea = { source: SourceId; area: AreaWatch }

/** How often to check folders that the system does not watch, in milliseconds. */
export const POLL_MS = 3_000

const WATCH_LIMIT_MESSAGE =
  "the system's limit is reached. To lift it: sudo sysctl fs.inotify.max_user_watches=524288 fs.inotify.max_user_instances=512."

/** Reports what happens and stores it for `dex watch --status`. Never reports the same problem twice in a row. */
export function createReport(dex: Pick<Dex, "home" | "now">, say: (event: WatchEvent) => void) {
  const at = () => new Date(dex.now()).toISOString()
  const problems = new Map<string, string>()
  const state = { pid: process.pid, since: at(), messages: 0 }
  const lastTimes: Pick<WatchState, "last_look" | "last_message"> = {}
  const polled = new Set<string>()
  let lastSummary = ""
  let onLook = () => {}
  const problem = (key: string, message: string | undefined) => {
    if (message === undefined) problems.delete(key)
    else if (problems.get(key) !== message) {
      problems.set(key, message)
      say({ event: "problem", at: at(), message })
    }
  }
  return {
    problem,
    onLook: (callback: () => void) => {
      onLook = callback
    },
    area: (folder: string, isPolled: boolean, watchProblem: WatchProblem) => {
      if (isPolled) polled.add(folder)
      const alternative = isPolled
        ? `dex checks it every ${POLL_MS / 1000} seconds instead.`
        : "dex reads changes there every ten minutes instead."
      problem(
        folder,
        `${folder} cannot be watched: ${watchProblem.limit ? WATCH_LIMIT_MESSAGE : `${watchProblem.message}.`} ${alternative}`,
      )
    },
    progress: ({ done, total }: { done: number; total: number }) => say({ event: "progress", at: at(), done, total }),
    looked: (
      source: SourceId | undefined,
      { conversations, messages, duration_ms }: { conversations: number; messages: number; duration_ms: number },
    ) => {
      lastTimes.last_look = at()
      if (messages > 0) lastTimes.last_message = lastTimes.last_look
      state.messages += messages
      onLook()
      say({ event: "looked", at: at(), source: source || undefined, conversations, messages, duration_ms })
    },
    project: ({ project, files, git }: ProjectChange) =>
      say({ event: "project", at: at(), project, files: files?.length, git }),
    /** Reports which folders are watched, if that has changed. */
    state: (agents: AgentArea[], areas: AreaWatch[], projects: string[]) => {
      const watchedAreas = agents.filter(({ area }) => ["watching", "polling"].includes(area.state().how))
      const sources = [...new Set(watchedAreas.map(({ source }) => source))].filter((source) => !isDexSource(source))
      const folders = areas.reduce((sum, area) => sum + area.state().folders, 0)
      const summary = JSON.stringify([sources, projects])
      if (summary !== lastSummary) say({ event: "watching", at: at(), pid: process.pid, folders, sources, projects })
      lastSummary = summary
      const latestProblem = [...problems.values()].at(-1)
      writeState(dex.home, {
        ...state,
        ...lastTimes,
        folders,
        polled: [...polled],
        projects,
        problem: latestProblem,
      })
    },
    stopped: () => say({ event: "stopped", at: at() }),
  }
}
