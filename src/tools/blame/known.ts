import type { BlameFacts } from "../../blame/facts.ts"
import type { AgentTrace } from "../../blame/recorded.ts"
import type { Dex } from "../context.ts"
import { learnedOf } from "../learned.ts"
import { readAgentTraces } from "./read-traces.ts"
import type { BlameTarget } from "./target.ts"

/** What is known, and what of the repository's own records tells more. */
export type KnownOfLines = { facts: BlameFacts; traces: AgentTrace[]; notes: string[] }

export async function knownOfLines(dex: Dex, { project, root }: BlameTarget): Promise<KnownOfLines> {
  return { ...(await factsOf(dex, project)), traces: readAgentTraces(root) }
}

const NOTHING: BlameFacts = { workers: [], editsOf: () => [], ran: [] }

async function factsOf(dex: Dex, project: string): Promise<Omit<KnownOfLines, "traces">> {
  if (!dex.hasHistory())
    return {
      facts: NOTHING,
      notes: ["No conversation was read yet: `dex sync` reads them, and then lines have owners."],
    }
  const { knowledge, notes, isHidden } = await learnedOf(dex)
  if (isHidden(project))
    return { facts: NOTHING, notes: [...notes, "This project is private: what is known of it is told only inside it."] }
  const { blameFacts } = await import("../../blame/facts.ts")
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversation in this project is known.")
  return { facts, notes }
}
