import { decimal, flag, listOf, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { askOutput } from "./ask.ts"

/** `run` answers a single question. In a terminal, cli/ runs the chat. */
export const chat = defineTool({
  name: "chat",
  summary: "Ask one question after another, answered with sources",
  input: object({
    query: optional(
      text("A question. If omitted, on a terminal, the chat continues until you leave.", { minLength: 1 }),
    ),
    interactive: optional(flag("Keep chatting after the first question.")),
    use_case: optional(text("What the answers are for.")),
    collections: optional(listOf(text(), "Only documents of these collections.")),
    no_global: optional(flag("Leave out documents that belong to no project.")),
    model: optional(text("Use this model instead of llm.model.")),
    temperature: optional(decimal("Use this temperature instead of llm.temperature, from 0 to 2.")),
    opencode: optional(
      flag("Open OpenCode instead, with dex's tools, separate from your own OpenCode settings and data."),
    ),
    verbose: optional(flag("Show every search and every read as it happens.")),
  }),
  output: askOutput,
  cli: {
    group: "Learn",
    positional: "query",
    short: { i: "interactive", u: "use_case", c: "collections" },
    example: 'dex chat "how do we retry failed webhooks" -i',
    formOf: {
      command: "ask",
      option: "interactive",
      alone: true,
      now: "dex ask",
      example: 'dex ask --interactive "how do we retry failed webhooks"',
    },
  },
  run: async (dex: Dex, input) => (await import("./chat.run.ts")).run(dex, input),
  found: (output) => output.sources.length > 0,
})
