import { flag, type Infer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  id: text("A ref, a unique prefix, or a row number of the last listing.", { minLength: 1 }),
  here: optional(flag("Open it in the current folder.")),
})
export type ResumeInput = Infer<typeof input>

export const resume = defineTool({
  name: "resume",
  summary: "Continue a conversation in the agent it came from",
  input,
  output: object({
    id: text(),
    title: text(),
    command: listOf(text(), "The program and its arguments."),
    folder: optional(text("The folder in which to run the command.")),
    note: optional(text("Why the folder is not the conversation's.")),
    problem: optional(text("Why it cannot be opened.")),
  }),
  cli: { group: "Find", common: true, positional: "id", example: "dex resume 2" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.problem === undefined,
})
