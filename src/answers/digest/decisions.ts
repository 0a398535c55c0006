import type { Infer } from "../../core/schema.ts"
import type { Dex } from "../../tools/context.ts"
import type { decisionShape } from "../../tools/decisions/decisions.ts"
import { listedDecision } from "../../tools/decisions/run.ts"
import { learnedIfQuick } from "../../tools/learned.ts"

export type ListedDecision = Infer<typeof decisionShape>

const ALL = 1_000_000

/** What was decided in a period, by project, the newest first, as far as it was learned; the notes say where that is not all. */
export async function decisionsWithin(
  dex: Dex,
  range: { from: number; to: number },
  project?: string,
): Promise<{ decisions: Map<string, ListedDecision[]>; notes: string[] }> {
  const { knowledge, hidden, notes } = await learnedIfQuick(dex)
  const known = knowledge.decisions.knownDecisions({
    ...range,
    ...(project !== undefined && { project }),
    except: hidden,
    with_commits: true,
    limit: ALL,
  })
  const decisions = new Map<string, ListedDecision[]>()
  for (const decision of known.decisions.map(listedDecision))
    decisions.set(decision.project, [...(decisions.get(decision.project) ?? []), decision])
  return { decisions, notes }
}
