import { isFolder } from "../core/look-at.ts"
import { isSamePath } from "../core/path-key.ts"
import { createProjectFinder } from "../git/project.ts"
import { pathBelow } from "../learn/paths.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "./context.ts"
import { folderProblem, isCurrentProject } from "./resolve.ts"

/** The folder in which an agent continues a conversation. `why` explains why it is not the original folder, and what to do. */
export type FolderToOpen = { folder?: string; why?: string }

/**
 * Returns the current folder if that was requested, or if it is another clone of the conversation's project. Otherwise returns the
 * conversation's own folder or, if that no longer exists, another folder of its project.
 */
export function folderToOpen(dex: Dex, row: ConversationRow, useCurrentFolder: boolean): FolderToOpen {
  if (useCurrentFolder) return { folder: dex.cwd }
  const folders = ownFolders(row)
  const folder = folders.find(isFolder)
  const isHere = isCurrentProject(dex, row.project)
  if (folder !== undefined && isHere && !isInCurrentCheckout(dex, folder))
    return {
      folder: dex.cwd,
      why: `The conversation began in ${folder}. This folder is another clone of the same project.`,
    }
  if (folder !== undefined) return { folder }
  const reason =
    folders.length === 0
      ? "The conversation's folder is not recorded"
      : `The conversation's folder ${folderProblem(folders)} (${folders.at(-1)})`
  if (isHere) return { folder: dex.cwd, why: `${reason}. This folder is a clone of the same repository.` }
  const other = row.project === undefined ? undefined : dex.foldersOf(row.project).find(isFolder)
  if (other !== undefined) return { folder: other, why: `${reason}. ${other} is a clone of the same repository.` }
  return { why: `${reason}. To open it in the current folder, add --here` }
}

/** The folders in which the conversation took place and, if one of them is in it, the folder by which its project is called. */
function ownFolders({ cwds, project }: ConversationRow): string[] {
  const contains = (folder: string) => folder === project || pathBelow(project ?? "", folder) !== undefined
  return project !== undefined && (cwds.length === 0 || cwds.some(contains)) ? [...cwds, project] : cwds
}

/** Whether a folder is in the current repository or one of its worktrees. */
function isInCurrentCheckout(dex: Dex, folder: string): boolean {
  return isSamePath(createProjectFinder(dex.machine.platform)(folder), dex.place, dex.machine.platform)
}
