import type { CommandGroup, InputOf, OutputOf, Tool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import type { PrintContext, PrintedOutput, ReadPage } from "./print/words.ts"

/** Turns a tool's output into lines for a person. */
export type View<I, O> = (output: O, context: PrintContext, input: I) => PrintedOutput | Promise<PrintedOutput>

/** Turns a tool's output into a page to read on a terminal. The function may read more from dex. */
export type ReadView<I, O> = (output: O, context: PrintContext, input: I, dex: Dex) => Promise<ReadPage>

/** How a tool behaves in a terminal. Its functions import their code when they are called. */
export type Face<I, O> = {
  view: () => Promise<View<I, O>>
  /** For long output (`cli.paged`) on a terminal. If absent, the pager shows what `view` prints. */
  reader?: () => Promise<ReadView<I, O>>
  /** Asks the person something before the tool runs. Returns the input with the answer. */
  before?: (input: I) => Promise<I>
  /**
   * Replaces the run and the output of the tool for some inputs. Returns the exit code, or undefined if the tool should run
   * normally.
   */
  runInstead?: (input: I, json: boolean) => Promise<number | undefined>
  /**
   * Asks for confirmation. If it returns true or the person's choices, the tool runs again with `yes` and these choices. Throws a
   * DexError if the answer is no.
   */
  confirm?: (output: O, input: I, dex: Dex) => Promise<boolean | Partial<I>>
  /** Runs after a confirmed change. Its output is shown below the tool's and decides the exit code. */
  after?: (input: I, dex: Dex) => Promise<O>
  /**
   * If set, the first Ctrl-C lets the tool finish cleanly. `keptNote` says what is kept; `signals` are handled like Ctrl-C.
   */
  onInterrupt?: { keptNote: string; signals?: readonly NodeJS.Signals[] }
  /** Set if the output depends on the complete history. A note then says if part of the history has not been read yet. */
  needsAllHistory?: true
  /** Returns something worth knowing about the output, on a terminal only. */
  tip?: (output: O, dex: Dex) => Promise<string | undefined>
  /** Starts a background process at the end of the command. */
  background?: (dex: Dex) => Promise<unknown>
  /** True if --json also prints the progress, one event per line. */
  streams?: boolean
}

export type Command = { tool: Tool<Dex>; face: Face<unknown, unknown> }

/** The compiler checks here that the face fits the tool. The types are then erased, so that one list can contain all commands. */
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
  /** True if lists of commands leave it out. */
  unlisted?: true
}

/** True if the tool changed nothing because nobody confirmed the change. */
export function isUnconfirmed(output: unknown): boolean {
  return (output as { asked?: boolean }).asked === true
}
