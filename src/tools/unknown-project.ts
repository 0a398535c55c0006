import { basename } from "node:path"
import { nearestNames } from "../core/nearest.ts"
import { projectsHiddenFrom, projectsNamed } from "../search/scope.ts"
import type { HistoryReader } from "../store/history/store.ts"

const MAX_NAMED = 5

/** A sentence that says that no project's path contains the text, and names similar projects. Undefined if a path contains it. */
export async function unknownProject(
  store: HistoryReader,
  typed: string,
  inside: string | undefined,
): Promise<string | undefined> {
  const projects = await store.projects()
  const hidden = new Set(projectsHiddenFrom(projects, inside))
  const visible = projects.filter(({ path }) => !hidden.has(path))
  if (projectsNamed(visible, typed).length > 0) return undefined
  const paths = visible.map(({ path }) => path)
  const names = [...new Set(paths.map((path) => basename(path)))]
  const similarNames = nearestNames(typed, names)
  return [
    `No project's path contains "${typed}".`,
    ...(similarNames.length > 0 ? [`Similar projects: ${similarNames.join(", ")}.`] : knownProjects(names)),
  ].join(" ")
}

function knownProjects(names: string[]): string[] {
  if (names.length === 0) return []
  const rest = names.length > MAX_NAMED ? `, and ${names.length - MAX_NAMED} more` : ""
  return [`Projects: ${names.slice(0, MAX_NAMED).join(", ")}${rest}.`]
}
