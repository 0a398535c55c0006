import { VERSION } from "../app/version.ts"
import { terminalOf } from "../render/terminal.ts"
import type { Command, ListedCommand } from "./command.ts"
import { hasOldName } from "./forms.ts"

/** A command that is not a tool. It parses its own arguments and returns the exit code. */
export type OtherCommand = ListedCommand & { run(words: string[]): Promise<number> }

export const otherCommands: readonly OtherCommand[] = [
  {
    name: "pick",
    summary: "Print the ref of a conversation that you choose on the screen",
    group: "For agents and scripts",
    run: async (words) => (await import("./open-picker.ts")).pickCommand(words),
  },
  {
    name: "view",
    summary: "Open your history in the browser",
    group: "Find",
    common: true,
    run: async (words) => (await import("./view.ts")).viewCommand(words),
  },
  {
    name: "serve",
    summary: "Serve the memory to agents over MCP, on stdio or HTTP",
    group: "For agents and scripts",
    run: async (words) => (await import("./serve.ts")).serveCommand(words),
  },
  {
    name: "mcp",
    summary: "The old name of dex serve",
    group: "For agents and scripts",
    unlisted: true,
    run: async (words) => (await import("./serve.ts")).serveCommand(words),
  },
  {
    name: "hook",
    summary: "Answer an agent's hook; agents call it automatically",
    group: "For agents and scripts",
    run: async () => {
      const { pageHelp, HOOK_HELP: HOOK } = await import("./help.ts")
      return write(pageHelp(HOOK, stdout()))
    },
  },
  {
    name: "completions",
    summary: "Print shell completions: dex completions bash | zsh | fish",
    group: "For agents and scripts",
    run: async (words) => {
      if (words[0] === "--values")
        return write(await (await import("./completions.ts")).completeValues(words[1], words[2]))
      const { pageHelp, COMPLETIONS_HELP: COMPLETIONS } = await import("./help.ts")
      if (words.includes("--help") || words.includes("-h")) return write(pageHelp(COMPLETIONS, stdout()))
      if (words.includes("--widget")) return write((await import("./completions.ts")).keyBindingScript(words[0]))
      const { commands } = await import("./commands.ts")
      const tools = commands.map(({ tool }) => tool)
      return write((await import("./completions.ts")).completionScript(words[0], tools, listedCommands(commands)))
    },
  },
  {
    name: "help",
    aliases: ["-h", "--help"],
    summary: "Show help for a command, or list them all",
    group: "Keep",
    run: async ([topic]) => {
      const { allHelp, shortHelp } = await import("./help.ts")
      const { commands } = await import("./commands.ts")
      return write((topic === "all" ? allHelp : shortHelp)(listedCommands(commands), stdout()))
    },
  },
  {
    name: "version",
    aliases: ["-v", "-V", "--version"],
    summary: "Print the version of dex",
    group: "Keep",
    unlisted: true,
    run: async () => write(`dex ${VERSION}\n`),
  },
]

/** The commands that `dex help all` lists. Leaves out old names, and commands that people type as options, such as --version. */
export function listedCommands(commands: readonly Command[]): ListedCommand[] {
  const listed = commands.filter(({ tool }) => !hasOldName(tool))
  const others = otherCommands.filter(({ unlisted }) => !unlisted)
  return [...listed.map(({ tool: { name, summary, cli } }) => ({ ...cli, name, summary })), ...others]
}

export function hasName({ name, aliases }: Pick<ListedCommand, "name" | "aliases">, word: string): boolean {
  return name === word || aliases?.includes(word) === true
}

const stdout = () => terminalOf(process.stdout, process.env)

function write(text: string): number {
  process.stdout.write(text)
  return 0
}
