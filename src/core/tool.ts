import { type Infer, readAs, type Schema } from "./schema.ts"
import type { TraceCommand, TraceFacts } from "./trace.ts"

/**
 * One thing dex can do, declared once. The command, the MCP tool, the HTTP route and the reference page are derived from it. A
 * declaration loads without its implementation: `run` imports that when it is called.
 */
export type Tool<Context, I extends Schema = Schema, O extends Schema = Schema> = {
  /** The command's name. */
  name: string
  /** One line that begins with a verb, for lists of commands. */
  summary: string
  input: I
  /** Former names of input fields, which are still accepted, with their names now. Nothing lists them. */
  renamed?: Record<string, string>
  output: O
  cli: CliForm
  /** Named `dex_…` if agents get it; absent if only a person should do it. */
  mcp?: {
    name: string
    description: string
    /** Fields that agents do not get. */
    omit?: readonly string[]
    /** It changes the user's data in dex. */
    writes?: boolean
  }
  run(context: Context, input: Infer<I>): Promise<Infer<O>>
  /** False makes the command exit with 1: it worked and found nothing. */
  found?(output: Infer<O>): boolean
  /** Every run is recorded under this name, with these facts. */
  trace?: { command: TraceCommand; facts?(input: Infer<I>, output: Infer<O>): TraceFacts }
}

/** What commands are for, in the order in which help shows them. */
export const COMMAND_GROUPS = ["Find", "Learn", "Agents", "Keep", "For agents and scripts"] as const
export type CommandGroup = (typeof COMMAND_GROUPS)[number]

export type CliForm = {
  group: CommandGroup
  /** One of the few that `dex --help` shows; `dex help all` shows all. */
  common?: true
  /** The input field for words without a flag; a list takes all of them. */
  positional?: string
  /** The input field for the words after the first one, joined by commas; it is also a flag. */
  rest?: string
  /** Flags for fields inside an object: `{ before: "expand.before" }`. */
  nested?: Record<string, string>
  /** Flags for one choice of a field: `{ team: "where" }` is `--team` for `where: "team"`. */
  choosing?: Record<string, string>
  /** One-letter flags. `-n` is `--limit` in every tool that has one, without being declared. */
  short?: Record<string, string>
  /** Other names that people type for it. */
  aliases?: string[]
  /** Its output is long and read from the top: on a terminal it goes through the pager, unless `--no-pager` is given. */
  paged?: boolean
  /** An example that works, for the help. */
  example: string
  /** Its other forms, each with a description. */
  forms?: Record<string, string>
  /** It is a form of another command. Its own name works until 0.4. */
  formOf?: FormOf
}

/** How a form of a command is chosen: by an option (`dex show 2 --lines`) or a word (`dex doctor gc`). */
export type FormOf = {
  command: string
  option?: string
  word?: string
  /** It is chosen as well if nothing but options is typed: `dex subscribe`. */
  alone?: true
  paged?: true
  /** How it is typed, for lists of forms and for who types its old name. */
  now: string
  example: string
}

export function defineTool<Context, I extends Schema, O extends Schema>(
  tool: Tool<Context, I, O>,
): Tool<Context, I, O> {
  return tool
}

/** Reads the input of a tool like `readAs`. Fields may have their former names; a field that has both has the value of the new one. */
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
/** The output of a tool; every face is typed by it. */
export type OutputOf<T> = T extends Tool<never, infer _, infer O> ? Infer<O> : never
