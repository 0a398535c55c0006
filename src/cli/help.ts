import type { Tool } from "../core/tool.ts"
import { padEnd, paint, type Terminal, wrap } from "../render/terminal.ts"
import { flagsOf } from "./args.ts"

export function generalHelp(tools: readonly Tool<never>[], terminal: Terminal): string {
  const names = tools.map((tool) => tool.name)
  const width = Math.max(...names.map((name) => name.length), "completions".length) + 2
  const line = (name: string, summary: string) => {
    const [first, ...more] = wrap(summary, terminal.columns - width - 2)
    const rest = more.map((text) => " ".repeat(width + 2) + text)
    return [`  ${paint(terminal, "cyan", padEnd(name, width))}${first}`, ...rest].join("\n")
  }
  return [
    ...wrap("dex keeps and searches the conversations of all your coding agents, on this machine.", terminal.columns),
    "",
    paint(terminal, "bold", "Commands"),
    line("(none)", "First run: find the agents and read them. Later: what is new"),
    ...tools.map((tool) => line(tool.name, tool.summary)),
    line("serve", "Give agents this memory over MCP, on stdin and stdout or over HTTP"),
    line("mcp", "Serve one MCP tool that answers by itself: dex mcp agent"),
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
  const flags = flagsOf(tool)
  const positional = tool.cli.positional
  const field = positional === undefined ? undefined : tool.input.properties![positional]
  const needed = tool.input.required?.includes(positional ?? "")
  const shown =
    positional === undefined
      ? ""
      : field?.type === "array"
        ? ` <${positional.replace(/s$/, "")}…>`
        : needed
          ? ` <${positional}>`
          : ` [${positional}]`
  const more = tool.cli.rest === undefined ? "" : ` [${tool.cli.rest}]`
  const rows: [string, string][] = flags.map((flag) => [
    `${flag.short ? `-${flag.short}, ` : "    "}--${flag.name}${flag.schema.type === "boolean" ? "" : flag.schema.type === "integer" ? " N" : " …"}`,
    `${flag.schema.description ?? ""}${flag.schema.enum ? ` One of: ${flag.schema.enum.join(", ")}.` : ""}${flag.schema.default === undefined ? "" : ` Default: ${String(flag.schema.default)}.`}`.trim(),
  ])
  rows.push(["    --json", "Print JSON."])
  const width = Math.max(...rows.map(([name]) => name.length)) + 2
  const lines = [`dex ${tool.name}${shown}${more} [options]`, "", `${tool.summary}.`, ""]
  if (field?.description) lines.push(...wrap(`${positional}: ${field.description}`, terminal.columns), "")
  for (const [name, text] of rows) {
    const [first = "", ...rest] = wrap(text, Math.max(24, terminal.columns - width - 2))
    lines.push(
      `  ${paint(terminal, "cyan", padEnd(name, width))}${first}`,
      ...rest.map((more) => " ".repeat(width + 2) + more),
    )
  }
  lines.push("", `Example: ${tool.cli.example}`)
  if (tool.cli.aliases) lines.push(`Also: ${tool.cli.aliases.map((alias) => `dex ${alias}`).join(", ")}`)
  return `${lines.join("\n")}\n`
}
