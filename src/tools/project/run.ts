import { resolve } from "node:path"
import { consentFor, readHub } from "../../config/hub.ts"
import { DexError } from "../../core/error.ts"
import { isFolder } from "../../core/look-at.ts"
import { isSamePath } from "../../core/path-key.ts"
import { publishPlaces } from "../../ingest/identify-projects.ts"
import { moveChoices } from "../../ingest/move-choices.ts"
import type { ProjectIdentity } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"
import { updateDerivedData } from "../learned.ts"
import { folderNamed, isCurrentProject } from "../resolve.ts"
import type { ProjectInput } from "./project.ts"

const BY_USER = "you joined them"

export async function run(dex: Dex, { words }: ProjectInput) {
  if (!dex.hasHistory()) throw new DexError("no_history", "No conversations have been read yet. Run `dex sync` first.")
  const [action, typed, ...more] = words
  if (action === undefined) return { projects: await listed(dex) }
  if ((action !== "join" && action !== "split") || typed === undefined || more.length > 0)
    throw new DexError("usage", "Use `dex project`, `dex project join FOLDER` or `dex project split FOLDER`.")
  return action === "join" ? joinFolder(dex, typed) : splitFolder(dex, typed)
}

async function joinFolder(dex: Dex, typed: string) {
  const { project } = dex
  const folder = await knownFolder(dex, typed)
  if (isSamePath(folder, project, dex.machine.platform))
    throw new DexError("same_project", `${folder} belongs to this project already. \`dex project\` lists its folders.`)
  const store = await dex.storeToWrite()
  await store.joinProject(folder, project, BY_USER)
  await moveChoices(dex.home, folder, project)
  await publishPlaces({ store, home: dex.home })
  await updateDerivedData(dex, store)
  const shared = consentFor(readHub(dex.home), project, dex.machine.platform)?.key
  return { projects: await listed(dex), joined: folder, shared }
}

async function splitFolder(dex: Dex, typed: string) {
  const store = await dex.storeToWrite()
  const wanted = folderNamed(dex, typed)
  const folder = (await allFolders(dex)).find((path) => isSamePath(path, wanted, dex.machine.platform))
  if (folder === undefined || !(await store.splitProject(folder)))
    throw new DexError(
      "not_joined",
      `${wanted} is not a folder of a project with several. \`dex project\` lists projects and their folders.`,
    )
  await publishPlaces({ store, home: dex.home })
  await updateDerivedData(dex, store)
  return { projects: await listed(dex), split: folder }
}

/** The project of a folder, or of a path where one was. */
async function knownFolder(dex: Dex, typed: string): Promise<string> {
  const path = folderNamed(dex, typed)
  if (isFolder(path)) return dex.projectOf(path)
  const known = (await allFolders(dex)).find((folder) => isSamePath(folder, resolve(path), dex.machine.platform))
  if (known !== undefined) return dex.projectOf(known)
  throw new DexError("no_project", `There is no folder ${path}, and no conversation in one that was there.`)
}

async function allFolders(dex: Dex): Promise<string[]> {
  const identities = await (await dex.storeToWrite()).projectIdentities()
  return identities.flatMap(({ path, folders = [] }) => [path, ...folders.map((folder) => folder.path)])
}

/** The current project first, then those with the most conversations. */
async function listed(dex: Dex) {
  const identities = await (await dex.storeToWrite()).projectIdentities()
  const isCurrent = ({ path }: ProjectIdentity) => isCurrentProject(dex, path)
  return identities
    .filter((one) => isCurrent(one) || (one.conversations ?? 0) > 0 || one.private)
    .sort((a, b) => Number(isCurrent(b)) - Number(isCurrent(a)) || (b.conversations ?? 0) - (a.conversations ?? 0))
    .map((one) => ({
      path: one.path,
      current: isCurrent(one) || undefined,
      private: one.private,
      remotes: one.remotes ?? [],
      conversations: one.conversations ?? 0,
      folders: (one.folders ?? []).map(({ path, why = "the same repository in an imported history" }) => ({
        path,
        why,
      })),
    }))
}
