import { existsSync } from "node:fs"
import { join } from "node:path"
import { isSamePath } from "../core/path-key.ts"
import type { Home } from "./home.ts"
import { readObject } from "./load.ts"
import { replaceFile } from "./write.ts"

/** The projects that the user opted in: dex also reads their code and git history. Stored in `projects.json`. */
export function optedInProjects(home: Pick<Home, "dir">): string[] {
  const { projects } = readObject(projectsFile(home), [])
  return Array.isArray(projects) ? projects.filter((path): path is string => typeof path === "string") : []
}

/** Adds a project to the list. Returns true if it was not in it before. */
export function optIn(home: Pick<Home, "dir">, project: string): boolean {
  const current = optedInProjects(home)
  if (current.some((path) => isSamePath(path, project))) return false
  write(home, [...current, project].sort())
  return true
}

/** Creates the file, so that it can be watched. */
export function prepareProjects(home: Pick<Home, "dir">): void {
  if (!existsSync(projectsFile(home))) write(home, [])
}

/** Removes a project from the list. Returns true if it was in it. */
export function optOut(home: Pick<Home, "dir">, project: string): boolean {
  const current = optedInProjects(home)
  if (!current.some((path) => isSamePath(path, project))) return false
  write(
    home,
    current.filter((path) => !isSamePath(path, project)),
  )
  return true
}

export function projectsFile({ dir }: Pick<Home, "dir">): string {
  return join(dir, "projects.json")
}

function write(home: Pick<Home, "dir">, projects: string[]): void {
  replaceFile(projectsFile(home), `${JSON.stringify({ projects }, undefined, 2)}\n`)
}
