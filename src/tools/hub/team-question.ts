import type { LineRows } from "../../blame/facts.ts"
import type { Infer, Schema } from "../../core/schema.ts"
import type { Dex } from "../context.ts"

/**
 * What a laptop asks of a team's history beside its tools, to make an answer of its own. Answered on the hub, for one person.
 * Every conversation in an answer is named as `id`: so the audit log knows who read what.
 */
export type TeamQuestionKind<I extends Schema = Schema, O = unknown> = {
  name: string
  input: I
  /** `lines`: those that the person may know of. */
  run(dex: Dex, input: Infer<I>, lines: () => Promise<LineRows>): Promise<O>
}
