import type { Schema } from "../core/schema.ts"
import { COMMAND_GROUPS, type Tool } from "../core/tool.ts"
import { padEnd, paint, type Terminal, wrap } from "../render/terminal.ts"
import { flagsOf, screenOptions, singularName } from "./args.ts"
import type { ListedCommand } from "./command.ts"
import { asTyped } from "./print/words.ts"

/** The help that fits on one screen: the commands that most people need, and how to list all commands. */
export function shortHelp(commands: readonly ListedCommand[], terminal: Terminal): string {
  const commonCommands = commands.filter(({ common }) => common).map(({ aliases: _, ...command }) => command)
  const moreRows: [string, string][] = [
    ["dex", "Open the picker: search as you type, resume, read"],
    ["dex help all", `List all ${commands.length} commands`],
    ["dex help COMMAND", "Show a command's options and an example"],
  ]
  const lines = [
    ...wrap("dex stores your coding agents' conversations on this machine and finds them.", terminal.columns),
    "",
    ...groupedLines(commonCommands, terminal),
    "",
    ...rowLines(moreRows, terminal, 0, ""),
    ...wrap("With --json, commands print JSON. Exit codes: 0 found, 1 nothing found, 2 error.", terminal.columns),
  ]
  return `${lines.join("\n")}\n`
}

export function allHelp(commands: readonly ListedCommand[], terminal: Terminal): string {
  const lines = [
    ...groupedLines(commands, terminal),
    "",
    ...paragraph(
      "dex help COMMAND shows a command's options, its forms and an example. dex --version prints the version.",
      terminal,
    ),
  ]
  return `${lines.join("\n")}\n`
}

function groupedLines(commands: readonly ListedCommand[], terminal: Terminal): string[] {
  const width = Math.max(...commands.map(({ name }) => name.length)) + 2
  const margin =
    Math.max(...COMMAND_GROUPS.map(({ length }) => length).filter((length) => length <= MAX_LABEL_LENGTH)) + 2
  const groups = COMMAND_GROUPS.map((group) => {
    const members = commands.filter((command) => command.group === group)
    if (members.length === 0) return []
    const sorted = [...members.filter(({ common }) => common), ...members.filter(({ common }) => !common)]
    const rows = sorted.map((command) => [command.name, withAliases(command)] as const)
    const [first = "", ...more] = rowLines(rows, terminal, width, " ".repeat(margin))
    if (group.length > MAX_LABEL_LENGTH) return [paint(terminal, "bold", group), first, ...more]
    return [paint(terminal, "bold", padEnd(group, margin)) + first.slice(margin), ...more]
  })
  return groups.filter((lines) => lines.length > 0).flatMap((lines, i) => (i === 0 ? lines : ["", ...lines]))
}

/** The longest group label that is shown next to the group's first command. A longer one is shown above it. */
const MAX_LABEL_LENGTH = 10

function withAliases({ summary, aliases }: ListedCommand): string {
  return aliases === undefined ? summary : `${summary} (also: ${aliases.join(", ")})`
}

export function toolHelp(tool: Tool<never>, terminal: Terminal, forms: [string, string][] = []): string {
  const { positional, rest } = tool.cli
  const words = [positional, rest].filter((field) => field !== undefined)
  const rows: [string, string][] = flagsOf(tool)
    .filter(({ path }) => path.join(".") !== rest)
    .map(({ name, shorts: [short, ...more], schema }) => [
      `${short ? `-${short}, ` : "    "}--${name}${VALUE_HINTS[schema.type] ?? " …"}`,
      [describeValue(schema), ...more.map((letter) => `Also: -${letter}.`)].join(" "),
    ])
  rows.push(...screenOptions(tool).map(([name, description]): [string, string] => [`    --${name}`, description]))
  rows.push(["    --json", "Print JSON."])
  const lines = [
    asTyped(`dex ${[tool.name, ...words.map((field) => placeholderOf(tool, field)), "[options]"].join(" ")}`, terminal),
    "",
    ...wrap(`${tool.summary}.`, terminal.columns),
    "",
    ...words.flatMap((field) => {
      const description = describeValue(tool.input.properties![field]!)
      return description === "" ? [] : [...paragraph(`${field}: ${description}`, terminal), ""]
    }),
    ...rowLines(rows, terminal),
    "",
    ...(tool.cli.forms || forms.length > 0
      ? [...rowLines([...Object.entries(tool.cli.forms ?? {}), ...forms], terminal), ""]
      : []),
    asTyped(`Example: ${tool.cli.example}`, terminal),
  ]
  if (tool.cli.aliases)
    lines.push(asTyped(`Also: ${tool.cli.aliases.map((alias) => `dex ${alias}`).join(", ")}`, terminal))
  return `${lines.join("\n")}\n`
}

const VALUE_HINTS: Partial<Record<Schema["type"], string>> = { boolean: "", integer: " N", number: " N" }

function placeholderOf(tool: Tool<never>, field: string): string {
  const ellipsis = tool.input.properties![field]!.type === "array" ? "…" : ""
  const name = `${singularName(tool, field)}${ellipsis}`
  return tool.input.required?.includes(field) ? `<${name}>` : `[${name}]`
}

function describeValue({ description, enum: choices, default: defaultValue }: Schema): string {
  const choicesText = choices ? `One of: ${choices.join(", ")}.` : undefined
  const isEmptyList = Array.isArray(defaultValue) && defaultValue.length === 0
  const hasDefault = defaultValue !== undefined && defaultValue !== false && !isEmptyList
  const defaultText = hasDefault ? `Default: ${String(defaultValue)}.` : undefined
  return [description, choicesText, defaultText].filter(Boolean).join(" ")
}

function paragraph(text: string, terminal: Terminal): string[] {
  return wrap(asTyped(text, terminal), terminal.columns)
}

/** Names on the left, their descriptions wrapped in a column on the right. */
function rowLines(
  entries: readonly (readonly [name: string, text: string])[],
  terminal: Terminal,
  fixedWidth = 0,
  indent = "  ",
): string[] {
  const rows = entries.map(([name, text]) => [asTyped(name, terminal), asTyped(text, terminal)] as const)
  const width = fixedWidth || Math.max(...rows.map(([name]) => name.length)) + 2
  const room = terminal.columns - width - indent.length
  return rows.flatMap(([name, text]) => {
    const [first = "", ...more] = wrap(text, Math.max(24, room))
    return [
      `${indent}${paint(terminal, "cyan", padEnd(name, width))}${first}`,
      ...more.map((line) => indent + " ".repeat(width) + line),
    ]
  })
}

/** The help of a command that is not a tool: paragraphs, then options, then examples. */
export type Page = {
  usage: string
  text: readonly string[]
  options: readonly (readonly [name: string, text: string])[]
  examples: readonly string[]
}

export function pageHelp({ usage, text, options, examples }: Page, terminal: Terminal): string {
  return `${[
    asTyped(usage, terminal),
    "",
    ...text.flatMap((line) => [...paragraph(line, terminal), ""]),
    ...(options.length > 0 ? [...rowLines(options, terminal), ""] : []),
    ...examples.map(
      (example, i) =>
        `${i === 0 ? (examples.length > 1 ? "Examples:" : "Example:") : "         "} ${asTyped(example, terminal)}`,
    ),
  ].join("\n")}\n`
}

export const HOOK_HELP: Page = {
  usage: "dex hook <agent> <event>",
  text: [
    "Answers an agent's hook. Agents call it automatically once `dex install` has connected them; you never have to. It reads the agent's input on stdin and prints a few relevant lines, or nothing. It always exits with 0, and within 250 ms.",
    "To see its suggestions: dex suggest --list. To see problems: dex doctor. To silence it: dex suggest --mute, DEX_QUIET=1, or dex config set proactive.enabled false. To remove it: dex uninstall.",
  ],
  options: [],
  examples: ["dex hook claude_code SessionStart"],
}

export const COMPLETIONS_HELP: Page = {
  usage: "dex completions <bash | zsh | fish> [--widget]",
  text: [
    "Prints a script that lets your shell complete commands, options, projects, agents and your newest conversations.",
  ],
  options: [
    [
      "--widget",
      "Print a key binding instead: ^G opens the picker and puts `dex resume <ref>` on the line, or only the ref if something is already typed.",
    ],
  ],
  examples: ["dex completions bash >> ~/.bashrc", "dex completions bash --widget >> ~/.bashrc"],
}

export const PICK_HELP: Page = {
  usage: "dex pick [words]",
  text: [
    "Opens the picker with these words and prints the ref of the conversation that you choose. It is drawn on stderr, so that you can use it inside a command. Exits with 1 when you leave without choosing.",
  ],
  options: [],
  examples: ["dex show $(dex pick)", "dex show $(dex pick refresh token)"],
}
