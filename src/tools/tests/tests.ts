import { type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import type { Dex } from "../context.ts"
import { maxTokensField } from "../view-fields.ts"

const input = object({
  file: optional(text("Only tests in this file, or about it.")),
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 500 }), 20),
  max_tokens: maxTokensField,
})
export type TestsInput = Infer<typeof input>

export const tests = defineTool({
  name: "tests",
  summary: "List failing tests of this project, from the last known runs",
  input,
  output: object({
    project: text(),
    failing: listOf(
      object({
        test: text(),
        file: optional(text("Relative to the project if it is inside it.")),
        message: optional(text("What the run printed about it.")),
        date: text("When the test last failed, as far as dex knows."),
        ref: text("The run that failed."),
        command: text("The test command."),
      }),
      "Newest first. dex runs no tests: the newest known run that mentions a test counts.",
    ),
    unnamed: listOf(
      object({ command: text(), failed: integer("At least this many tests failed."), date: text(), ref: text() }),
      "Runs that failed without naming the tests, and that no later run fixed.",
    ),
    total: integer("Number of failing tests."),
    runs_known: integer("Number of known test runs."),
    newest: optional(text("When tests last ran, if known.")),
    estimated_tokens: integer("Estimated size of this answer."),
    notes: listOf(text(), "Anything hidden, incomplete or limited."),
  }),
  cli: {
    group: "Learn",
    short: { f: "file", l: "limit" },
    example: "dex tests --file src/auth.ts",
    formOf: {
      command: "fix",
      option: "tests",
      alone: true,
      now: "dex fix",
      example: "dex fix --tests --file src/auth.ts",
    },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.failing.length > 0 || output.unnamed.length > 0,
})
