import { isoDate } from "../../core/dates.ts"
import { DexError } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { integer, listOf, object, optional, text } from "../../core/schema.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import type { Collection } from "../../store/history/store.ts"
import type { Dex } from "../context.ts"

export const collectionShape = object({
  name: text("The start of its documents' refs: docs:name/…"),
  kind: text("folder, file, git or npm."),
  origin: text("The folder, file, address or package that was added."),
  project: optional(text("The project that the collection belongs to; absent for a global collection.")),
  version: optional(text("The commit or the package's version.")),
  documents: integer(),
  sections: integer(),
  estimated_tokens: integer(),
  synced_at: optional(text()),
  problems: listOf(text(), "Files that could not be read."),
})

export async function describeCollections(dex: Dex) {
  const store = await dex.store()
  const rows = []
  for (const { name, kind, origin, project, version, problems, synced_at } of await visibleCollections(dex)) {
    rows.push({
      name,
      kind,
      origin,
      project,
      version,
      ...(await store.documentsIn(name)),
      synced_at: synced_at === undefined ? undefined : isoDate(synced_at),
      problems,
    })
  }
  return rows
}

/** The collections that may be shown here. A private project's collections are visible only inside the project. */
async function visibleCollections(dex: Dex): Promise<Collection[]> {
  const store = await dex.store()
  const { platform } = dex.machine
  const hidden = projectsHiddenFrom(await store.projects(), dex.project, platform)
  return (await store.collections()).filter(
    ({ project }) => project === undefined || !hidden.some((path) => isSamePath(path, project, platform)),
  )
}

/** Returns the names if all these collections exist. Throws otherwise. */
export async function requireCollections(dex: Dex, names: string[]): Promise<string[]> {
  return requireKnown(dex, names, await (await dex.store()).collections())
}

/** Like `requireCollections`, but for reading: another private project's collection counts as one that does not exist. */
export async function requireVisibleCollections(dex: Dex, names: string[]): Promise<string[]> {
  return requireKnown(dex, names, await visibleCollections(dex))
}

async function requireKnown(dex: Dex, names: string[], known: Collection[]): Promise<string[]> {
  const unknown = names.find((wanted) => !known.some(({ name }) => name === wanted))
  if (unknown === undefined) return names
  const visibleNames = (await visibleCollections(dex)).map(({ name }) => name)
  const hint =
    visibleNames.length > 0
      ? `Existing collections: ${visibleNames.join(", ")}.`
      : "There are no collections yet. To add one: dex docs add <folder>"
  throw new DexError("no_collection", `There is no collection "${unknown}". ${hint}`)
}
