import { join } from "node:path"
import { readStart } from "../../core/read-file.ts"
import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type BlameFacts, blameFacts, type LineRows } from "../../learn/blame/facts.ts"
import { type AgentTrace, agentTraces } from "../../learn/blame/recorded.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Dex } from "../context.ts"
import { learnedOf } from "../learned.ts"
import { type Kept, keptFindings } from "./kept.ts"
import type { BlameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

/** What is known, what was found before, and what of the repository's own records tells more. */
export type KnownOfLines = {
  /** What has a say in these commits. */
  factsFor(commits: readonly CommitDiff[]): Promise<BlameFacts>
  kept?: Kept
  traces: AgentTrace[]
  /** Grows while facts are asked for. */
  notes: string[]
  isTeam: boolean
}

/** `hub`: what the team knows is asked for too. */
export async function knownOfLines(dex: Dex, target: BlameTarget, hub?: TeamHub): Promise<KnownOfLines> {
  const traces = readAgentTraces(target.root)
  const { knowledge, notes } = await knowledgeOf(dex, target)
  if (!hub) return { ...knownHere(dex, target, knowledge, notes), traces, notes, isTeam: false }
  const { teamFacts } = await import("./team-facts.ts")
  const told: string[] = knowledge ? notes : []
  const of = { project: target.project, own: knowledge?.lines ?? NO_ROWS, traces }
  return {
    factsFor: async (commits) => {
      const { facts, notes: more } = await teamFacts(dex, hub, of, commits)
      told.push(...more)
      return facts
    },
    traces,
    notes: told,
    isTeam: true,
  }
}

const NO_ROWS: LineRows = { lineWorkers: () => [], lineFiles: () => [], editsOfFiles: () => [], ranCommits: () => [] }
const NOTHING: BlameFacts = { workers: [], editsOf: () => [], ran: [] }

function knownHere(
  dex: Dex,
  { project, root }: BlameTarget,
  knowledge: Knowledge | undefined,
  notes: string[],
): Pick<KnownOfLines, "factsFor" | "kept"> {
  if (!knowledge) return { factsFor: async () => NOTHING }
  // Before the facts are read: whoever learns meanwhile makes what is found from them old.
  const by = { version: dex.version, token: knowledge.conversations.learnedToken() }
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversation in this project is known.")
  return { factsFor: async () => facts, kept: keptFindings(knowledge, { project, root }, by, facts.workers) }
}

/** Undefined where nothing is known that may be told. */
async function knowledgeOf(dex: Dex, { project }: BlameTarget): Promise<{ knowledge?: Knowledge; notes: string[] }> {
  if (!dex.hasHistory())
    return { notes: ["No conversation was read yet: `dex sync` reads them, and then lines have owners."] }
  const { knowledge, notes, isHidden } = await learnedOf(dex)
  if (isHidden(project))
    return { notes: [...notes, "This project is private: what is known of it is told only inside it."] }
  return { knowledge, notes }
}

/** Where agents that follow Agent Trace leave their records. */
const PLACE = ".agent-trace/traces.jsonl"
const MOST_BYTES = 16 << 20

/** What the repository's Agent Trace file says; nothing where there is none, or none that can be read. */
function readAgentTraces(root: string): AgentTrace[] {
  try {
    return agentTraces(readStart(join(root, PLACE), MOST_BYTES).toString("utf8"))
  } catch {
    return [] // not there, or no regular file
  }
}
