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

/** Adds a project to the list. Returns false if the list already contained the project. */
export function optIn(home: Pick<Home, "dir">, project: string): boolean {
  const current = optedInProjects(home)
  if (current.some((path) => isSamePath(path, project))) return false
  writeProjects(home, [...current, project].sort())
  return true
}

/** Creates the file with the list if necessary, so that it can be watched. */
export function prepareProjects(home: Pick<Home, "dir">): void {
  if (!existsSync(projectsFile(home))) writeProjects(home, [])
}

/** Removes a project from the list. Returns false if the list did not contain the project. */
export function optOut(home: Pick<Home, "dir">, project: string): boolean {
  const current = optedInProjects(home)
  if (!current.some((path) => isSamePath(path, project))) return false
  writeProjects(
    home,
    current.filter((path) => !isSamePath(path, project)),
  )
  return true
}

export function projectsFile({ dir }: Pick<Home, "dir">): string {
  return join(dir, "projects.json")
}

/** The list of documents in this folder to which the user agreed, as its checksum, and the names of its collections. */
export type AgreedDocuments = { list: string; collections: string[] }

export function agreedDocuments(home: Pick<Home, "dir">): Record<string, AgreedDocuments> {
  const { documents } = readObject(projectsFile(home), [])
  const entries = typeof documents === "object" && documents !== null ? Object.entries(documents) : []
  return Object.fromEntries(
    entries.filter(([, one]) => typeof one?.list === "string" && Array.isArray(one.collections)),
  )
}

export function agreeToDocuments(home: Pick<Home, "dir">, folder: string, agreed: AgreedDocuments): void {
  write(home, optedInProjects(home), { ...agreedDocuments(home), [folder]: agreed })
}

function writeProjects(home: Pick<Home, "dir">, projects: string[]): void {
  write(home, projects, agreedDocuments(home))
}

function write(home: Pick<Home, "dir">, projects: string[], documents: Record<string, AgreedDocuments>): void {
  const content = { projects, ...(Object.keys(documents).length > 0 && { documents }) }
  replaceFile(projectsFile(home), `${JSON.stringify(content, undefined, 2)}\n`)
}
