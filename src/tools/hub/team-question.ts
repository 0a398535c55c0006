import { type Infer, integer, listOf, object, type Schema, text } from "../../core/schema.ts"
import type { Tool } from "../../core/tool.ts"
import type { LineQueries } from "../../learn/blame/facts.ts"
import { answerLinesRequest, type LinesRequest, type SentLines } from "../../learn/blame/lines-about.ts"
import type { Dex } from "../context.ts"

/**
 * A query that a laptop sends to the hub for data from which it builds its own answer. The hub returns only what the person may
 * see. Its reply names each conversation in a field `id`, from which the audit log records who read what.
 */
export type TeamQueryKind<I extends Schema = Schema, O = unknown> = {
  name: string
  input: I
  renamed?: Tool<never>["renamed"]
  /** `lines` returns the rows that the person may see. */
  run(dex: Dex, input: Infer<I>, lines: () => Promise<LineQueries>): Promise<O>
}

const linesInput = object({
  project: text("The key of the project."),
  commits: listOf(object({ hash: text(), at: integer(), subject: text() })),
  paths: listOf(object({ path: text(), until: integer() })),
  sessions: listOf(text()),
})

/** Finds the team's conversations that may have written lines of these commits. */
export const linesQuery: TeamQueryKind<typeof linesInput, SentLines> = {
  name: "lines",
  input: linesInput,
  run: async (_, question: LinesRequest, lines) => answerLinesRequest(await lines(), question),
}
