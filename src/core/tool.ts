import { type Infer, readAs, type Schema } from "./schema.ts"
import type { TraceCommand, TraceFacts } from "./trace.ts"

/**
 * Something that dex can do, declared once. The command, the MCP tool, the HTTP route and the reference page are derived from it.
 * A declaration loads without its implementation, which `run` imports when it is called.
 */
export type Tool<Context, I extends Schema = Schema, O extends Schema = Schema> = {
  name: string
  /** One line that begins with a verb, shown in lists of commands. */
  summary: string
  input: I
  /** Maps former names of input fields to the current ones. dex still accepts the former names, but does not document them. */
  renamed?: Record<string, string>
  output: O
  cli: CliForm
  /** The MCP tool, whose name begins with `dex_`. Absent if agents must not use the tool. */
  mcp?: {
    name: string
    description: string
    /** Input fields that agents do not see. */
    omit?: readonly string[]
    /** True if the tool changes the user's data in dex. */
    writes?: boolean
  }
  run(context: Context, input: Infer<I>): Promise<Infer<O>>
  /** Returns false if nothing was found; the command then exits with 1. */
  found?(output: Infer<O>): boolean
  /** Records every run in a trace under this name, with these facts. */
  trace?: { command: TraceCommand; facts?(input: Infer<I>, output: Infer<O>): TraceFacts }
}

/** The groups of commands, in the order in which help shows them. */
export const COMMAND_GROUPS = ["Find", "Learn", "Agents", "Keep", "For agents and scripts"] as const
export type CommandGroup = (typeof COMMAND_GROUPS)[number]

export type CliForm = {
  group: CommandGroup
  /** True for the few commands that `dex --help` shows; `dex help all` shows all. */
  common?: true
  /** The input field for the words that are typed without a flag. If the field is a list, it receives all of these words. */
  positional?: string
  /** The input field for the words after the first one, joined by commas. The field also has a flag. */
  rest?: string
  /** Flags for fields inside an object: `{ before: "expand.before" }`. */
  nested?: Record<string, string>
  /** Flags that select one value of a field: `{ team: "where" }` makes `--team` mean `where: "team"`. */
  choosing?: Record<string, string>
  /** One-letter flags. `-n` always means `--limit` and need not be declared. */
  short?: Record<string, string>
  /** Other names that people type for the command. */
  aliases?: string[]
  /** True if the output is long and read from the top: on a terminal it goes through the pager, unless `--no-pager` is given. */
  paged?: boolean
  /** True if a page in the browser shows the same. `--web` opens it. */
  web?: true
  /** A working example for the help. */
  example: string
  /** The other forms of the command, each with a description. */
  forms?: Record<string, string>
  /** Set if this command has become a form of another one. Its own name still works until 0.4. */
  formOf?: FormOf
}

/** How a form of a command is selected: by an option (`dex show 2 --lines`) or a word (`dex doctor gc`). */
export type FormOf = {
  command: string
  option?: string
  word?: string
  /** True if the form is also selected when only options are typed, as in `dex subscribe`. */
  alone?: true
  paged?: true
  /** The current way to type the command, for lists of forms and for people who type the old name. */
  now: string
  example: string
}

export function defineTool<Context, I extends Schema, O extends Schema>(
  tool: Tool<Context, I, O>,
): Tool<Context, I, O> {
  return tool
}

/**
 * Reads the input of a tool like `readAs`, also accepting former names of fields. If both names are given, the current one wins.
 */
export function readInput<S extends Schema>(
  schema: S,
  { renamed = {} }: Pick<Tool<never>, "renamed">,
  given: unknown,
): { ok: Infer<S> } | { wrong: string } {
  const isObject = typeof given === "object" && given !== null && !Array.isArray(given)
  if (!isObject) return readAs(schema, given) as { wrong: string }
  const input: Record<string, unknown> = { ...given }
  for (const [old, now] of Object.entries(renamed)) {
    const value = input[old]
    delete input[old]
    if (value !== undefined) input[now] ??= isListOf(schema, now) && !Array.isArray(value) ? [value] : value
  }
  return readAs(schema, input) as { ok: Infer<S> } | { wrong: string }
}

function isListOf(schema: Schema, field: string): boolean {
  return schema.properties?.[field]?.type === "array"
}

/** The input of a tool, with its defaults filled in. */
export type InputOf<T> = T extends Tool<never, infer I, infer _> ? Infer<I> : never
export type OutputOf<T> = T extends Tool<never, infer _, infer O> ? Infer<O> : never
