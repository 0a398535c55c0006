import { userInfo } from "node:os"
import { type Consent, type HubChoices, hubState } from "../../config/hub.ts"
import { loadSettings } from "../../config/load.ts"
import { lookAt } from "../../core/look-at.ts"
import { isSamePath } from "../../core/path-key.ts"
import { checkoutAt } from "../../git/project.ts"
import { createPlacePatterns, type PlacePatterns } from "../../hub-client/for-others.ts"
import type { OutgoingRules, Shareable } from "../../hub-client/outgoing.ts"
import type { PushParts } from "../../hub-client/push.ts"
import type { ConversationRow } from "../../store/history/store.ts"
import { openPushed, type Pushed } from "../../store/hub/pushed.ts"
import type { Dex } from "../context.ts"
import { folderOnDisk } from "../resolve.ts"

// Collects the parts of a running dex that sharing needs, except the hub.

export type SharingParts = Omit<PushParts, "hub" | "account">

export async function sharingOf(dex: Dex, choices: () => HubChoices, pushed: Pushed): Promise<SharingParts> {
  const store = await dex.storeToWrite()
  const { platform } = dex.machine
  return {
    store,
    pushed,
    choices,
    platform,
    now: () => dex.now(),
    rulesFor: rulesOf(dex, (project) => store.projectFolders(project)),
    allows: (project) => isSharingAllowed(dex, project),
    signal: dex.signal,
  }
}

/** Returns false if a setting forbids sharing. The file of any of the project's folders can forbid it, but never allow it. */
export function isSharingAllowed(dex: Dex, project: string): boolean {
  const { config: file } = dex.home
  const folders = new Set([project, folderOnDisk(dex, project), ...dex.foldersOf(project)])
  return [...folders].every((path) => loadSettings({ file, env: dex.machine.env, project: path }).settings["hub.share"])
}

export function openPushedStore(dex: Pick<Dex, "home">): Pushed {
  return openPushed(hubState(dex.home))
}

function rulesOf(dex: Dex, projectFolders: (project: string) => Promise<string[]>): PushParts["rulesFor"] {
  const { home, platform, env, otherHomes = [] } = dex.machine
  const userNames = [env.USER, env.LOGNAME, env.USERNAME, accountName()].filter(
    (name) => name !== undefined && name !== "",
  )
  const foldersOf = new Map<string, Promise<string[]>>()
  const places = new Map<string, PlacePatterns>()
  return async (row: ConversationRow, consent: Consent): Promise<OutgoingRules> => {
    if (!foldersOf.has(consent.project)) foldersOf.set(consent.project, projectFolders(consent.project))
    const knownFolders = await foldersOf.get(consent.project)!
    const worktrees = row.cwds.flatMap((cwd, i) => worktreeOf(cwd, i === 0) ?? [])
    const folders = [...new Set([...knownFolders, ...worktrees])]
    const key = JSON.stringify([folders, row.cwds])
    if (!places.has(key))
      places.set(
        key,
        createPlacePatterns({
          home,
          user: userNames as string[],
          folders: [...folders, ...row.cwds, ...otherHomes, dex.home.dir],
        }),
      )
    return { what: consent.what as Shareable[], folders, home, platform, places: places.get(key)! }

    /**
     * Returns the project's checkout that contains the folder. If the folder is gone and was the conversation's first one,
     * returns the folder itself.
     */
    function worktreeOf(cwd: string, isFirst: boolean): string | undefined {
      if (isSamePath(dex.projectOf(cwd), dex.projectOf(consent.project), platform)) return checkoutAt(cwd)?.root
      return isFirst && lookAt(cwd) === undefined ? cwd : undefined
    }
  }
}

function accountName(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined // The user has no entry in passwd.
  }
}
