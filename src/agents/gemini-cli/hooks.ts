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
