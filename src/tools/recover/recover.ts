import { choice, flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"

const input = object({
  file: text("The file, as it is or was called. It need not exist any more.", { minLength: 1 }),
  at: optional(
    text(
      "A ref, or a row number of the last listing: the file as it was after this message, or at the end of this conversation. If omitted, the messages that changed the file are listed.",
    ),
  ),
  output: optional(text("The file to write. Default: a new file beside FILE.")),
  print: optional(flag("Print the text instead of writing a file.")),
  yes: optional(flag("Do not ask before replacing the file that --output names.")),
})
export type RecoverInput = Infer<typeof input>

export const recover = defineTool({
  name: "recover",
  summary: "Get a file back as it was at a message",
  input,
  output: object({
    path: text("The file, relative to its project."),
    versions: optional(
      listOf(
        object({
          id: text("The ref: pass it to --at."),
          date: text(),
          what: choice(["written", "edited"] as const),
          title: text("The conversation's title."),
        }),
        "Without --at: the messages that changed the file, newest first.",
      ),
    ),
    level: optional(
      choice(["complete", "partial"] as const, "Complete: every line is known, and nothing speaks against it."),
    ),
    id: optional(text("The last message up to --at that shows or changes the file.")),
    lines: optional(integer("The number of lines, as far as they are known.")),
    missing_lines: optional(integer("How many of them no message shows.")),
    base: optional(text("The commit from which the lines come that no message shows.")),
    confirmed_by: optional(text("A commit that has exactly this text.")),
    written: optional(text("The file that was written.")),
    exists: optional(text("The file that would be replaced. Nothing was written yet: call again with yes.")),
    text: optional(text("With print: the text.")),
    notes: listOf(text(), "Why it is partial, and anything that was left out."),
  }),
  cli: {
    group: "Find",
    positional: "file",
    short: { o: "output", y: "yes" },
    example: "dex recover src/auth.ts --at claude_code:1f3c2a#12",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => (output.versions === undefined ? output.level !== undefined : output.versions.length > 0),
})
