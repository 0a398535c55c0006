import { join } from "node:path"
import { readStart } from "../../core/read-file.ts"
import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type BlameFacts, blameFacts, type LineRows } from "../../learn/blame/facts.ts"
import { type AgentTrace, agentTraces } from "../../learn/blame/recorded.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import { type StoredFindings, storedFindings } from "./stored-findings.ts"
import type { BlameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

/** What blame knows: the facts, earlier findings, and the repository's own records. */
export type LineKnowledge = {
  /** The facts that matter for these commits. */
  factsFor(commits: readonly CommitDiff[]): Promise<BlameFacts>
  kept?: StoredFindings
  traces: AgentTrace[]
  /** Facts that are read later may add notes. */
  notes: string[]
  isTeam: boolean
}

/** With `hub`, the team's facts are included. */
export async function lineKnowledge(dex: Dex, target: BlameTarget, hub?: TeamHub): Promise<LineKnowledge> {
  const traces = readAgentTraces(target.root)
  const { knowledge, notes } = await knowledgeOf(dex, target)
  if (!hub) return { ...localKnowledge(dex, target, knowledge, notes), traces, notes, isTeam: false }
  const { teamFacts } = await import("./team-facts.ts")
  const teamNotes: string[] = knowledge ? notes : []
  const of = { project: target.project, own: knowledge?.lines ?? NO_ROWS, traces }
  return {
    factsFor: async (commits) => {
      const { facts, notes: more } = await teamFacts(dex, hub, of, commits)
      teamNotes.push(...more)
      return facts
    },
    traces,
    notes: teamNotes,
    isTeam: true,
  }
}

const NO_ROWS: LineRows = { lineWorkers: () => [], lineFiles: () => [], editsOfFiles: () => [], ranCommits: () => [] }
const NO_FACTS: BlameFacts = { workers: [], editsOf: () => [], ran: [] }

function localKnowledge(
  dex: Dex,
  { project, root }: BlameTarget,
  knowledge: Knowledge | undefined,
  notes: string[],
): Pick<LineKnowledge, "factsFor" | "kept"> {
  if (!knowledge) return { factsFor: async () => NO_FACTS }
  // Read before the facts: if another process learns meanwhile, findings made from these facts must count as outdated.
  const by = { version: dex.version, token: knowledge.conversations.learnedToken() }
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversations of this project are known.")
  return { factsFor: async () => facts, kept: storedFindings(knowledge, { project, root }, by, facts.workers) }
}

/** Knowledge is undefined if nothing has been read, or if the project is private and this is not its folder. */
async function knowledgeOf(dex: Dex, { project }: BlameTarget): Promise<{ knowledge?: Knowledge; notes: string[] }> {
  if (!dex.hasHistory()) return { notes: ["No conversations have been read yet. Run `dex sync` first."] }
  const { knowledge, notes, isHidden } = await updatedKnowledge(dex)
  if (isHidden(project))
    return { notes: [...notes, "This project is private: its conversations are shown only inside its folder."] }
  return { knowledge, notes }
}

/** The file in which agents that follow Agent Trace store their records. */
const AGENT_TRACE_FILE = ".agent-trace/traces.jsonl"
const MAX_BYTES = 16 << 20

/** The repository's Agent Trace records; empty if the file is missing or cannot be read. */
function readAgentTraces(root: string): AgentTrace[] {
  try {
    return agentTraces(readStart(join(root, AGENT_TRACE_FILE), MAX_BYTES).toString("utf8"))
  } catch {
    return [] // missing, or not a regular file
  }
}
