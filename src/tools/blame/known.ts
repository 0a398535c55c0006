import { type BlameFacts, blameFacts } from "../../blame/facts.ts"
import type { AgentTrace } from "../../blame/recorded.ts"
import type { Dex } from "../context.ts"
import { learnedOf } from "../learned.ts"
import { type Kept, keptFindings } from "./kept.ts"
import { readAgentTraces } from "./read-traces.ts"
import type { BlameTarget } from "./target.ts"

/** What is known, what was found before, and what of the repository's own records tells more. */
export type KnownOfLines = { facts: BlameFacts; kept?: Kept; traces: AgentTrace[]; notes: string[] }

export async function knownOfLines(dex: Dex, target: BlameTarget): Promise<KnownOfLines> {
  return { ...(await factsOf(dex, target)), traces: readAgentTraces(target.root) }
}

const NOTHING: BlameFacts = { workers: [], editsOf: () => [], ran: [] }

async function factsOf(dex: Dex, { project, root }: BlameTarget): Promise<Omit<KnownOfLines, "traces">> {
  if (!dex.hasHistory())
    return {
      facts: NOTHING,
      notes: ["No conversation was read yet: `dex sync` reads them, and then lines have owners."],
    }
  const { knowledge, notes, isHidden } = await learnedOf(dex)
  if (isHidden(project))
    return { facts: NOTHING, notes: [...notes, "This project is private: what is known of it is told only inside it."] }
  // Before the facts are read: whoever learns meanwhile makes what is found from them old.
  const by = { version: dex.version, token: knowledge.conversations.learnedToken() }
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversation in this project is known.")
  return { facts, kept: keptFindings(knowledge, { project, root }, by, facts.workers), notes }
}
