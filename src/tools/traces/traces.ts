import { choice, decimal, type Infer, integer, listOf, object, optional, text, withDefault } from "../../core/schema.ts"
import { defineTool } from "../../core/tool.ts"
import { TRACE_COMMANDS } from "../../core/trace.ts"
import type { Dex } from "../context.ts"

const input = object({
  limit: withDefault(integer("Show at most this many.", { minimum: 1, maximum: 100_000 }), 20),
})
export type TracesInput = Infer<typeof input>

export const traces = defineTool({
  name: "traces",
  summary: "List recent questions and their results",
  input,
  renamed: { tail: "limit" },
  output: object({
    traces: listOf(
      object({
        trace_id: text("Pass it to trace."),
        ts: text(),
        command: choice(TRACE_COMMANDS),
        about: text("The query, redacted, or what was read."),
        mode: optional(text()),
        hits: integer("Rows in the answer."),
        messages: optional(integer("How many messages were read.")),
        duration_ms: decimal(),
        error: optional(text("The error's code.")),
      }),
    ),
    hidden_private: integer("Traces from private projects; shown only inside them."),
    unreadable: integer("Lines that could not be read."),
  }),
  cli: {
    group: "Find",
    example: "dex traces --limit 5",
    formOf: { command: "trace", option: "list", now: "dex trace --list", example: "dex trace --list --limit 5" },
  },
  run: async (dex: Dex, input) => (await import("./run.ts")).run(dex, input),
  found: (output) => output.traces.length > 0,
})
