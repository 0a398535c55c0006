import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { DexError } from "../../core/error.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import type { Dex } from "../../tools/context.ts"
import { dexInProject, type PageRequest } from "../page.ts"

/** The file in a page's address. `dex` runs inside the file's project. */
export type RequestedFile = {
  dex: Dex
  project: string
  /** Relative to the project, with forward slashes. */
  path: string
  /** Absolute. */
  diskPath: string
  rev?: string
}

/** A dex inside the project in a page's address. The project must be known to dex, because a page reads no other folder. */
export async function requestedProject({ dex, query }: Pick<PageRequest, "dex" | "query">): Promise<Dex> {
  const name = query.get("project") ?? ""
  const projects = dex.hasHistory() ? await (await dex.store()).projects() : []
  if (name !== dex.project && !projects.some(({ path }) => path === name))
    throw new DexError(
      "not_found",
      name === "" ? "The address does not name a project." : `dex does not know the project ${name}.`,
    )
  return dexInProject(dex, name)
}

/** Throws a DexError if the path is outside the project, or in a private project nested in it. */
export async function requestedFile(request: Pick<PageRequest, "dex" | "query">): Promise<RequestedFile> {
  const { query } = request
  const dex = await requestedProject(request)
  const { project, place } = dex
  const path = relativePathInProject(place, query.get("path") ?? "")
  const diskPath = join(place, path)
  await refusePrivate(request.dex, diskPath)
  const rev = query.get("rev") ?? ""
  if (/[\0-\x1f]/.test(rev)) throw new DexError("usage", "That is not the name of a commit.")
  return { dex, project, path, diskPath, rev: rev !== "" ? rev : undefined }
}

/** The path relative to the project, as git writes it. Neither `..` nor an absolute path nor a link can lead outside. */
export function relativePathInProject(project: string, path: string): string {
  const absolute = resolve(project, path)
  const relativePath = relative(project, absolute)
  const isValidName = path !== "" && !/[\0-\x1f]/.test(path) && !isAbsolute(path)
  if (
    !isValidName ||
    !isInside(project, absolute) ||
    relativePath === "" ||
    !isInside(realPathOf(project), realPathOf(absolute))
  )
    throw new DexError("not_found", `${path === "" ? "A file without a name" : path} is not in ${project}.`)
  return relativePath.replaceAll("\\", "/")
}

/** Throws if the file belongs to a private project, which may be nested in another one. */
async function refusePrivate(dex: Dex, diskPath: string): Promise<void> {
  if (!dex.hasHistory()) return
  const hiddenProjects = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, dex.machine.platform)
  const realPath = realPathOf(diskPath)
  const privateProject = hiddenProjects.find((project) =>
    dex.foldersOf(project).some((folder) => isInside(folder, diskPath) || isInside(realPathOf(folder), realPath)),
  )
  if (privateProject !== undefined)
    throw new DexError(
      "private",
      `${privateProject} is a private project. Run \`dex view\` inside that folder to see it.`,
    )
}

function isInside(folder: string, path: string): boolean {
  const relativePath = relative(folder, path)
  return relativePath !== ".." && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath)
}

/** The path with links resolved. If the file is gone, the real path of the nearest existing folder, with the rest appended. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const parent = dirname(path)
    return parent === path ? path : join(realPathOf(parent), relative(parent, path))
  }
}
