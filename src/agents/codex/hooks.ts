import { tellsOfError } from "../../core/error-text.ts"
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
