import { type AgentHooks, asker, failedCommand, fields, pathOf, promptField } from "../kit/hooks.ts"

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
