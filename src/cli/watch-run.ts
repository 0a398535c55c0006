import { isAbsolute, relative } from "node:path"
import { createDex } from "../app/dex.ts"
import { VERSION } from "../app/version.ts"
import { optedInProjects, optIn } from "../config/projects.ts"
import { isSamePath, withFolderSpelling } from "../core/path-key.ts"
import { toJson } from "../render/json.ts"
import { clip, safeLine, terminalOf } from "../render/terminal.ts"
import { withVisibleTexts } from "../render/visible.ts"
import { many, projectName, seconds, shortPath } from "../render/words.ts"
import { isPrivate, startDelivering } from "../tools/subscriptions/delivery.ts"
import { readState, takeInstance } from "../watch/instance.ts"
import type { WatchEvent } from "../watch/report.ts"
import { watchAll } from "../watch/watch.ts"
import { asTyped } from "./print/words.ts"

/** Runs `dex watch` until it is stopped. Returns the exit code. */
export async function watchCommand(json: boolean): Promise<number> {
  const dex = createDex({ env: process.env, cwd: process.cwd(), version: VERSION })
  const say = (text: string) =>
    void process.stderr.write(`${asTyped(safeLine(text), terminalOf(process.stderr, process.env))}\n`)
  try {
    const project = projectToWatch(dex)
    if (project !== undefined && optIn(dex.home, project))
      say(`${shortPath(project, dex.machine.home)} is now watched. To stop: run \`dex watch --off\` there.`)
    const instance = await takeInstance(dex.home)
    if (!instance) {
      const state = readState(dex.home)
      const identity = state ? ` (pid ${state.pid}, since ${state.since.slice(0, 16).replace("T", " ")} UTC)` : ""
      const ending = project === undefined ? "." : "; it now watches this project too."
      say(`\`dex watch\` is already running${identity}${ending} \`dex watch --status\` shows more.`)
      return 0
    }
    if (project === undefined && !json && optedInProjects(dex.home).length === 0)
      say(
        "No project is watched, only the agents' conversations. Start `dex watch` inside a project to watch that project too.",
      )
    const controller = new AbortController()
    const release = onSignals(() => controller.abort())
    const view = json ? jsonView() : terminalOf(process.stdout, process.env).interactive ? statusLine() : eventLines()
    const stopDelivering = startDelivering(dex, async (path) => !(await isPrivate(dex, path)), say)
    try {
      await watchAll({ dex, connectors: await dex.allConnectors(), signal: controller.signal, say: view })
    } finally {
      await stopDelivering()
      release()
      instance.release()
    }
    return 0
  } finally {
    dex.close()
  }
}

/**
 * The project to watch. Undefined for the home folder and every folder that contains it: such a folder is not a project, and dex
 * would watch its own files there.
 */
function projectToWatch(dex: { place: string; machine: { home: string }; home: { dir: string } }): string | undefined {
  const { home } = dex.machine
  const relativePath = relative(dex.place, withFolderSpelling(dex.place, home))
  const containsHome = isSamePath(dex.place, home) || (!relativePath.startsWith("..") && !isAbsolute(relativePath))
  return containsHome ? undefined : dex.place
}

/**
 * Calls `stop` on Ctrl-C, when the service is stopped, and when the terminal is closed. A second signal ends the process at once.
 * Returns a function that removes the handlers.
 */
function onSignals(stop: () => void): () => void {
  const signals = ["SIGINT", "SIGTERM", "SIGHUP"] as const
  let isStopping = false
  const handler = () => {
    if (isStopping) process.exit(130)
    isStopping = true
    stop()
  }
  for (const signal of signals) process.on(signal, handler)
  return () => {
    for (const signal of signals) process.off(signal, handler)
  }
}

type EventView = (event: WatchEvent) => void

function jsonView(): EventView {
  return (event) => void process.stdout.write(`${toJson(withVisibleTexts(event).output)}\n`)
}

function eventLines(): EventView {
  return (event) => {
    const line = lineOf(event)
    if (line === undefined) return
    const stream = event.event === "problem" ? process.stderr : process.stdout
    stream.write(`${event.at.slice(0, 19)}Z  ${safeLine(line)}\n`)
  }
}

function lineOf(event: WatchEvent): string | undefined {
  switch (event.event) {
    case "watching":
      return `watching ${describeWatched(event)} (${many(event.folders, "folder")})`
    case "progress":
      return `reading, ${event.done} of ${event.total} transcripts`
    case "looked":
      if (event.conversations === 0 && event.messages === 0) return undefined
      return `${event.source ?? "all agents"}: ${many(event.messages, "new message")} in ${many(event.conversations, "conversation")} (${seconds(event.duration_ms)})`
    case "project": {
      if (event.files === undefined && event.git) return `${projectName(event.project)}: checked completely`
      const files = event.files === undefined ? "many files" : event.files > 0 ? many(event.files, "file") : undefined
      const changes = [files, event.git ? "its git history" : undefined].filter(Boolean).join(" and ")
      return `${projectName(event.project)}: ${changes} changed`
    }
    case "problem":
      return event.message
    case "stopped":
      return "stopped"
  }
}

function describeWatched({ sources, projects }: { sources: string[]; projects: string[] }): string {
  const agents = sources.length === 0 ? "for agents" : sources.join(", ")
  return projects.length === 0 ? agents : `${agents} and ${many(projects.length, "project")}`
}

/** One line that is redrawn in place; problems are printed above it. */
function statusLine(): EventView {
  let head = "Starting"
  let activity = "nothing new yet"
  let messages = 0
  return (event) => {
    const terminal = terminalOf(process.stdout, process.env)
    const clock = () => new Date(event.at).toTimeString().slice(0, 8)
    if (event.event === "watching") head = `Watching ${describeWatched(event)}`
    if (event.event === "progress") activity = `reading, ${event.done} of ${event.total} transcripts`
    if (event.event === "looked") {
      messages += event.messages
      if (event.messages > 0) activity = `${many(messages, "new message")}, the last at ${clock()}`
      else if (messages === 0) activity = "nothing new yet"
    }
    const problemLine = event.event === "problem" ? `${safeLine(event.message)}\n` : ""
    if (event.event === "stopped") return void process.stdout.write("\r\x1b[KStopped.\n")
    process.stdout.write(
      `\r\x1b[K${problemLine}${clip(safeLine(`${head} · ${activity} · Ctrl-C ends`), terminal.columns - 1)}`,
    )
  }
}
