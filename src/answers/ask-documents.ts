import { DexError } from "../core/error.ts"
import { listOf, object, optional, text } from "../core/schema.ts"
import { defineTool } from "../core/tool.ts"
import type { Dex } from "../tools/context.ts"
import { whereField } from "../tools/team.ts"
import { ANSWER_TOKENS, askOutput, scopeField, traced } from "./ask.ts"

/** What whoever started agent mode allows; a caller may narrow it and never widen it. */
export type AgentBounds = { collections?: string[]; noGlobal?: boolean; model?: string }

/** The one tool of agent mode. */
export function askDocuments({ collections, noGlobal, model }: AgentBounds) {
  return defineTool({
    name: "ask_documents",
    summary: "Get a short, cited answer from conversations and documents",
    input: object({
      query: text("What you need to know. Be specific.", { minLength: 1 }),
      use_case: text("Why you need it and what you will do with it: it says when enough is found."),
      collections: optional(listOf(text(), "Only documents of these collections.")),
      scope: scopeField,
      where: whereField,
    }),
    output: askOutput,
    cli: { group: "Learn", positional: "query", example: "" },
    mcp: {
      name: "ask_documents",
      description:
        "Answers a question from this developer's past conversations with coding agents and from their documents. Searches and reads by itself; returns only a short answer with its sources. Use it when something may have been decided, solved or documented before.",
    },
    trace: { command: "ask" },
    run: async (dex: Dex, input) => {
      const outside = input.collections?.find((name) => collections && !collections.includes(name))
      if (outside !== undefined)
        throw new DexError(
          "no_collection",
          `"${outside}" is not among what may be asked here: ${collections!.join(", ")}.`,
        )
      const chosen = input.collections ?? collections
      const { run } = await import("./ask.run.ts")
      const output = await run(dex, {
        ...input,
        ...(chosen && { collections: chosen }),
        ...(noGlobal && { no_global: true }),
        ...(model !== undefined && { model }),
        max_tokens: ANSWER_TOKENS,
      })
      return traced(dex, output)
    },
  })
}
