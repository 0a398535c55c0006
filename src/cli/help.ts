import type { Schema } from "../core/schema.ts"
import type { Tool } from "../core/tool.ts"
import { padEnd, paint, type Terminal, wrap } from "../render/terminal.ts"
import { flagsOf, wordOf } from "./args.ts"

export function generalHelp(tools: readonly Tool<never>[], terminal: Terminal): string {
  const names = tools.map((tool) => tool.name)
  const width = Math.max(...names.map((name) => name.length), "completions".length) + 2
  const line = (name: string, summary: string) => rowLines([[name, summary]], terminal, width).join("\n")
  return [
    ...wrap("dex keeps and searches the conversations of all your coding agents, on this machine.", terminal.columns),
    "",
    paint(terminal, "bold", "Commands"),
    line("(none)", "First run: find the agents and read them. Later: what is new"),
    ...tools.map((tool) => line(tool.name, tool.summary)),
    line("serve", "Give agents this memory over MCP, on stdin and stdout or over HTTP"),
    line("mcp", "Serve one MCP tool that answers by itself: dex mcp agent"),
    line("hook", "What agents call at their hooks; you never have to"),
    line("completions", "Shell completions: dex completions bash | zsh | fish"),
    "",
    paint(terminal, "bold", "Try"),
    ...tools.slice(0, 4).map((tool) => `  ${tool.cli.example}`),
    "",
    ...wrap(
      "dex <command> --help tells more. --json prints JSON. Exit codes: 0 found, 1 nothing found, 2 error.",
      terminal.columns,
    ),
    "",
  ].join("\n")
}

export function toolHelp(tool: Tool<never>, terminal: Terminal): string {
  const { positional, rest } = tool.cli
  const words = [positional, rest].filter((field) => field !== undefined)
  const rows: [string, string][] = flagsOf(tool)
    .filter(({ path }) => path.join(".") !== rest)
    .map(({ name, short, schema }) => [
      `${short ? `-${short}, ` : "    "}--${name}${VALUES[schema.type] ?? " …"}`,
      sayValue(schema),
    ])
  rows.push(["    --json", "Print JSON."])
  const lines = [
    `dex ${[tool.name, ...words.map((field) => shownWord(tool, field)), "[options]"].join(" ")}`,
    "",
    ...wrap(`${tool.summary}.`, terminal.columns),
    "",
    ...words.flatMap((field) => {
      const told = sayValue(tool.input.properties![field]!)
      return told === "" ? [] : [...wrap(`${field}: ${told}`, terminal.columns), ""]
    }),
    ...rowLines(rows, terminal),
    "",
    `Example: ${tool.cli.example}`,
  ]
  if (tool.cli.aliases) lines.push(`Also: ${tool.cli.aliases.map((alias) => `dex ${alias}`).join(", ")}`)
  return `${lines.join("\n")}\n`
}

const VALUES: Partial<Record<Schema["type"], string>> = { boolean: "", integer: " N", number: " N" }

function shownWord(tool: Tool<never>, field: string): string {
  const several = tool.input.properties![field]!.type === "array" ? "…" : ""
  const shown = `${wordOf(tool, field)}${several}`
  return tool.input.required?.includes(field) ? `<${shown}>` : `[${shown}]`
}

function sayValue({ description, enum: choices, default: usual }: Schema): string {
  const one = choices ? `One of: ${choices.join(", ")}.` : undefined
  const isSaid = usual !== undefined && usual !== false && !(Array.isArray(usual) && usual.length === 0)
  return [description, one, isSaid ? `Default: ${String(usual)}.` : undefined].filter(Boolean).join(" ")
}

/** A name and what it is, below one another at any width. */
function rowLines(
  rows: readonly (readonly [name: string, text: string])[],
  terminal: Terminal,
  width = Math.max(...rows.map(([name]) => name.length)) + 2,
): string[] {
  return rows.flatMap(([name, text]) => {
    const [first = "", ...more] = wrap(text, Math.max(24, terminal.columns - width - 2))
    return [
      `  ${paint(terminal, "cyan", padEnd(name, width))}${first}`,
      ...more.map((line) => " ".repeat(width + 2) + line),
    ]
  })
}

/** The help of what is no declared command: paragraphs, then options, then examples. */
export type Page = {
  usage: string
  text: readonly string[]
  options: readonly (readonly [name: string, text: string])[]
  examples: readonly string[]
}

export function pageHelp({ usage, text, options, examples }: Page, terminal: Terminal): string {
  return `${[
    usage,
    "",
    ...text.flatMap((paragraph) => [...wrap(paragraph, terminal.columns), ""]),
    ...(options.length > 0 ? [...rowLines(options, terminal), ""] : []),
    ...examples.map(
      (example, i) => `${i === 0 ? (examples.length > 1 ? "Examples:" : "Example:") : "         "} ${example}`,
    ),
  ].join("\n")}\n`
}

export const HOOK: Page = {
  usage: "dex hook <agent> <event>",
  text: [
    "Answers an agent's hook: agents call it by themselves, once `dex install` has wired them, and you never have to. It reads what the agent sends on stdin, and prints the few lines that matter then, or nothing. It always exits with 0, and within 250 ms.",
    "What it said: dex suggestions. What went wrong: dex doctor. To silence it: dex mute, DEX_QUIET=1, or dex config set proactive.enabled false. To take it out: dex uninstall.",
  ],
  options: [],
  examples: ["dex hook claude_code SessionStart"],
}

export const COMPLETIONS: Page = {
  usage: "dex completions <bash | zsh | fish>",
  text: ["Prints a script with which your shell completes commands and options."],
  options: [],
  examples: ["dex completions bash >> ~/.bashrc"],
}
