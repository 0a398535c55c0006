import { isFolder } from "../core/look-at.ts"
import { normaliseRemote, repositoryIdentity } from "../git/identity.ts"
import type { ConversationRow } from "../store/history/store.ts"
import type { Dex } from "./context.ts"
import { folderProblem } from "./resolve.ts"

/** The folder in which an agent continues a conversation. `why` explains why it is not the original folder, and what to do. */
export type FolderToOpen = { folder?: string; why?: string }

/**
 * The conversation's own folder. If it no longer exists: the current folder, if that was requested or is a clone of the same
 * repository.
 */
export async function folderToOpen(dex: Dex, row: ConversationRow, here: boolean): Promise<FolderToOpen> {
  if (here) return { folder: dex.cwd }
  const folders = [...row.cwds, ...(row.project === undefined ? [] : [row.project])]
  const folder = folders.find(isFolder)
  if (folder !== undefined) return { folder }
  const gone =
    folders.length === 0
      ? "The conversation's folder is not recorded"
      : `The conversation's folder ${folderProblem(folders)} (${row.project ?? row.cwds[0]})`
  if (await isCloneOf(dex, row.project))
    return { folder: dex.cwd, why: `${gone}. This folder is a clone of the same repository.` }
  return { why: `${gone}. To open it in the current folder: --here` }
}

async function isCloneOf(dex: Dex, project: string | undefined): Promise<boolean> {
  const known = (await (await dex.storeToWrite()).projectIdentities()).find(({ path }) => path === project)
  if (!known || (known.git_remote === undefined && known.root_commit === undefined)) return false
  const { remote, rootCommit } = await repositoryIdentity(dex.cwd)
  const isSameRemote =
    remote !== undefined && known.git_remote !== undefined && remote === normaliseRemote(known.git_remote)
  return isSameRemote || (rootCommit !== undefined && rootCommit === known.root_commit)
}
