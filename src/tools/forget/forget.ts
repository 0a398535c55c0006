import { flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { conversationFields } from "../fields.ts"

const forgetInput = object({
  ids: listOf(text(), "Refs, unique prefixes, row numbers, or a project's folder."),
  yes: optional(flag("Do not ask for confirmation.")),
  copies: optional(
    flag(
      "Also delete conversations with copies of the same messages: forks, and the conversations they were forked from.",
    ),
  ),
})
export type ForgetInput = Infer<typeof forgetInput>

export const forget = defineTool({
  name: "forget",
  summary: "Delete conversations permanently",
  input: forgetInput,
  output: object({
    forgotten: listOf(text(), "The deleted conversations, with their subagents."),
    count: integer(),
    kept_copies: optional(
      listOf(
        text(),
        "Conversations with copies of the same messages. Only `copies` deletes them, with their subagents.",
      ),
    ),
    pinned: optional(
      listOf(
        text(),
        "Databases whose old pages another program still reads: the deleted words stay in their bytes until it ends.",
      ),
    ),
    still_there: optional(
      listOf(
        object({ file: text(), why: text() }),
        "Databases in dex's folder that could not be changed, and may still contain the deleted text.",
      ),
    ),
    conversations: optional(listOf(object(conversationFields), "The conversations to delete, and those with copies.")),
    asked: optional(flag("Nothing was deleted yet: call again with `yes` to confirm.")),
  }),
  cli: {
    group: "Keep",
    common: true,
    positional: "ids",
    short: { y: "yes" },
    aliases: ["rm"],
    example: "dex forget 3",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.forgotten.length > 0,
})

const makePrivateInput = object({
  project: optional(text("The project's folder. If omitted, private projects are listed.")),
  only_here: optional(flag("Only this folder, not the other folders of its repository.")),
  off: optional(flag("Make the project public again. Default: the current project.")),
})
export type PrivateInput = Infer<typeof makePrivateInput>

export const makePrivate = defineTool({
  name: "private",
  summary: "Hide a project from searches made elsewhere",
  input: makePrivateInput,
  output: object({
    project: optional(text()),
    private: optional(flag()),
    projects: listOf(text(), "All private projects."),
    below: optional(listOf(text(), "Projects in nested folders, which are not changed.")),
  }),
  cli: { group: "Keep", positional: "project", example: "dex private ~/clients/acme" },
  run: async (dex: Dex, input) => (await import("./run.ts")).setPrivate(dex, input),
})
