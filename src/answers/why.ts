import { choice, flag, integer, listOf, object, optional, text, withDefault } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { TEAM_FLAG, whereField } from "../tools/team.ts"

const quoteShape = object({ ref: text(), text: text() })
const quoteOfKindShape = object({ ref: text(), kind: text(), text: text() })

export const why = defineTool({
  name: "why",
  summary: "Explain why a commit or a line was written",
  input: object({
    target: text("A commit, a range of commits, a file, or lines of a file: src/a.ts:42."),
    rev: optional(text("Use the file as it was at this commit.")),
    pr: withDefault(flag("Print Markdown for a review."), false),
    facts: withDefault(flag("Show only the facts; do not use a model."), false),
    model: optional(text("Use this model instead of the configured one.")),
    where: whereField,
  }),
  output: object({
    target: text(),
    commits: listOf(object({ hash: text(), subject: text(), date: text() }), "Newest first."),
    lines: integer("Lines that were examined."),
    unknown: integer("Lines whose author is unknown."),
    conversations: listOf(
      object({
        ref: text(),
        title: text(),
        source: text(),
        date: text(),
        level: choice(["proved", "likely"], "proved if at least one of its lines is."),
        lines: integer("How many of the lines it wrote, proved and likely together."),
        proved: integer(),
        likely: integer(),
        asked: listOf(quoteShape, "The task, and the last request before the first of these edits."),
        decided: listOf(quoteOfKindShape, "Decisions before the commit that includes the edits."),
        rejected: listOf(quoteShape, "What the person said when they stopped a tool."),
        done: optional(listOf(quoteShape, "What the agent reported after the last of these edits.")),
        tests: listOf(
          object({
            ref: text(),
            command: text(),
            outcome: choice(["passed", "failed"], "The last time."),
            failed_before: integer(),
          }),
        ),
        open: listOf(quoteOfKindShape, "What the conversation left open at its end."),
      }),
      "The conversations that wrote the most lines first.",
    ),
    answer: optional(
      object({
        text: text("The explanation as prose, written by a model. Each sentence cites its sources."),
        sources: listOf(object({ n: integer(), ref: text() })),
      }),
    ),
    notes: listOf(text()),
  }),
  cli: {
    group: "Learn",
    choosing: TEAM_FLAG,
    positional: "target",
    web: true,
    example: "dex why src/auth.ts:42",
  },
  mcp: {
    name: "dex_why",
    description: "Why a commit or line was written: what was asked, decided and tested.",
    omit: ["rev", "pr", "facts", "model"],
  },
  run: async (dex: Dex, input) => (await import("./why.run.ts")).run(dex, input),
  found: (output) => output.conversations.length > 0,
})
