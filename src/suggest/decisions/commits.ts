import { renewReversals, saveCommitDecisions } from "../../store/knowledge/decisions.ts"
import { filesOfCommit, gitProject, markedCommits, setDecided } from "../../store/knowledge/git.ts"
import type { Knowledge } from "../../store/knowledge/knowledge.ts"
import { inTransaction } from "../../store/sqlite/database.ts"
import { decisionsInCommits } from "./decisions.ts"
import { supersede } from "./supersede.ts"

/** The newest that break or take back something. */
const MOST_COMMITS = 500

/** Brings what a project's commits decide up to what was read of its git history. */
export function learnCommits(knowledge: Knowledge, project: string): void {
  const read = gitProject(knowledge, project)
  if (!read || read.decided === read.head) return
  const commits = markedCommits(knowledge, project, { limit: MOST_COMMITS }).map((commit) => ({
    ...commit,
    files: filesOfCommit(knowledge, project, commit.hash),
  }))
  inTransaction(knowledge, () => {
    saveCommitDecisions(knowledge, project, decisionsInCommits(commits.toReversed()))
    setDecided(knowledge, project, read.head)
  })
  renewReversals(knowledge, supersede)
}
