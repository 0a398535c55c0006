import { formatRef, parseWholeRef, wholeOf } from "../../../src/core/ref.ts"
import type { TeamQuestion } from "../shards/answer.ts"
import type { Shards } from "../shards/pool.ts"
import { recordAudit } from "../store/audit.ts"
import type { Database } from "../store/connection.ts"
import { HubProblem } from "../store/problem.ts"

/** Asks the shards, and records who got which conversations before they get them. The question itself is not recorded. */
export function auditedAsk(db: Database, shards: Pick<Shards, "ask">): (question: TeamQuestion) => Promise<unknown> {
  return async (question) => {
    const { viewer, tool } = question
    if (viewer.role === "auditor")
      throw new HubProblem(403, "forbidden", "An auditor can read the audit log, but no conversation.")
    const output = await shards.ask(question)
    const conversations = [...refsIn(output)]
    await db.as(viewer, (query) =>
      recordAudit(query, viewer, { action: "read", target: tool, detail: { conversations } }),
    )
    return output
  }
}

/** The conversations in an answer. Every tool calls their refs `id`. */
function refsIn(value: unknown, found = new Set<string>()): Set<string> {
  if (typeof value !== "object" || value === null) return found
  for (const [key, inner] of Object.entries(value)) {
    const ref = key === "id" && typeof inner === "string" ? parseWholeRef(inner) : undefined
    if (ref) found.add(formatRef(wholeOf(ref)))
    else refsIn(inner, found)
  }
  return found
}
