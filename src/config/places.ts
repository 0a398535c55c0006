import { statSync } from "node:fs"
import { join } from "node:path"
import { pathKey } from "../core/path-key.ts"
import type { Home } from "./home.ts"
import { readObject } from "./load.ts"
import { replaceFile } from "./write.ts"

/** The folders of every project, in `places.json`. A copy of what is in the history, for code such as hooks that must not open the database. */
export type Places = {
  /** The project that has this folder. Undefined if dex does not know the folder. */
  projectOf(place: string): string | undefined
  /** The project's own folder and its others. */
  foldersOf(project: string): string[]
  /** True if a folder is a repository that dex has not yet compared with the projects that it knows, in this state of its git folder. */
  isUnidentified(place: string, gitStamp: string | undefined): boolean
}

type PlacesFile = {
  /** The other folders of each project, by the project's own. */
  projects: Record<string, string[]>
  /** Folders that belong to no project, and the state of their git folder. */
  others: Record<string, string>
}

export function readPlaces(home: Pick<Home, "dir">, platform = process.platform): Places {
  const { projects, others } = readFile(home)
  const byFolder = new Map(
    Object.entries(projects).flatMap(([project, folders]) =>
      [project, ...folders].map((folder) => [pathKey(folder, platform), project] as const),
    ),
  )
  return {
    projectOf: (place) => byFolder.get(pathKey(place, platform)),
    foldersOf: (project) => [project, ...(projects[byFolder.get(pathKey(project, platform)) ?? project] ?? [])],
    isUnidentified: (place, gitStamp) =>
      !byFolder.has(pathKey(place, platform)) && gitStamp !== undefined && others[place] !== gitStamp,
  }
}

/** Returns a reader that reads the file again only after it has changed. */
export function watchPlaces(home: Pick<Home, "dir">, platform = process.platform): () => Places {
  let state: string | undefined
  let places: Places | undefined
  return () => {
    const stats = statSync(placesFile(home), { throwIfNoEntry: false })
    const newState = stats && `${stats.ino} ${stats.mtimeMs} ${stats.size}`
    if (places === undefined || newState !== state) places = readPlaces(home, platform)
    state = newState
    return places
  }
}

/** Replaces the list of projects. Folders that belonged to none are compared again. Writes nothing if nothing has changed. */
export function savePlaces(home: Pick<Home, "dir">, projects: Record<string, string[]>): void {
  const before = JSON.stringify(readFile(home).projects)
  if (JSON.stringify(projects) !== before) write(home, { projects, others: {} })
}

/** Remembers that a folder belongs to no known project. */
export function savePlaceWithoutProject(home: Pick<Home, "dir">, place: string, stamp: string): void {
  const { projects, others } = readFile(home)
  write(home, { projects, others: { ...others, [place]: stamp } })
}

function readFile(home: Pick<Home, "dir">): PlacesFile {
  const { projects, others } = readObject(placesFile(home), [])
  return {
    projects: Object.fromEntries(
      Object.entries(isObject(projects) ? projects : {}).map(([project, folders]) => [
        project,
        Array.isArray(folders) ? folders.filter((folder): folder is string => typeof folder === "string") : [],
      ]),
    ),
    others: Object.fromEntries(
      Object.entries(isObject(others) ? others : {}).flatMap(([place, stamp]) =>
        typeof stamp === "string" ? [[place, stamp]] : [],
      ),
    ),
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value)
}

function write(home: Pick<Home, "dir">, places: PlacesFile): void {
  replaceFile(placesFile(home), `${JSON.stringify(places, undefined, 2)}\n`)
}

function placesFile({ dir }: Pick<Home, "dir">): string {
  return join(dir, "places.json")
}
