import { isFolder } from "../core/look-at.ts"
import { normaliseRemote, repositoryIdentity } from "../git/identity.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "./context.ts"
import { folderProblem } from "./resolve.ts"

/** The folder in which an agent continues a conversation. `why` explains why it is not the original folder, and what to do. */
export type FolderToOpen = { folder?: string; why?: string }

/**
 * Returns the current folder if that was requested, otherwise the conversation's own folder. If that no longer exists, returns the
 * current folder if it is a clone of the same repository.
 */
export async function folderToOpen(dex: Dex, row: ConversationRow, useCurrentFolder: boolean): Promise<FolderToOpen> {
  if (useCurrentFolder) return { folder: dex.cwd }
  const folders = [...row.cwds, ...(row.project === undefined ? [] : [row.project])]
  const folder = folders.find(isFolder)
  if (folder !== undefined) return { folder }
  const reason =
    folders.length === 0
      ? "The conversation's folder is not recorded"
      : `The conversation's folder ${folderProblem(folders)} (${row.project ?? row.cwds[0]})`
  if (await isCloneOf(dex, row.project))
    return { folder: dex.cwd, why: `${reason}. This folder is a clone of the same repository.` }
  return { why: `${reason}. To open it in the current folder: --here` }
}

async function isCloneOf(dex: Dex, project: string | undefined): Promise<boolean> {
  const identity = (await (await dex.storeToWrite()).projectIdentities()).find(({ path }) => path === project)
  if (!identity || (identity.git_remote === undefined && identity.root_commit === undefined)) return false
  const { remote, rootCommit } = await repositoryIdentity(dex.cwd)
  const isSameRemote =
    remote !== undefined && identity.git_remote !== undefined && remote === normaliseRemote(identity.git_remote)
  return isSameRemote || (rootCommit !== undefined && rootCommit === identity.root_commit)
}
