import { choice, flag, type Infer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

// Only a person can mute suggestions, never an agent.

const input = object({
  what: optional(
    text(
      "A kind (fix, decision, change, document, related_code, warning, conversation) or a project's folder (. is the current one).",
    ),
  ),
  off: optional(flag("Turn it on again.")),
  list: optional(flag("Only list what is muted.")),
})
export type MuteInput = Infer<typeof input>

export const mute = defineTool({
  name: "mute",
  summary: "Turn off suggestions by kind or project",
  input,
  renamed: { undo: "off" },
  output: object({
    changed: optional(flag("Absent if nothing was muted or unmuted.")),
    name: optional(text()),
    mutes: listOf(object({ type: choice(["kind", "project"]), name: text(), since: text() })),
  }),
  cli: {
    group: "Agents",
    positional: "what",
    example: "dex mute related_code",
    formOf: {
      command: "suggest",
      option: "mute",
      now: "dex suggest --mute KIND",
      example: "dex suggest --mute related_code",
    },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
