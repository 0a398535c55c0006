import {
  type AgentHooks,
  additionalContext,
  asker,
  failedCommand,
  fields,
  insideJson,
  pathOf,
  promptField,
} from "../kit/hooks.ts"

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
