import { join } from "node:path"
import { readStart } from "../../core/read-file.ts"
import type { CommitDiff } from "../../git/commit-diffs.ts"
import { type BlameFacts, blameFacts, type LineQueries } from "../../learn/blame/facts.ts"
import { type AgentTrace, agentTraces } from "../../learn/blame/recorded.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import type { Dex } from "../context.ts"
import { updatedKnowledge } from "../learned.ts"
import { withRelatedProjects } from "./related-projects.ts"
import { type StoredFindings, storedFindings } from "./stored-findings.ts"
import type { BlameTarget } from "./target.ts"
import type { TeamHub } from "./team-facts.ts"

/** The knowledge that blame uses: the facts, earlier findings, and the repository's own records. */
export type LineKnowledge = {
  /** The facts that matter for these commits. */
  factsFor(commits: readonly CommitDiff[]): Promise<BlameFacts>
  stored?: StoredFindings
  traces: AgentTrace[]
  /** Read these after `factsFor`, which may add notes. */
  notes: string[]
  isTeam: boolean
}

/** Opens the knowledge about the target. With `hub`, the team's facts are included. */
export async function lineKnowledge(dex: Dex, target: BlameTarget, hub?: TeamHub): Promise<LineKnowledge> {
  const traces = readAgentTraces(target.root)
  const { knowledge, notes } = await knowledgeOf(dex, target)
  if (!hub) return { ...localKnowledge(dex, target, knowledge, notes), traces, notes, isTeam: false }
  const { teamFacts } = await import("./team-facts.ts")
  const teamNotes: string[] = knowledge ? notes : []
  const ownFacts = { project: target.project, localLines: knowledge?.lines ?? NO_ROWS, traces }
  return {
    factsFor: async (commits) => {
      const { facts, notes: moreNotes } = await teamFacts(dex, hub, ownFacts, commits)
      teamNotes.push(...moreNotes)
      return facts
    },
    traces,
    notes: teamNotes,
    isTeam: true,
  }
}

const NO_ROWS: LineQueries = {
  lineWorkers: () => [],
  lineFiles: () => [],
  editsOfFiles: () => [],
  ranCommits: () => [],
}
const NO_FACTS: BlameFacts = { workers: [], editsOf: () => [], commitRuns: [] }

function localKnowledge(
  dex: Dex,
  { project, root }: BlameTarget,
  knowledge: Knowledge | undefined,
  notes: string[],
): Pick<LineKnowledge, "factsFor" | "stored"> {
  if (!knowledge) return { factsFor: async () => NO_FACTS }
  // `learnedToken` is called before the facts are read, so that no findings are stored if another process learns meanwhile.
  const madeBy = { version: dex.version, token: knowledge.conversations.learnedToken() }
  const facts = blameFacts(knowledge, project)
  if (facts.workers.length === 0) notes.push("No conversations of this project are known.")
  return { factsFor: async () => facts, stored: storedFindings(knowledge, { project, root }, madeBy, facts.workers) }
}

/** Returns no knowledge if no conversation has been read, or if the project is private and this is not its folder. */
async function knowledgeOf(dex: Dex, target: BlameTarget): Promise<{ knowledge?: Knowledge; notes: string[] }> {
  if (!dex.hasHistory()) return { notes: ["No conversations have been read yet. Run `dex sync` first."] }
  const { knowledge, notes, isHidden } = await updatedKnowledge(dex)
  if (isHidden(target.project))
    return { notes: [...notes, "This project is private: its conversations are shown only inside its folder."] }
  const related = await withRelatedProjects(dex, knowledge.lines, target, isHidden)
  return {
    knowledge: { ...knowledge, lines: { ...knowledge.lines, ...related.lines } },
    notes: [...notes, ...related.notes],
  }
}

/** The file in which agents that follow Agent Trace store their records. */
const AGENT_TRACE_FILE = ".agent-trace/traces.jsonl"
const MAX_BYTES = 16 << 20

/** The repository's Agent Trace records; empty if the file is missing or cannot be read. */
function readAgentTraces(root: string): AgentTrace[] {
  try {
    return agentTraces(readStart(join(root, AGENT_TRACE_FILE), MAX_BYTES).toString("utf8"))
  } catch {
    return [] // The file is missing, or is not a regular file.
  }
}
