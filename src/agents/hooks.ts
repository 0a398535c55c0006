import { tellsOfError } from "../core/error-text.ts"
import type { AgentHooks, HookInput, HookMoment } from "./kit/agent.ts"

const LONGEST_NAME = 300
const LONGEST_PATH = 4_000
/** Enough to tell what is asked, what was run, and what went wrong. */
const LONGEST_PROMPT = 8_000
const LONGEST_COMMAND = 2_000
const LONGEST_OUTPUT = 20_000

/** The part that all agents have in common: who asks, and from where. */
export function asker(input: HookInput): Pick<HookMoment, "session" | "cwd" | "transcript"> | undefined {
  const session = text(input.session_id, LONGEST_NAME)
  const cwd = text(input.cwd, LONGEST_PATH)
  const transcript = text(input.transcript_path, LONGEST_PATH)
  if (session === undefined || cwd === undefined) return undefined
  return { session, cwd, transcript }
}

function promptField(value: unknown): { prompt: string } | undefined {
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

export function fields(value: unknown): HookInput {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as HookInput) : {}
}

function text(value: unknown, longest: number): string | undefined {
  return typeof value === "string" && value.trim() !== "" && value.length <= longest ? value : undefined
}

/** What stands in a string of JSON. */
const insideJson = (text: string): string => JSON.stringify(text).slice(1, -1)

/** As Claude Code began it, and Codex and Gemini CLI took it over. */
export function additionalContext(event: string, text: string, platform = process.platform): string {
  const answer = JSON.stringify({ hookSpecificOutput: { hookEventName: event, additionalContext: text } })
  // On Windows a shell may stand in between, which reads it in another code page.
  return platform === "win32" ? answer.replace(/[^\x20-\x7e]/g, escaped) : answer
}

function escaped(sign: string): string {
  return `\\u${sign.charCodeAt(0).toString(16).padStart(4, "0")}`
}

/** Who wrote a prompt, where that is said; the others are wake-ups and notices. */
const PEOPLE = new Set(["user", "sdk"])

export const claudeCodeHooks: AgentHooks = {
  moment: (event, input) => {
    const who = asker(input)
    if (!who) return undefined
    const given = fields(input.tool_input)
    switch (event) {
      case "SessionStart":
        return { ...who, event: "session_start" }
      case "SubagentStart":
        return { ...who, event: "subagent_start" }
      case "UserPromptSubmit": {
        const prompt = promptField(input.prompt)
        const isTyped = input.source === undefined || PEOPLE.has(String(input.source))
        return prompt && isTyped ? { ...who, event: "prompt", ...prompt } : undefined
      }
      case "PreToolUse": {
        const file = pathOf(given.file_path)
        if (!file) return undefined
        if (input.tool_name === "Read") return { ...who, event: "before_read", ...file }
        return /^(?:Edit|Write|MultiEdit)$/.test(String(input.tool_name))
          ? { ...who, event: "before_edit", ...file }
          : undefined
      }
      case "PostToolUseFailure": {
        const isFailure = input.tool_name === "Bash" && input.is_interrupt !== true && typeof input.error === "string"
        const failure = isFailure ? failedCommand(given.command, withoutStatus(input.error as string)) : undefined
        return failure && { ...who, event: "failed_command", ...failure }
      }
      default:
        return undefined
    }
  },
  answer: additionalContext,
  piece: insideJson,
}

/** Claude Code writes how a command ended before what it said. */
function withoutStatus(error: string): string {
  return error.replace(/^Exit code -?\d+\n?/, "")
}

export const codexHooks: AgentHooks = {
  moment: (event, input) => {
    const who = asker(input)
    if (!who) return undefined
    const given = fields(input.tool_input)
    switch (event) {
      case "SessionStart":
        return { ...who, event: "session_start" }
      case "UserPromptSubmit": {
        const prompt = promptField(input.prompt)
        return prompt && { ...who, event: "prompt", ...prompt }
      }
      case "PreToolUse": {
        const file = input.tool_name === "apply_patch" ? pathOf(patchedFile(given.command)) : undefined
        return file && { ...who, event: "before_edit", ...file }
      }
      case "PostToolUse": {
        // Codex hands over what a command said, and not how it ended.
        const said = input.tool_response
        if (input.tool_name !== "Bash" || typeof said !== "string" || !tellsOfError(said)) return undefined
        const failure = failedCommand(given.command, said)
        return failure && { ...who, event: "failed_command", ...failure }
      }
      default:
        return undefined
    }
  },
  answer: additionalContext,
  piece: insideJson,
}

/** The first file that a patch changes. A new file has no past. */
function patchedFile(patch: unknown): string | undefined {
  if (typeof patch !== "string") return undefined
  return /^\*\*\* (?:Update|Delete) File: (.{1,4000})$/m.exec(patch)?.[1]?.trim()
}

export const geminiCliHooks: AgentHooks = {
  moment: (event, input) => {
    const who = asker(input)
    if (!who) return undefined
    switch (event) {
      case "SessionStart":
        return { ...who, event: "session_start" }
      case "BeforeAgent": {
        const prompt = promptField(input.prompt)
        return prompt && { ...who, event: "prompt", ...prompt }
      }
      // What BeforeTool says does not reach the model: so a file's past is told when it was read.
      case "AfterTool": {
        const given = fields(input.tool_input)
        if (input.tool_name === "read_file") {
          const file = pathOf(given.file_path ?? given.absolute_path)
          return file && { ...who, event: "before_read", ...file }
        }
        const said = fields(input.tool_response).llmContent
        if (input.tool_name !== "run_shell_command" || typeof said !== "string" || !hasFailed(said)) return undefined
        const failure = failedCommand(given.command, outputIn(said))
        return failure && { ...who, event: "failed_command", ...failure }
      }
      default:
        return undefined
    }
  },
  answer: additionalContext,
  piece: insideJson,
}

/** Gemini CLI names an exit code only where it is not 0. */
function hasFailed(said: string): boolean {
  return /^Exit Code: (?!0$)-?\d+$/m.test(said)
}

/** Without what Gemini CLI writes around it. */
function outputIn(said: string): string {
  const around = /^(?:<\/?untrusted_context>$|(?:Exit Code|Signal|Process Group PGID|Background PIDs|Error): )/
  return said
    .split("\n")
    .filter((line) => !around.test(line))
    .join("\n")
    .replace(/^Output: /, "")
}

/** As dex's own plugin asks: `plugin.ts` holds it. It puts the bare text where it belongs. */
export const opencodeHooks: AgentHooks = {
  moment: (event, input) => {
    const who = asker(input)
    if (!who) return undefined
    switch (event) {
      case "session.start":
        return { ...who, event: "session_start" }
      case "chat.message": {
        const prompt = promptField(input.prompt)
        return prompt && { ...who, event: "prompt", ...prompt }
      }
      case "tool.execute.after": {
        const given = fields(input.tool_input)
        if (input.tool_name === "read") {
          const file = pathOf(given.filePath)
          return file && { ...who, event: "before_read", ...file }
        }
        const isFailure = input.tool_name === "bash" && typeof input.exit === "number" && input.exit !== 0
        if (!isFailure || typeof input.output !== "string") return undefined
        const failure = failedCommand(given.command, input.output)
        return failure && { ...who, event: "failed_command", ...failure }
      }
      default:
        return undefined
    }
  },
  answer: (_, text) => text,
  piece: (text) => text,
}
