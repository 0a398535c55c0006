import { formatRef, refFrom } from "../../core/ref.ts"
import { type Infer, integer, listOf, object, type Schema, text } from "../../core/schema.ts"
import type { Tool } from "../../core/tool.ts"
import type { LineQueries } from "../../learn/blame/facts.ts"
import { answerLinesQuestion, type LinesQuestion, type SentLines } from "../../learn/blame/lines-about.ts"
import type { LineWorker } from "../../store/knowledge/lines.ts"
import type { Dex } from "../context.ts"

/**
 * A query that a laptop sends to the hub, besides calling its tools, to build an answer of its own. The hub answers with what the
 * person may see. An answer names each conversation in a field `id`, from which the audit log records who read what.
 */
export type TeamQuestionKind<I extends Schema = Schema, O = unknown> = {
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
export const linesQuery: TeamQuestionKind<typeof linesInput, SentLines> = {
  name: "lines",
  input: linesInput,
  run: async (dex, question: LinesQuestion, lines) =>
    answerLinesQuestion(await lines(), question, (workers) => readableTitles(dex, question.project, workers)),
}

/**
 * The titles of the conversations that the person may read. The history decides that, because derived data does not record who may
 * read a conversation.
 */
async function readableTitles(
  dex: Dex,
  project: string,
  workers: LineWorker[],
): Promise<Map<number, string | undefined>> {
  const store = await dex.store()
  const byName = new Map(workers.map((worker) => [formatRef(refFrom(worker.source, worker.id)), worker.conversation]))
  const among = workers.map(({ source, id }) => refFrom(source, id))
  const { rows } = await store.list({ among, in_project: project, inside: project, limit: among.length, offset: 0 })
  return new Map(
    rows.flatMap(({ ref, title }): [number, string | undefined][] => {
      const conversation = byName.get(formatRef(ref))
      return conversation === undefined ? [] : [[conversation, title?.text]]
    }),
  )
}
