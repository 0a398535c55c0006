import { existsSync } from "node:fs"
import { optIn } from "../config/projects.ts"
import { messageOf } from "../core/error.ts"
import { checkoutAt } from "../git/project.ts"
import { type CodeSyncOptions, syncProjectCode } from "../ingest/project-code.ts"
import { syncProjectGit } from "../ingest/project-git.ts"
import { learnCommits } from "../learn/decisions/decisions.ts"
import { many } from "../render/words.ts"
import type { Knowledge } from "../store/knowledge/knowledge.ts"
import type { Dex } from "./context.ts"
import { folderOnDisk } from "./resolve.ts"

/** The time limit for reading a project's code, in milliseconds. Facts from the files that were read by then are kept. */
const MAX_MS = 5_000

/** Opts a project in, and updates the facts from its git history and its code. Returns notes about what could not be read. */
export async function readProject(dex: Dex, knowledge: Knowledge, project: string): Promise<string[]> {
  const folder = folderOnDisk(dex, project)
  if (!existsSync(folder) || checkoutAt(folder)?.root !== folder) return []
  optIn(dex.home, folder)
  return [...(await learnFromGit(dex, knowledge, project)), ...(await readCode(dex, knowledge, project))]
}

/** Learns from the git history, including the decisions in commits. */
export async function learnFromGit(dex: Dex, knowledge: Knowledge, project: string): Promise<string[]> {
  try {
    const { left_out } = await syncProjectGit(knowledge, project, {
      folder: folderOnDisk(dex, project),
      now: dex.now(),
      signal: dex.signal,
    })
    learnCommits(knowledge, project)
    return left_out
  } catch (error) {
    return [`The project's git history could not be read: ${messageOf(error)}`]
  }
}

async function readCode(dex: Dex, knowledge: Knowledge, project: string): Promise<string[]> {
  const timeout = AbortSignal.timeout(MAX_MS)
  const signal = dex.signal ? AbortSignal.any([dex.signal, timeout]) : timeout
  const onProgress = (done: number, total: number) =>
    dex.onProgress?.({ phase: "learning", done, total, bytes: done, bytesTotal: total })
  try {
    const options: CodeSyncOptions = { signal, onProgress, inSubprocess: dex.staysSmall || undefined }
    const { not_listed } = await syncProjectCode({ knowledge, project, folder: folderOnDisk(dex, project) }, options)
    return not_listed === 0 ? [] : [`The project has too many code files. Not read: ${many(not_listed, "file")}.`]
  } catch (error) {
    if (timeout.aborted)
      return [
        "The project's code has not been read completely. The next call will continue, and `dex watch` reads all of it.",
      ]
    return [`The project's code could not be read: ${messageOf(error)}`]
  }
}
