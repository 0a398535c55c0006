import { commitsIn, knownRemotes, repositoryIdentity } from "../../git/identity.ts"
import type { LineQueries } from "../../learn/blame/facts.ts"
import { many } from "../../render/words.ts"
import type { ProjectIdentity } from "../../store/history/store.ts"
import type { LineWorker } from "../../store/knowledge/lines.ts"
import type { Dex } from "../context.ts"
import type { BlameTarget } from "./target.ts"

// A fork and its upstream are two projects if their remotes differ. The commits that both contain were nevertheless made by the
// same conversations. Only those conversations are added: two repositories from one template share commits that nobody's
// conversation made.

/** A related project, and its conversations whose commits this repository contains. */
type RelatedProject = { project: string; conversations: Set<number> }

/** Adds the lines of related projects to a project's own. */
export async function withRelatedProjects(
  dex: Dex,
  own: LineQueries,
  target: BlameTarget,
  isHidden: (project: string) => boolean,
): Promise<{ lines: LineQueries; notes: string[] }> {
  const related: RelatedProject[] = []
  for (const project of (await projectsLike(dex, target)).filter((path) => !isHidden(path))) {
    const made = await commitsIn(target.root, own.ranCommits(project))
    if (made.length > 0) related.push({ project, conversations: new Set(made.map((commit) => commit.conversation)) })
  }
  const ofRelated = <Row>(rowsOf: (other: RelatedProject) => Row[]) => related.flatMap(rowsOf)
  return {
    lines: {
      lineWorkers: (project) => [...own.lineWorkers(project), ...ofRelated((other) => workersOf(own, other))],
      lineFiles: (project) => [...own.lineFiles(project), ...ofRelated((other) => own.lineFiles(other.project))],
      ranCommits: (project) => [...own.ranCommits(project), ...ofRelated((other) => own.ranCommits(other.project))],
      editsOfFiles: own.editsOfFiles,
    },
    notes: related.map(
      ({ project, conversations }) =>
        `Includes ${many(conversations.size, "conversation")} of ${project}, whose commits this repository contains.`,
    ),
  }
}

/** These conversations and their subagents. The files and commits of others are ignored, because their workers are unknown. */
function workersOf(lines: LineQueries, { project, conversations }: RelatedProject): LineWorker[] {
  const workers = lines.lineWorkers(project)
  const starters = new Set(workers.filter((one) => conversations.has(one.conversation)).map(({ id }) => id))
  return workers.filter((one) => conversations.has(one.conversation) || starters.has(one.belongs_to))
}

/** The projects that have the same first commit or a common remote. */
async function projectsLike(dex: Dex, { project, root }: BlameTarget): Promise<string[]> {
  const identities = await (await dex.storeToWrite()).projectIdentities()
  const others = identities.filter(({ path }) => path !== project)
  if (others.length === 0) return []
  const { remotes, rootCommit } = await identityOf(identities, project, root)
  return others
    .filter(
      (other) =>
        (rootCommit !== undefined && other.root_commit === rootCommit) ||
        knownRemotes(other).some((remote) => remotes.includes(remote)),
    )
    .map(({ path }) => path)
}

/** As stored, or as git says if no agent has worked in this project. */
async function identityOf(identities: readonly ProjectIdentity[], project: string, root: string) {
  const stored = identities.find(({ path }) => path === project)
  if (stored?.root_commit === undefined) return repositoryIdentity(root)
  return { remotes: knownRemotes(stored), rootCommit: stored.root_commit }
}
