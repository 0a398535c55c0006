import { existsSync } from "node:fs"
import { optIn } from "../config/projects.ts"
import { messageOf } from "../core/error.ts"
import { checkoutAt } from "../git/project.ts"
import { syncProjectGit } from "../ingest/project-git.ts"
import type { Knowledge } from "../store/knowledge.ts"
import type { Dex } from "./context.ts"

/** Opts a project in, and brings what its git history tells up to date. Returns what could not be read. */
export async function readProject(dex: Dex, knowledge: Knowledge, project: string): Promise<string[]> {
  if (!existsSync(project) || checkoutAt(project)?.root !== project) return []
  optIn(dex.home, project)
  try {
    const { left_out } = await syncProjectGit(knowledge, project, { now: dex.now(), signal: dex.signal })
    return left_out
  } catch (error) {
    return [`Its git history could not be read: ${messageOf(error)}`]
  }
}
