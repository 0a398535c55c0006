import { flag, type Infer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  id: text("A ref, a unique prefix, or a row number of the last listing.", { minLength: 1 }),
  here: optional(flag("Open the conversation in the current folder.")),
  yes: optional(
    flag(
      "Copy the conversation to where its agent looks, without asking for confirmation. The original stays as it is.",
    ),
  ),
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
    note: optional(text("Why this is not the conversation's own folder.")),
    problem: optional(text("Why the conversation cannot be opened.")),
    copy: optional(
      object(
        {
          agent: text("The name of the agent."),
          files: listOf(text(), "The files to create."),
          commands: listOf(listOf(text()), "The agent's own commands to run."),
          done: flag("False until you confirm it with `yes`."),
        },
        "The copy that the agent needs, because it does not find the conversation from that folder.",
      ),
    ),
  }),
  cli: { group: "Find", common: true, positional: "id", short: { y: "yes" }, example: "dex resume 2" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.problem === undefined && output.copy?.done !== false,
})
