import { namesError } from "../core/error-text.ts"
import { parseObject } from "../core/record.ts"
import type { AgentHooks, HookInput, HookMoment, HookOutput } from "./kit/agent.ts"

const MAX_NAME_LENGTH = 300
const MAX_PATH_LENGTH = 4_000
/** Longer prompts are cut, because this is enough to see the request, the command and the error. */
const MAX_PROMPT_LENGTH = 8_000
const MAX_COMMAND_LENGTH = 2_000
const MAX_OUTPUT_LENGTH = 20_000

/** The facts that an event reports, without its session and folder. */
type EventFacts = Omit<HookMoment, "session" | "cwd" | "transcript">
type EventReader = (input: HookInput, toolInput: HookInput) => EventFacts | undefined

/** Builds an agent's hooks from a reader for each event. Events without a reader are ignored. */
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

/** Reads the fields that all agents report: the session, its folder and its transcript. */
function callerOf(input: HookInput): Pick<HookMoment, "session" | "cwd" | "transcript"> | undefined {
  const session = textWithin(input.session_id, MAX_NAME_LENGTH)
  const cwd = textWithin(input.cwd, MAX_PATH_LENGTH)
  const transcript = textWithin(input.transcript_path, MAX_PATH_LENGTH)
  if (session === undefined || cwd === undefined) return undefined
  return { session, cwd, transcript }
}

const sessionStart: EventReader = () => ({ event: "session_start" })

/** A subagent's own compaction is left out: its events name the session to which it belongs. */
const compaction: EventReader = ({ agent_id }) => (agent_id === undefined ? { event: "compaction" } : undefined)

const promptOf: EventReader = (input) => {
  const prompt = textWithin(input.prompt, Number.POSITIVE_INFINITY)?.slice(0, MAX_PROMPT_LENGTH)
  return prompt === undefined ? undefined : { event: "prompt", prompt }
}

function fileMoment(event: "before_read" | "before_edit", path: unknown): EventFacts | undefined {
  const file = textWithin(path, MAX_PATH_LENGTH)
  return file === undefined ? undefined : { event, file }
}

/** A long output is cut in the middle, because programs usually report errors at the end. */
function failedCommand(command: unknown, output: string): EventFacts | undefined {
  const commandText = textWithin(command, Number.POSITIVE_INFINITY)?.slice(0, MAX_COMMAND_LENGTH)
  if (commandText === undefined || output.trim() === "") return undefined
  const half = MAX_OUTPUT_LENGTH / 2
  const error = output.length <= MAX_OUTPUT_LENGTH ? output : `${output.slice(0, half)}\n${output.slice(-half)}`
  return { event: "failed_command", command: commandText, error }
}

export function hookFields(value: unknown): HookInput {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as HookInput) : {}
}

function textWithin(value: unknown, maxLength: number): string | undefined {
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

/** The format of an agent whose answers have another form; see `Agent.hookOutput`. */
function formatOf(output: HookOutput): Pick<AgentHooks, "answer" | "piece"> {
  if (output === "text") return { answer: (_, text) => text, piece: (text) => text }
  return { answer: (_, text) => JSON.stringify({ [output]: text }), piece: escapeForJson }
}

/** Whether another agent calls this hook: Grok and Cursor also run the hooks in Claude Code's settings. */
function isFromAnotherAgent(input: HookInput): boolean {
  return input.hookEventName !== undefined || input.cursor_version !== undefined
}

/** The values of `source` for a prompt from a person. Prompts with other values are wake-ups and notices. */
const PERSON_SOURCES = new Set<unknown>([undefined, "user", "sdk"])

const ownClaudeCodeHooks = hooksFor(
  {
    SessionStart: sessionStart,
    PreCompact: compaction,
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

export const claudeCodeHooks: AgentHooks = {
  ...ownClaudeCodeHooks,
  moment: (event, input) => (isFromAnotherAgent(input) ? undefined : ownClaudeCodeHooks.moment(event, input)),
}

export const codexHooks = hooksFor(
  {
    SessionStart: sessionStart,
    PreCompact: compaction,
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

/** Returns the first file that a patch changes or deletes. New files are skipped, because dex knows nothing about them yet. */
function patchedFile(patch: unknown): string | undefined {
  if (typeof patch !== "string") return undefined
  return /^\*\*\* (?:Update|Delete) File: (.{1,4000})$/m.exec(patch)?.[1]?.trim()
}

export const geminiCliHooks = hooksFor(
  {
    SessionStart: sessionStart,
    PreCompress: (input, toolInput) => (input.trigger === "manual" ? compaction(input, toolInput) : undefined),
    BeforeAgent: promptOf,
    // The output of BeforeTool does not reach the model, so dex adds what it knows about a file after the file was read.
    AfterTool: ({ tool_name, tool_response }, toolInput) => {
      if (tool_name === "read_file") return fileMoment("before_read", toolInput.file_path ?? toolInput.absolute_path)
      const output = hookFields(tool_response).llmContent
      const isFailure = tool_name === "run_shell_command" && typeof output === "string" && hasFailed(output)
      return isFailure ? failedCommand(toolInput.command, outputIn(output)) : undefined
    },
  },
  contextFormat,
)

/** Whether Gemini CLI reports an exit code other than 0. It prints the exit code only of a failed command. */
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

/** Reads the requests of dex's own plugins for OpenCode, Kilo and Pi, which insert the plain text themselves. */
export const opencodeHooks = hooksFor(
  {
    "session.start": sessionStart,
    "session.compacting": compaction,
    "chat.message": promptOf,
    "tool.execute.after": ({ tool_name, exit, output }, { filePath, command }) => {
      if (tool_name === "read") return fileMoment("before_read", filePath)
      const isFailure = tool_name === "bash" && typeof exit === "number" && exit !== 0 && typeof output === "string"
      return isFailure ? failedCommand(command, output) : undefined
    },
  },
  formatOf("text"),
)

export const qwenCodeHooks = hooksFor(
  {
    SessionStart: sessionStart,
    // Qwen Code reports an empty prompt after each tool call.
    UserPromptSubmit: promptOf,
    // The output of PreToolUse does not reach the model, so dex adds what it knows about a file after the file was read.
    PostToolUse: ({ tool_name }, { file_path }) =>
      tool_name === "read_file" ? fileMoment("before_read", file_path) : undefined,
    PostToolUseFailure: ({ tool_name, error }, { command }) => {
      const output = typeof error === "string" ? /^Output: ([\s\S]*)\nError: /m.exec(error)?.[1] : undefined
      return tool_name === "run_shell_command" && output !== undefined ? failedCommand(command, output) : undefined
    },
  },
  contextFormat,
)

/** Copilot CLI reports events with capital letters in Claude Code's format and with its names of tools. */
export const copilotHooks = hooksFor(
  {
    SessionStart: sessionStart,
    UserPromptSubmit: promptOf,
    PreToolUse: ({ tool_name }, { path }) => {
      if (tool_name === "Read") return fileMoment("before_read", path)
      return tool_name === "Edit" || tool_name === "Write" ? fileMoment("before_edit", path) : undefined
    },
    PostToolUse: ({ tool_name, tool_result }, { command }) => {
      const output = hookFields(tool_result).text_result_for_llm
      const failed =
        tool_name === "Bash" && typeof output === "string"
          ? /\n?<shellId: [^>\n]{1,100} completed with exit code (?!0>)-?\d+>\s*$/.exec(output)
          : null
      return failed ? failedCommand(command, failed.input.slice(0, failed.index)) : undefined
    },
  },
  formatOf("additionalContext"),
)

/** Grok ignores what hooks say at the start and at a prompt, so dex says it before the first tool. */
export const grokHooks = hooksFor(
  {
    SessionStart: sessionStart,
    UserPromptSubmit: promptOf,
    PreToolUse: ({ tool_name }, { target_file, file_path, path }) => {
      if (tool_name === "read_file") return fileMoment("before_read", target_file ?? path)
      return tool_name === "search_replace" ? fileMoment("before_edit", file_path) : undefined
    },
    PostToolUse: ({ tool_name, tool_response }, { command }) => {
      const { exit_code, output_for_prompt: output } = hookFields(tool_response)
      const isFailure =
        tool_name === "run_terminal_command" &&
        typeof exit_code === "number" &&
        exit_code !== 0 &&
        typeof output === "string"
      return isFailure ? failedCommand(command, output.replace(/^exit: -?\d+\n/, "")) : undefined
    },
  },
  contextFormat,
)

export const kimiCodeHooks = hooksFor(
  {
    UserPromptSubmit: ({ prompt, ...input }, toolInput) => {
      const texts = Array.isArray(prompt) ? prompt.map((part) => hookFields(part).text) : [prompt]
      return promptOf({ ...input, prompt: texts.filter((text) => typeof text === "string").join("\n") }, toolInput)
    },
  },
  formatOf("text"),
)

export const droidHooks = hooksFor(
  {
    SessionStart: sessionStart,
    UserPromptSubmit: promptOf,
    PostToolUse: ({ tool_name }, { file_path }) =>
      tool_name === "Read" ? fileMoment("before_read", file_path) : undefined,
  },
  contextFormat,
)

const clineEvents = hooksFor(
  {
    PreToolUse: ({ tool_name }, { path, files }) => {
      if (tool_name === "read_files")
        return fileMoment("before_read", Array.isArray(files) ? hookFields(files[0]).path : path)
      return tool_name === "editor" ? fileMoment("before_edit", path) : undefined
    },
    PostToolUse: ({ tool_name, output }) => {
      const failed = Array.isArray(output) ? output.map(hookFields).find(({ success }) => success === false) : undefined
      return tool_name === "run_commands" && typeof failed?.result === "string"
        ? failedCommand(failed.query, failed.result.replace(/^\[Command exited with code -?\d+\]\n/, ""))
        : undefined
    },
  },
  formatOf("contextModification"),
)

/** Cline has its own names for the fields that other agents share. */
export const clineHooks: AgentHooks = {
  ...clineEvents,
  moment: (event, input) => {
    const { name, input: tool_input, output } = hookFields(input.tool_call ?? input.tool_result)
    return clineEvents.moment(event, {
      session_id: hookFields(input.sessionContext).rootSessionId,
      cwd: Array.isArray(input.workspaceRoots) ? input.workspaceRoots[0] : undefined,
      tool_name: name,
      tool_input,
      output,
    })
  },
}

const cursorEvents = hooksFor(
  {
    sessionStart,
    postToolUse: ({ tool_name, tool_output }, { file_path, path, command }) => {
      if (tool_name === "Read") return fileMoment("before_read", file_path ?? path)
      const { exitCode, stdout, stderr } = typeof tool_output === "string" ? hookFields(parseObject(tool_output)) : {}
      const isFailure = tool_name === "Shell" && typeof exitCode === "number" && exitCode !== 0
      const printed = [stdout, stderr].filter((text) => typeof text === "string").join("\n")
      return isFailure ? failedCommand(command, printed) : undefined
    },
  },
  formatOf("additional_context"),
)

/** Written after Cursor's documents. Cursor names a session and its folder differently. */
export const cursorHooks: AgentHooks = {
  ...cursorEvents,
  moment: (event, input) =>
    cursorEvents.moment(event, {
      ...input,
      session_id: input.conversation_id ?? input.session_id,
      cwd: input.cwd ?? (Array.isArray(input.workspace_roots) ? input.workspace_roots[0] : undefined),
    }),
}
