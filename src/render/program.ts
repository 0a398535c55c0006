import { realpathSync } from "node:fs"
import { delimiter, join, sep } from "node:path"

/**
 * The command that starts dex, if typing `dex` would not work: npm started it from its cache or from a project's packages,
 * and no `dex` on the PATH is this one.
 */
export function programOf(
  env: Record<string, string | undefined>,
  script: string | undefined = process.argv[1],
): string | undefined {
  if (env.npm_command === undefined || script === undefined) return undefined
  const here = realOf(script)
  if (here === undefined || !here.includes(PACKAGE)) return undefined
  const folders = (env.PATH ?? env.Path ?? "").split(delimiter)
  // npm puts its own folders first while it runs.
  const found = folders.filter((folder) => folder !== "" && !/[\\/]node_modules[\\/]\.bin[\\/]?$/.test(folder))
  return found.some((folder) => startsHere(folder, here)) ? undefined : "npx dexctx"
}

const PACKAGE = `${sep}node_modules${sep}dexctx${sep}`

/** On Windows, there is a small script next to the folder of the packages; on other systems, a link. */
function startsHere(folder: string, here: string): boolean {
  if (process.platform !== "win32") return realOf(join(folder, "dex")) === here
  return realOf(join(folder, "dex.cmd")) !== undefined && here.startsWith(`${realOf(folder)}${PACKAGE}`)
}

function realOf(path: string): string | undefined {
  try {
    return realpathSync(path)
  } catch {
    return undefined // nothing is there
  }
}
