import { consentFor, readHub } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import type { CommitDiff } from "../../git/commit-diffs.ts"
import type { HubClient } from "../../hub-client/client.ts"
import { keyOfProject } from "../../hub-client/project-key.ts"
import { evidenceDeadline } from "../../learn/blame/evidence.ts"
import { type BlameFacts, blameFacts, type LineQueries } from "../../learn/blame/facts.ts"
import { type LinesRequest, mergeLines, type SentLines } from "../../learn/blame/lines-about.ts"
import { type AgentTrace, recordedAuthors } from "../../learn/blame/recorded.ts"
import type { Dex } from "../context.ts"
import { folderOnDisk } from "../resolve.ts"

export type TeamHub = Pick<HubClient, "ask">

const TRUNCATED_NOTE = "Your team's hub knows of more edits than it can send at once. Ask about fewer lines or commits."

/** Facts from this machine and from the team's hub about who wrote these commits. */
export async function teamFacts(
  dex: Dex,
  hub: TeamHub,
  { project, localLines, traces }: { project: string; localLines: LineQueries; traces: readonly AgentTrace[] },
  commits: readonly CommitDiff[],
): Promise<{ facts: BlameFacts; notes: string[] }> {
  const query = linesRequestFor(await keyOf(dex, project), commits, traces)
  const hubLines = await hub.ask<SentLines>("lines", query)
  return {
    facts: blameFacts({ lines: mergeLines(localLines, project, hubLines) }, project),
    notes: hubLines.is_cut ? [TRUNCATED_NOTE] : [],
  }
}

function linesRequestFor(project: string, commits: readonly CommitDiff[], traces: readonly AgentTrace[]): LinesRequest {
  const deadlines = new Map<string, number>()
  for (const commit of commits)
    for (const { path } of commit.files)
      deadlines.set(path, Math.min(evidenceDeadline(commit), deadlines.get(path) ?? Number.POSITIVE_INFINITY))
  const sessions = commits.flatMap((commit) => recordedAuthors(commit, traces).flatMap(({ session }) => session ?? []))
  return {
    project,
    commits: commits.map(({ hash, at, subject }) => ({ hash, at, subject })),
    paths: [...deadlines].map(([path, deadline]) => ({ path, until: deadline })),
    sessions: [...new Set(sessions)],
  }
}

async function keyOf(dex: Dex, project: string): Promise<string> {
  const key =
    consentFor(readHub(dex.home), project, dex.machine.platform)?.key ??
    (await keyOfProject(folderOnDisk(dex, project)))
  if (key !== undefined) return key
  throw new DexError(
    "no_key",
    `${project} has no git remote, so its name on the hub is unknown. \`dex hub share --name acme/api\` sets one.`,
  )
}
