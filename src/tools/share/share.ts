import { choice, flag, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

export const SHARE_FORMATS = ["html", "markdown"] as const
export type ShareFormat = (typeof SHARE_FORMATS)[number]

const input = object({
  id: text("A ref, a unique prefix, or a row number of the last listing.", { minLength: 1 }),
  format: withDefault(choice(SHARE_FORMATS, "One self-contained HTML file, or Markdown."), "html"),
  output: optional(text("The file to write. Default: a file in this folder, named after the conversation.")),
  no_tools: optional(flag("Leave out tool calls, their outputs and thinking: only text.")),
  print: optional(flag("Print the conversation instead of writing a file.")),
})
export type ShareInput = Infer<typeof input>

export const share = defineTool({
  name: "share",
  summary: "Write one conversation to a file for others, redacted again",
  input,
  renamed: { file: "output" },
  output: object({
    id: text(),
    title: text(),
    file: optional(text("The file that was written.")),
    bytes: integer(),
    messages: integer(),
    taken_out: listOf(
      object({
        what: text(),
        count: integer(),
        earlier: optional(flag("The secret was already removed when dex read the conversation.")),
      }),
      "The secrets that were removed. Read the file before you send it, because dex finds many secrets, but not all.",
    ),
    text: optional(text("With print: the contents of the file.")),
  }),
  cli: { group: "Keep", positional: "id", aliases: ["export"], example: "dex share 2 --format markdown" },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
})
