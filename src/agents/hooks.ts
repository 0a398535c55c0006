import { namesError } from "../core/error-text.ts"
import type { AgentHooks, HookInput, HookMoment } from "./kit/agent.ts"

const MAX_NAME_LENGTH = 300
const MAX_PATH_LENGTH = 4_000
/** The number of characters of a prompt that are used: enough to see the request, the command and the error. */
const MAX_PROMPT_LENGTH = 8_000
const MAX_COMMAND_LENGTH = 2_000
const MAX_OUTPUT_LENGTH = 20_000

/** The facts of an event, without its session and folder. `toolInput` is the input of the tool. */
type EventFacts = Omit<HookMoment, "session" | "cwd" | "transcript">
type EventReader = (input: HookInput, toolInput: HookInput) => EventFacts | undefined

/** Reads an agent's events by name; dex ignores all others. */
function hooksFor(events: Record<string, EventReader>, format: Pick<AgentHooks, "answer" | "piece">): AgentHooks {
  return {
    moment: (event, input) => {
      const caller = callerOf(input)
      const facts =
        caller && Object.hasOwn(events, event) ? events[event]!(input, hookFields(input.tool_input)) : undefined
      return caller && facts && { ...caller, ...facts }
    },
    ...format,
  }
}

/** The fields that all agents have in common: the session and its folder. */
function callerOf(input: HookInput): Pick<HookMoment, "session" | "cwd" | "transcript"> | undefined {
  const session = text(input.session_id, MAX_NAME_LENGTH)
  const cwd = text(input.cwd, MAX_PATH_LENGTH)
  const transcript = text(input.transcript_path, MAX_PATH_LENGTH)
  if (session === undefined || cwd === undefined) return undefined
  return { session, cwd, transcript }
}

const sessionStart: EventReader = () => ({ event: "session_start" })

const promptOf: EventReader = (input) => {
  const prompt = text(input.prompt, Number.POSITIVE_INFINITY)?.slice(0, MAX_PROMPT_LENGTH)
  return prompt === undefined ? undefined : { event: "prompt", prompt }
}

function fileMoment(event: "before_read" | "before_edit", path: unknown): EventFacts | undefined {
  const file = text(path, MAX_PATH_LENGTH)
  return file === undefined ? undefined : { event, file }
}

/** Keeps only the beginning and the end of a long output. Programs usually report errors at the end. */
function failedCommand(command: unknown, output: string): EventFacts | undefined {
  const commandText = text(command, Number.POSITIVE_INFINITY)?.slice(0, MAX_COMMAND_LENGTH)
  if (commandText === undefined || output.trim() === "") return undefined
  const half = MAX_OUTPUT_LENGTH / 2
  const error = output.length <= MAX_OUTPUT_LENGTH ? output : `${output.slice(0, half)}\n${output.slice(-half)}`
  return { event: "failed_command", command: commandText, error }
}

export function hookFields(value: unknown): HookInput {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as HookInput) : {}
}

function text(value: unknown, maxLength: number): string | undefined {
  return typeof value === "string" && value.trim() !== "" && value.length <= maxLength ? value : undefined
}

/** Escapes a text for the inside of a JSON string. */
const escapeForJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** Formats an answer in the format that Claude Code introduced. Codex and Gemini CLI use it too. */
export function additionalContext(event: string, text: string, platform = process.platform): string {
  const answer = JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext: text } })
  // On Windows, a shell in between may read the output in another code page, so everything beyond ASCII is escaped.
  return platform === "win32" ? answer.replace(/[^\x20-\x7e]/g, escapeCharacter) : answer
}

function escapeCharacter(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`
}

const contextFormat = { answer: additionalContext, piece: escapeForJson }

/** The values of `source` for a prompt from a person. Prompts with other values are wake-ups and notices. */
const PERSON_SOURCES = new Set<unknown>([undefined, "user", "sdk"])

export const claudeCodeHooks = hooksFor(
  {
    SessionStart: sessionStart,
    SubagentStart: () => ({ event: "subagent_start" }),
    UserPromptSubmit: (input, toolInput) => (PERSON_SOURCES.has(input.source) ? promptOf(input, toolInput) : undefined),
    PreToolUse: ({ tool_name }, { file_path }) => {
      if (tool_name === "Read") return fileMoment("before_read", file_path)
      return /^(?:Edit|Write|MultiEdit)$/.test(String(tool_name)) ? fileMoment("before_edit", file_path) : undefined
    },
    PostToolUseFailure: ({ tool_name, is_interrupt, error }, { command }) => {
      const isFailure = tool_name === "Bash" && is_interrupt !== true && typeof error === "string"
      // Claude Code writes the exit code before the output.
      return isFailure ? failedCommand(command, error.replace(/^Exit code -?\d+\n?/, "")) : undefined
    },
  },
  contextFormat,
)

export const codexHooks = hooksFor(
  {
    SessionStart: sessionStart,
    UserPromptSubmit: promptOf,
    PreToolUse: ({ tool_name }, { command }) =>
      tool_name === "apply_patch" ? fileMoment("before_edit", patchedFile(command)) : undefined,
    // Codex passes the output of a command, but not its exit code.
    PostToolUse: ({ tool_name, tool_response: output }, { command }) =>
      tool_name === "Bash" && typeof output === "string" && namesError(output)
        ? failedCommand(command, output)
        : undefined,
  },
  contextFormat,
)

/** The first file that a patch changes. New files are skipped, because they have no past. */
function patchedFile(patch: unknown): string | undefined {
  if (typeof patch !== "string") return undefined
  return /^\*\*\* (?:Update|Delete) File: (.{1,4000})$/m.exec(patch)?.[1]?.trim()
}

export const geminiCliHooks = hooksFor(
  {
    SessionStart: sessionStart,
    BeforeAgent: promptOf,
    // The output of BeforeTool does not reach the model, so a file's past is shown after the file was read.
    AfterTool: ({ tool_name, tool_response }, toolInput) => {
      if (tool_name === "read_file") return fileMoment("before_read", toolInput.file_path ?? toolInput.absolute_path)
      const output = hookFields(tool_response).llmContent
      const isFailure = tool_name === "run_shell_command" && typeof output === "string" && hasFailed(output)
      return isFailure ? failedCommand(toolInput.command, outputIn(output)) : undefined
    },
  },
  contextFormat,
)

/** Gemini CLI prints an exit code only if it is not 0. */
function hasFailed(output: string): boolean {
  return /^Exit Code: (?!0$)-?\d+$/m.test(output)
}

/** Removes the lines that Gemini CLI writes around the output. */
function outputIn(output: string): string {
  const wrapperLine = /^(?:<\/?untrusted_context>$|(?:Exit Code|Signal|Process Group PGID|Background PIDs|Error): )/
  return output
    .split("\n")
    .filter((line) => !wrapperLine.test(line))
    .join("\n")
    .replace(/^Output: /, "")
}

/** Reads the requests of dex's own plugin (`opencode/wiring.ts`), which inserts the plain text itself. */
export const opencodeHooks = hooksFor(
  {
    "session.start": sessionStart,
    "chat.message": promptOf,
    "tool.execute.after": ({ tool_name, exit, output }, { filePath, command }) => {
      if (tool_name === "read") return fileMoment("before_read", filePath)
      const isFailure = tool_name === "bash" && typeof exit === "number" && exit !== 0 && typeof output === "string"
      return isFailure ? failedCommand(command, output) : undefined
    },
  },
  { answer: (_, text) => text, piece: (text) => text },
)
