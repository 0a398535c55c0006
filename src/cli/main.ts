import { VERSION } from "../app/version.ts"
import { byName } from "../core/by-name.ts"
import { DexError, isDexError } from "../core/error.ts"
import { safe, terminalOf } from "../render/terminal.ts"
import { readArguments } from "./args.ts"
import { commands } from "./commands.ts"
import { printedError } from "./print/words.ts"
import { runCommand } from "./run-command.ts"

/** Runs one command line. Results go to stdout, everything else to stderr. Returns the exit code; never throws. */
export async function main(argv: string[]): Promise<number> {
  try {
    return await dispatch(argv)
  } catch (error) {
    if (isDexError(error)) process.stderr.write(printedError(error.message, terminalOf(process.stderr, process.env)))
    else
      process.stderr.write(
        `dex: an error that should not happen. Please report it with what you did.\n${safe((error as Error)?.stack ?? String(error))}\n`,
      )
    return 2
  }
}

async function dispatch([name, ...rest]: string[]): Promise<number> {
  if (name === undefined) return (await import("./home.ts")).showHome()
  if (name === "help" && rest.length > 0) return dispatch([rest[0]!, "--help"])
  const undeclared = byName(UNDECLARED, name)
  if (undeclared) return undeclared(rest)
  if (name === "config" && rest.length === 2 && rest[0] === "set" && rest[1]!.endsWith(".api_key"))
    return (await import("./ask-key.ts")).askKey(rest[1]!.slice(0, -".api_key".length))
  const command = commands.find(({ tool }) => tool.name === name || tool.cli.aliases?.includes(name))
  if (!command) throw unknownCommand(name)
  const { input, json, help } = readArguments(command.tool, rest)
  if (help) return write((await import("./help.ts")).toolHelp(command.tool, stdout()))
  return runCommand(command, input, json)
}

/** What is no tool: what tells about the others, and what serves agents. */
const UNDECLARED: Record<string, (rest: string[]) => Promise<number>> = {
  "-V": async () => write(`dex ${VERSION}\n`),
  version: async () => write(`dex ${VERSION}\n`),
  "-h": generalHelp,
  "--help": generalHelp,
  help: generalHelp,
  hook: async () => {
    const { pageHelp, HOOK } = await import("./help.ts")
    return write(pageHelp(HOOK, stdout()))
  },
  completions: async (rest) => {
    const { pageHelp, COMPLETIONS } = await import("./help.ts")
    if (rest.includes("--help") || rest.includes("-h")) return write(pageHelp(COMPLETIONS, stdout()))
    return write((await import("./completions.ts")).completions(rest[0], declared()))
  },
  mcp: async (rest) => (await import("./mcp.ts")).mcpCommand(rest),
  serve: async (rest) => (await import("./serve.ts")).serveCommand(rest),
}

async function generalHelp(): Promise<number> {
  return write((await import("./help.ts")).generalHelp(declared(), stdout()))
}

const declared = () => commands.map(({ tool }) => tool)
const stdout = () => terminalOf(process.stdout, process.env)

function unknownCommand(name: string): DexError {
  const close = commands.find(({ tool }) => tool.name.startsWith(name.slice(0, 3)))
  const hint = close ? ` Did you mean \`dex ${close.tool.name}\`?` : ""
  return new DexError(
    "usage",
    `There is no command "${name}".${hint} \`dex --help\` lists them. To search: dex search "${name}"`,
  )
}

function write(text: string): number {
  process.stdout.write(text)
  return 0
}
