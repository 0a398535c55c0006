import { dexHome } from "../config/home.ts"
import { DexError, diskError, isDexError } from "../core/error.ts"
import { safe, terminalOf } from "../render/terminal.ts"
import { closestName } from "./args.ts"
import type { Command } from "./command.ts"
import { hasName, listedCommands, otherCommands } from "./other-commands.ts"
import { formatError, shellQuote } from "./print/words.ts"
import { quickCommands } from "./quick-commands.ts"
import { runWords } from "./run-command.ts"
import { hasPicker } from "./terminal/has-picker.ts"

/** Runs one command line. Results go to stdout, everything else to stderr. Returns the exit code; never throws. */
export async function main(argv: string[]): Promise<number> {
  try {
    return await dispatch(argv)
  } catch (error) {
    return printError(error)
  }
}

/** Says what went wrong. Returns the exit code. */
export function printError(thrown: unknown): number {
  // Any access to the disk may fail because it is full or not writable.
  const error = isDexError(thrown) ? thrown : (diskError(thrown, dexHome(process.env).dir, () => false) ?? thrown)
  if (isDexError(error)) process.stderr.write(formatError(error.message, terminalOf(process.stderr, process.env)))
  else
    process.stderr.write(
      `dex: unexpected error. Please report it, and say what you did.\n${safe((error as Error)?.stack ?? String(error))}\n`,
    )
  return 2
}

async function dispatch([name, ...rest]: string[]): Promise<number> {
  if (name === undefined || name === "--plain") return (await import("./home.ts")).showHome()
  if (name === "help" && rest.length > 0 && rest[0] !== "all") return dispatch([rest[0]!, "--help"])
  const otherCommand = otherCommands.find((command) => hasName(command, name))
  if (otherCommand) return otherCommand.run(rest)
  if (name === "config" && rest.length === 2 && rest[0] === "set" && rest[1]!.endsWith(".api_key"))
    return (await import("./terminal/questions.ts")).askKey(rest[1]!.slice(0, -".api_key".length))
  if (name === "hub" && rest[0] === "admin") return (await import("./hub-admin.ts")).hubAdminCommand(rest.slice(1))
  const isNamed = ({ tool }: Command) => hasName({ name: tool.name, ...tool.cli }, name)
  const commands = quickCommands.some(isNamed) ? quickCommands : (await import("./commands.ts")).commands
  const command = commands.find(isNamed)
  if (!command) throw unknownCommand(name, rest, commands)
  if (command.tool.name === "search" && rest.length === 0 && hasPicker(process.stdout, process.env)) {
    const code = await (await import("./open-picker.ts")).openPicker({})
    if (code !== undefined) return code
  }
  return runWords(command, rest, commands)
}

function unknownCommand(name: string, rest: readonly string[], commands: readonly Command[]): DexError {
  const names = listedCommands(commands).flatMap(({ name, aliases = [] }) => [name, ...aliases])
  const suggestion = closestName(name, names)
  const line = (words: string[]) => ["dex", ...words, ...rest].map(shellQuote).join(" ")
  const hint =
    suggestion === undefined
      ? `\`dex help all\` lists all commands.${name.startsWith("-") ? "" : ` To search: ${line(["search", name])}`}`
      : `Did you mean \`${line([suggestion])}\`?`
  return new DexError("usage", `There is no command "${name}". ${hint}`)
}
