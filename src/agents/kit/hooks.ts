import type { Moment } from "../../core/suggestion.ts"

/** One agent's hooks: what it says of the moment, and how it wants to be answered. Pure; its input is anybody's JSON. */
export type AgentHooks = {
  /** Undefined where there is nothing for dex to say, or where a field is not what it should be. */
  moment(event: string, input: Input): HookMoment | undefined
  /** What to print, so that the text stands before the model. */
  answer(event: string, text: string): string
  /** The same for `dex-hook`, which puts several into one answer and names the event: see `integrations/launcher.ts`. */
  piece(text: string): string
}

/** The project is found from the folder. */
export type HookMoment = Omit<Moment, "project" | "source" | "at"> & {
  session: string
  cwd: string
  /** What the agent keeps of the session, where it says so. */
  transcript?: string
}

export type Input = Record<string, unknown>

const LONGEST_NAME = 300
const LONGEST_PATH = 4_000
/** Enough to tell what is asked, what was run, and what went wrong. */
const LONGEST_PROMPT = 8_000
const LONGEST_COMMAND = 2_000
const LONGEST_OUTPUT = 20_000

/** The part that all agents have in common: who asks, and from where. */
export function asker(input: Input): Pick<HookMoment, "session" | "cwd" | "transcript"> | undefined {
  const session = text(input.session_id, LONGEST_NAME)
  const cwd = text(input.cwd, LONGEST_PATH)
  const transcript = text(input.transcript_path, LONGEST_PATH)
  if (session === undefined || cwd === undefined) return undefined
  return { session, cwd, transcript }
}

export function promptField(value: unknown): { prompt: string } | undefined {
  const prompt = text(value, Number.POSITIVE_INFINITY)?.slice(0, LONGEST_PROMPT)
  return prompt === undefined ? undefined : { prompt }
}

export function pathOf(value: unknown): { file: string } | undefined {
  const file = text(value, LONGEST_PATH)
  return file === undefined ? undefined : { file }
}

/** Of a long output the end, which is where programs say what went wrong, and its beginning. */
export function failedCommand(command: unknown, output: string): { command: string; error: string } | undefined {
  const ran = text(command, Number.POSITIVE_INFINITY)?.slice(0, LONGEST_COMMAND)
  if (ran === undefined || output.trim() === "") return undefined
  const half = LONGEST_OUTPUT / 2
  const error = output.length <= LONGEST_OUTPUT ? output : `${output.slice(0, half)}\n${output.slice(-half)}`
  return { command: ran, error }
}

export function fields(value: unknown): Input {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Input) : {}
}

function text(value: unknown, longest: number): string | undefined {
  return typeof value === "string" && value.trim() !== "" && value.length <= longest ? value : undefined
}

/** What stands in a string of JSON. */
export const insideJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** As Claude Code began it, and Codex and Gemini CLI took it over. */
export function additionalContext(event: string, text: string, platform = process.platform): string {
  const answer = JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext: text } })
  // On Windows a shell may stand in between, which reads it in another code page.
  return platform === "win32" ? answer.replace(/[^\x20-\x7e]/g, escaped) : answer
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`
}
