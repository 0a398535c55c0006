import type { OutputOf } from "../../core/tool.ts"
import { paint, safeLine, type Terminal } from "../../render/terminal.ts"
import { many, shortPath, when } from "../../render/words.ts"
import type { WatchState } from "../../watch/state.ts"
import type { watch } from "../tools/watch.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

export type WatchOutput = OutputOf<typeof watch>
type Service = NonNullable<WatchOutput["service"]>

export function printWatch(
  output: WatchOutput,
  { home }: PrintContext,
  input: { off?: boolean; install?: boolean },
): PrintedOutput {
  if (output.service)
    return {
      lines: [serviceLine(output.service, home, input.install === true)],
      ...(input.install && serviceNote(output.service)),
    }
  if (input.off)
    return output.removed === undefined
      ? { lines: [], notes: ["This folder's project was not watched."] }
      : { lines: [`${shortPath(output.removed, home)} is no longer watched.`] }
  if (!output.running)
    return {
      lines: [],
      notes: [
        "dex watch is not running. Run `dex watch` to start it. Agents and commands also read new conversations without it.",
      ],
    }
  return { lines: stateLines(output.state, home) }
}

/** The lines that show the service's file and the commands to run. */
export function serviceLines({ change, path, content, commands }: Service, terminal: Terminal): string[] {
  const dim = (text: string) => paint(terminal, "dim", text)
  const heading = change === "remove" ? `Remove ${path}` : `${change === "none" ? "Already there:" : "Write"} ${path}`
  return [
    paint(terminal, "bold", safeLine(heading)),
    ...(content === undefined
      ? []
      : content
          .trimEnd()
          .split("\n")
          .map((line) => dim(`  ${safeLine(line)}`))),
    ...commands.map((command) => `Run ${safeLine(command.join(" "))}`),
  ]
}

function serviceLine({ change, path }: Service, home: string, isInstalled: boolean): string {
  const file = shortPath(path, home)
  if (change === "remove") return `The service is stopped and ${file} is removed.`
  if (!isInstalled) return `There is no service at ${file}.`
  return `The service is ${change === "none" ? "already " : ""}running. Its file is ${file}.`
}

function serviceNote({ note }: Service): { notes?: string[] } {
  return note === undefined ? {} : { notes: [note] }
}

function stateLines(state: WatchState | undefined, home: string): string[] {
  if (!state) return ["dex watch is running, but has not reported yet."]
  const runningText = `running since ${when(state.since)}, pid ${state.pid}`
  const messagesText =
    state.last_message === undefined
      ? "no new message since"
      : `${many(state.messages, "new message")}, the last at ${when(state.last_message)}`
  return [
    runningText,
    `${messagesText}; last checked ${when(state.last_look)}`,
    `${many(state.folders, "folder")} watched`,
    ...state.projects.map((path) => `project ${shortPath(safeLine(path), home)}`),
    ...state.polled.map((path) => `checked every few seconds instead of watched:  ${shortPath(safeLine(path), home)}`),
    ...(state.problem === undefined ? [] : [`problem: ${safeLine(state.problem)}`]),
  ]
}
