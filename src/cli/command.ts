import type { CommandGroup, InputOf, OutputOf, Tool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import type { PrintContext, Printed, ReadPage } from "./print/words.ts"

/** Turns what a tool answered into lines for a person. */
export type View<I, O> = (output: O, context: PrintContext, input: I) => Printed | Promise<Printed>

/** Turns it into what is read on a terminal, with more than the tool's answer where it needs it. */
export type ReadView<I, O> = (output: O, context: PrintContext, input: I, dex: Dex) => Promise<ReadPage>

/** What a terminal adds to a declared tool. What it needs for that is loaded when it is asked for. */
export type Face<I, O> = {
  view: () => Promise<View<I, O>>
  /** How it is read on a terminal, of what is long (`cli.paged`). Without it, as `view` prints it. */
  reader?: () => Promise<ReadView<I, O>>
  /** Asks, on a terminal, what should be known before it runs. Returns the input with the answer. */
  before?: (input: I) => Promise<I>
  /** The form that does not just run and print. Returns its exit code, or undefined where this input asks for the usual. */
  instead?: (input: I, json: boolean) => Promise<number | undefined>
  /**
   * Asks what must be asked before it is done. True, or what was chosen: it runs again, confirmed. Throws a DexError
   * where the answer is no.
   */
  confirm?: (output: O, input: I, dex: Dex) => Promise<boolean | Partial<I>>
  /** What is looked at once it was confirmed and done. It is shown below, and says how the command ends. */
  after?: (input: I, dex: Dex) => Promise<O>
  /** The first Ctrl-C lets it end in order. `keeps` says what stays of it; `signals` are heard as well. */
  stops?: { keeps: string; signals?: readonly NodeJS.Signals[] }
  /** Its answer comes from all that is read: where something is not read yet, that is said below it. */
  asksAll?: true
  /** What is started when all is done and closed, and goes on by itself. */
  behind?: (dex: Dex) => Promise<unknown>
  /** With --json it tells its progress too, one event a line. */
  streams?: boolean
}

export type Command = { tool: Tool<Dex>; face: Face<unknown, unknown> }

/** A face that does not fit its tool does not compile. From here on both are known to fit, and a list can hold them all. */
export function command<T extends Tool<Dex>>(tool: T, face: Face<InputOf<T>, OutputOf<T>>): Command {
  return { tool, face: face as Face<unknown, unknown> }
}

/** A command as lists of commands show it. */
export type ListedCommand = {
  name: string
  aliases?: readonly string[]
  summary: string
  group: CommandGroup
  common?: true
  /** It is not in a list of commands. */
  unlisted?: true
}
