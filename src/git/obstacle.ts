import { join, resolve } from "node:path"
import { lookAt } from "../files/look-at.ts"
import { gitFolderOf, readHead } from "./project.ts"

/** What git opens whatever it is asked. */
const OPENED = [
  ...["HEAD", "config", "config.worktree", "index", "packed-refs", "shallow", "commondir"],
  ...["info/exclude", "info/attributes", "info/grafts", "objects/info/alternates", "objects/info/commit-graph"],
]

/**
 * The first file of a repository that git would open and that is no regular file: git would wait at a pipe for as long as
 * it is let. Undefined where there is none. Of what is deeper in it, objects above all, git's time limit takes care.
 */
export function obstacleIn(folder: string): string | undefined {
  const own = gitFolderOf(folder)
  if (own === undefined) return undefined
  const common = readHead(join(own, "commondir"))?.trim()
  const places = common === undefined ? [own] : [own, resolve(own, common)]
  const head = readHead(join(own, "HEAD"))?.match(/^ref: (refs\/[^\0\n]+)$/m)?.[1]
  const names = head === undefined ? OPENED : [...OPENED, head.trim()]
  return places
    .flatMap((place) => names.map((name) => join(place, name)))
    .concat([".gitignore", ".gitattributes"].map((name) => join(folder, name)))
    .find((path) => isObstacle(path))
}

function isObstacle(path: string): boolean {
  const found = lookAt(path)
  return found !== undefined && found !== "unknown" && !found.isFile() && !found.isDirectory()
}
