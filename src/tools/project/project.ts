import { flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  words: listOf(
    text(),
    "join FOLDER: that folder is part of the current project. split FOLDER: it is a project of its own. Without words: list the projects.",
  ),
})
export type ProjectInput = Infer<typeof input>

export const project = defineTool({
  name: "project",
  summary: "List projects, and join or split their folders",
  input,
  output: object({
    projects: listOf(
      object({
        path: text("The folder by which the project is called."),
        current: optional(flag()),
        private: flag(),
        remotes: listOf(text()),
        conversations: integer(),
        folders: listOf(object({ path: text(), why: text("Why the folder belongs to the project.") })),
      }),
    ),
    joined: optional(text("The folder that was joined to the current project.")),
    split: optional(text("The folder that is a project of its own now.")),
    shared: optional(text("The hub's name for the joined project: what was joined will be sent, too.")),
  }),
  cli: { group: "Keep", positional: "words", example: "dex project join ~/old/api" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
