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
  /** The path on disk. */
  place: string
  rev?: string
}

/** A dex inside the project in a page's address. The project must be known to dex, because a page reads no other folder. */
export async function requestedProject({ dex, query }: Pick<PageRequest, "dex" | "query">): Promise<Dex> {
  const named = query.get("project") ?? ""
  const projects = dex.hasHistory() ? await (await dex.store()).projects() : []
  if (named !== dex.project && !projects.some(({ path }) => path === named))
    throw new DexError(
      "not_found",
      named === "" ? "The address does not name a project." : `dex does not know the project ${named}.`,
    )
  return dexInProject(dex, named)
}

/** Throws a DexError if the path is outside the project, or in a private project nested in it. */
export async function requestedFile(request: Pick<PageRequest, "dex" | "query">): Promise<RequestedFile> {
  const { query } = request
  const dex = await requestedProject(request)
  const { project } = dex
  const path = pathWithin(project, query.get("path") ?? "")
  const place = join(project, path)
  await refusePrivate(request.dex, place)
  const rev = query.get("rev") ?? ""
  if (/[\0-\x1f]/.test(rev)) throw new DexError("usage", "That is not the name of a commit.")
  return { dex, project, path, place, rev: rev !== "" ? rev : undefined }
}

/** The path relative to the project, as git writes it. Neither `..` nor an absolute path nor a link can lead outside. */
export function pathWithin(project: string, path: string): string {
  const absolute = resolve(project, path)
  const below = relative(project, absolute)
  const isNamed = path !== "" && !/[\0-\x1f]/.test(path) && !isAbsolute(path)
  if (!isNamed || !isInside(project, absolute) || below === "" || !isInside(realPathOf(project), realPathOf(absolute)))
    throw new DexError("not_found", `${path === "" ? "A file without a name" : path} is not in ${project}.`)
  return below.replaceAll("\\", "/")
}

/** Throws if the file belongs to a private project, which may be nested in another one. */
async function refusePrivate(dex: Dex, place: string): Promise<void> {
  if (!dex.hasHistory()) return
  const hidden = projectsHiddenFrom(await (await dex.store()).projects(), dex.project, dex.machine.platform)
  const real = realPathOf(place)
  const own = hidden.find((project) => isInside(project, place) || isInside(realPathOf(project), real))
  if (own !== undefined)
    throw new DexError("private", `${own} is a private project. Run \`dex view\` inside that folder to see it.`)
}

function isInside(folder: string, path: string): boolean {
  const below = relative(folder, path)
  return below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below)
}

/** The path with links resolved. If the file is gone, the real path of the nearest existing folder, with the rest appended. */
function realPathOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realPathOf(above), relative(above, path))
  }
}
