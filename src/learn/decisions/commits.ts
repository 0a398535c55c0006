import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { decisionsInCommits } from "./decisions.ts"
import { supersede } from "./supersede.ts"

/** The newest that break or take back something. */
const MOST_COMMITS = 500

/** Brings what a project's commits decide up to what was read of its git history. */
export function learnCommits(knowledge: Knowledge, project: string): void {
  const read = knowledge.git.gitProject(project)
  if (!read || read.decided === read.head) return
  const commits = knowledge.git.markedCommits(project, { limit: MOST_COMMITS }).map((commit) => ({
    ...commit,
    files: knowledge.git.filesOfCommit(project, commit.hash),
  }))
  knowledge.decisions.saveCommitDecisions(project, decisionsInCommits(commits.toReversed()), read.head)
  knowledge.decisions.renewReversals(supersede)
}
