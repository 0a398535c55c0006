import { agentOf } from "../../agents/registry.ts"
import { formatRef, siblingRef } from "../../core/ref.ts"
import type { LineOwner } from "../../learn/blame/owners.ts"
import type { RecordedAuthor } from "../../learn/blame/recorded.ts"
import type { OwnerFacts } from "./blame.ts"

const MAX_TITLE_LENGTH = 120

/** An owner in the form that all of blame's outputs use. */
export function ownerFacts({ level, reason, worker, number, recorded }: LineOwner): OwnerFacts {
  return {
    level,
    reason,
    ...(worker && {
      ref: formatRef(number ? { ...siblingRef(worker.ref, number.id), number: number.number } : worker.ref),
      conversation: formatRef(worker.ref),
      agent: ownerAgent(worker.ref.source),
      title: worker.title?.slice(0, MAX_TITLE_LENGTH),
    }),
    recorded: recorded && recordedText(recorded, worker !== undefined),
  }
}

export function ownerAgent(source: string): string {
  return agentOf(source)?.name ?? source
}

function recordedText({ by, agent, session }: RecordedAuthor, isHere: boolean): string {
  if (by === "Co-Authored-By") return `${by}: ${agent}`
  const author = [agent, session === undefined ? undefined : `session ${session}`].filter((one) => one !== undefined)
  const location = session === undefined || isHere ? "" : ", not on this machine"
  return `${by}${author.length === 0 ? "" : `: ${author.join(" ")}`}${location}`
}

export type LevelCounts = { total: number; proved: number; likely: number; unknown: number }

export function countsOf(levels: readonly LineOwner["level"][]): LevelCounts {
  const countOf = (level: LineOwner["level"]) => levels.filter((candidate) => candidate === level).length
  return { total: levels.length, proved: countOf("proved"), likely: countOf("likely"), unknown: countOf("unknown") }
}

/**
 * Counts lines by the agent whose conversation wrote them. If only the repository names an agent, the lines are listed under that
 * agent with the level "unknown".
 */
export function countsByAgent(owners: readonly LineOwner[]): ({ agent: string } & LevelCounts)[] {
  const groups = Map.groupBy(owners, ({ worker, recorded }) =>
    worker ? ownerAgent(worker.ref.source) : (recorded?.agent ?? ""),
  )
  return [...groups]
    .map(([agent, groupOwners]) => ({ agent, ...countsOf(groupOwners.map(({ level }) => level)) }))
    .sort((a, b) => b.total - a.total || a.agent.localeCompare(b.agent))
}
