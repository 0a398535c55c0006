import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { DexError } from "../../core/error.ts"
import { projectsHiddenFrom } from "../../search/scope.ts"
import type { Dex } from "../../tools/context.ts"
import { inProject, type PageRequest } from "../page.ts"

/** The file that an address names. `dex` runs inside its project. */
export type RequestedFile = {
  dex: Dex
  project: string
  /** Relative to the project, with forward slashes. */
  path: string
  /** The path on disk. */
  place: string
  rev?: string
}

/** A dex inside the project that an address names. dex must know the project, because a page reads no other folder. */
export async function requestedProject({ dex, query }: Pick<PageRequest, "dex" | "query">): Promise<Dex> {
  const named = query.get("project") ?? ""
  const projects = dex.hasHistory() ? await (await dex.store()).projects() : []
  if (named !== dex.project && !projects.some(({ path }) => path === named))
    throw new DexError(
      "not_found",
      named === "" ? "The address names no project." : `dex does not know the project ${named}.`,
    )
  return inProject(dex, named)
}

/** Throws a DexError if the path is outside the project, or in a private project below it. */
export async function requestedFile(request: Pick<PageRequest, "dex" | "query">): Promise<RequestedFile> {
  const { query } = request
  const dex = await requestedProject(request)
  const { project } = dex
  const path = pathWithin(project, query.get("path") ?? "")
  const place = join(project, path)
  await notPrivate(request.dex, place)
  const rev = query.get("rev") ?? ""
  if (/[\0-\x1f]/.test(rev)) throw new DexError("usage", "That is not the name of a commit.")
  return { dex, project, path, place, rev: rev !== "" ? rev : undefined }
}

/** A path inside the project, as git writes it. Neither `..` nor an absolute path nor a link can lead outside. */
export function pathWithin(project: string, path: string): string {
  const absolute = resolve(project, path)
  const below = relative(project, absolute)
  const isNamed = path !== "" && !/[\0-\x1f]/.test(path) && !isAbsolute(path)
  if (!isNamed || !isInside(project, absolute) || below === "" || !isInside(realOf(project), realOf(absolute)))
    throw new DexError("not_found", `${path === "" ? "A file without a name" : path} is not in ${project}.`)
  return below.replaceAll("\\", "/")
}

/** A private project may be below another one. */
async function notPrivate(dex: Dex, place: string): Promise<void> {
  if (!dex.hasHistory()) return
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, dex.machine.platform)
  const real = realOf(place)
  const own = hidden.find((project) => isInside(project, place) || isInside(realOf(project), real))
  if (own !== undefined)
    throw new DexError("private", `${own} is a private project. Run \`dex view\` inside that folder to see it.`)
}

function isInside(folder: string, path: string): boolean {
  const below = relative(folder, path)
  return below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below)
}

/** The real path. If the file is gone, the real path of the nearest folder that exists, with the rest appended. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realOf(above), relative(above, path))
  }
}
