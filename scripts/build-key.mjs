import { createHash } from "node:crypto"
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"

/** The file in which a complete build stores the key of its sources. It is not part of the package. */
export const KEY_FILE = "dist/.built-from"
/** Everything that the build reads. The lockfile represents the packages that it bundles. */
export const FOLDERS = ["packages/more-agents/src", "scripts", "src"]
const FILES = ["package.json", "package-lock.json", "tsconfig.json"]

/**
 * Changes with every file that the build reads.
 * @param {string} root
 */
export function keyOfSources(root) {
  const hash = createHash("sha256")
  for (const file of [...FILES, ...FOLDERS.flatMap((folder) => filesIn(root, folder))]) {
    const bytes = readFileSync(join(root, file))
    hash.update(`${file} ${bytes.length}\n`).update(bytes)
  }
  return hash.digest("hex")
}

/**
 * The key of the sources from which the program in a folder was built; undefined if the build was not completed.
 * @param {string} root
 */
export function builtFrom(root) {
  const file = join(root, KEY_FILE)
  return existsSync(file) ? readFileSync(file, "utf8") : undefined
}

/**
 * Whether the key covers a file, as esbuild names it.
 * @param {string} file
 */
export function isInKey(file) {
  const isOfPlugin = /^[\w-]+:/.test(file)
  const isOfPackage = /(?:^|\/)node_modules\//.test(file)
  return isOfPlugin || isOfPackage || FOLDERS.some((folder) => file.startsWith(`${folder}/`))
}

function filesIn(root, folder) {
  const paths = readdirSync(join(root, folder), { recursive: true }).map((name) => join(folder, String(name)))
  return paths.filter((path) => statSync(join(root, path)).isFile()).sort()
}
