import { choice, flag, type Infer, integer, listOf, object, optional, text } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { TEAM_FLAG, whereField } from "../team.ts"

const LEVELS = ["proved", "likely", "unknown"] as const
const REASONS = ["ran_commit", "wrote_line", "wrote_near", "files_and_time", "recorded"] as const

const owner = {
  level: choice(LEVELS, "How certain this is."),
  reason: optional(choice(REASONS, "Why.")),
  ref: optional(text("The message that wrote the line, or the conversation.")),
  conversation: optional(text("The conversation.")),
  agent: optional(text("The agent of the conversation.")),
  title: optional(text("The conversation's title.")),
  recorded: optional(text("What the repository itself records about the author.")),
}
const ownerShape = object(owner)
export type OwnerFacts = Infer<typeof ownerShape>

const counts = { total: integer("Number of lines."), proved: integer(), likely: integer(), unknown: integer() }

const input = object({
  target: text("A file, file:line or file:from-to; a commit or a range of commits; or a folder, for a summary.", {
    minLength: 1,
  }),
  rev: optional(text("The file as it was at this revision.")),
  moves: optional(flag("Follow lines that were moved within a file, as `git blame -M`.")),
  copies: optional(flag("Follow lines that came from other files of the same commit, as `git blame -C`.")),
  porcelain: optional(flag("Print the output of `git blame --porcelain` plus dex's own fields, for editors.")),
  where: whereField,
})
export type BlameInput = Infer<typeof input>

export const blame = defineTool({
  name: "blame",
  summary: "Show which conversation wrote each line",
  input,
  output: object({
    target: text(),
    kind: choice(["file", "commits", "folder"] as const),
    path: optional(text("Relative to the repository.")),
    lines: listOf(
      object({
        line: integer(),
        text: text(),
        commit: text("Empty if the line is not committed yet."),
        was_line: integer("The line's number in that commit."),
        was_path: text("The line's file in that commit."),
        date: text("When the line was committed; empty if it is not committed."),
        subject: text("The commit's subject."),
        ...owner,
      }),
      "The lines, if the target is a file.",
    ),
    commits: listOf(
      object({
        commit: text(),
        subject: text(),
        date: text(),
        ...owner,
        ...counts,
        also: listOf(text(), "Other conversations that wrote some lines of the commit."),
      }),
      "The commits, newest first, if the target is a commit or a range.",
    ),
    agents: listOf(
      object({ agent: text("Empty for lines without a known author."), ...counts }),
      "Agents, those with the most lines first.",
    ),
    ...counts,
    notes: listOf(text(), "Anything hidden, incomplete or limited."),
  }),
  cli: {
    group: "Learn",
    choosing: TEAM_FLAG,
    positional: "target",
    short: { M: "moves", C: "copies" },
    paged: true,
    web: true,
    example: "dex blame src/auth.ts:40-60",
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.proved + output.likely > 0,
})
