import { realpathSync } from "node:fs"
import { dirname, isAbsolute, join, relative, resolve, sep } from "node:path"
import { DexError } from "../../core/error.ts"
import { hiddenFrom } from "../../search/scope.ts"
import type { Dex } from "../../tools/context.ts"
import { inProject, type PageRequest } from "../page.ts"

/** A file that an address names: `dex` asks inside its project. */
export type FileAsked = {
  dex: Dex
  project: string
  /** Relative to the project, with forward slashes. */
  path: string
  /** Where on the disk that is. */
  place: string
  rev?: string
}

/** Asks inside the project that an address names. Only in one that dex knows: a page reads no other folder. */
export async function projectAsked({ dex, query }: Pick<PageRequest, "dex" | "query">): Promise<Dex> {
  const named = query.get("project") ?? ""
  const known = dex.hasHistory() ? await (await dex.store()).projects() : []
  if (named !== dex.project && !known.some(({ path }) => path === named))
    throw new DexError("not_found", `dex knows no project ${named === "" ? "without a name" : named}.`)
  return inProject(dex, named)
}

/** Throws a DexError for what is not inside the project, or inside a private one below it. */
export async function fileAsked(request: Pick<PageRequest, "dex" | "query">): Promise<FileAsked> {
  const { query } = request
  const dex = await projectAsked(request)
  const { project } = dex
  const path = pathWithin(project, query.get("path") ?? "")
  const place = join(project, path)
  await notPrivate(request.dex, place)
  const rev = query.get("rev") ?? ""
  if (/[\0-\x1f]/.test(rev)) throw new DexError("usage", "That is no name of a commit.")
  return { dex, project, path, place, rev: rev !== "" ? rev : undefined }
}

/** A path of the project's own, as git writes it. Neither `..`, nor a path from elsewhere, nor a link leads out. */
export function pathWithin(project: string, path: string): string {
  const whole = resolve(project, path)
  const below = relative(project, whole)
  const isNamed = path !== "" && !/[\0-\x1f]/.test(path) && !isAbsolute(path)
  if (!isNamed || !isInside(project, whole) || below === "" || !isInside(realOf(project), realOf(whole)))
    throw new DexError("not_found", `${path === "" ? "A file without a name" : path} is not in ${project}.`)
  return below.replaceAll("\\", "/")
}

/** A private project may lie below another one. */
async function notPrivate(dex: Dex, place: string): Promise<void> {
  if (!dex.hasHistory()) return
  const hidden = hiddenFrom(await (await dex.store()).projects(), dex.project, dex.machine.platform)
  const real = realOf(place)
  const own = hidden.find((project) => isInside(project, place) || isInside(realOf(project), real))
  if (own !== undefined)
    throw new DexError("private", `${own} is a private project. Run \`dex view\` inside that folder to see it.`)
}

function isInside(folder: string, path: string): boolean {
  const below = relative(folder, path)
  return below !== ".." && !below.startsWith(`..${sep}`) && !isAbsolute(below)
}

/** Where a path leads; of what is gone, where what is left of it leads. */
function realOf(path: string): string {
  try {
    return realpathSync(path)
  } catch {
    const above = dirname(path)
    return above === path ? path : join(realOf(above), relative(above, path))
  }
}
