import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { join } from "node:path"

/** In the repository's address until somebody publishes it. `npm run release:check` refuses it. */
export const PLACEHOLDER = "OWNER"
/** Our other packages: their folders, and whether they are published. */
const PACKAGES = { "editors/vscode": true, hub: false, "packages/embed-local": true, "packages/more-agents": false }
const LOCAL_FILES = "src/embed/local-files.ts"

/**
 * The repository that package.json names, which is the only place for its address.
 * @param {{ repository?: { url?: string } }} manifest
 * @returns {{ owner: string, name: string, address: string } | undefined}
 */
export function repositoryOf({ repository }) {
  const [, owner, name] = /^git\+https:\/\/github\.com\/([\w-]+)\/([\w.-]+)\.git$/.exec(repository?.url ?? "") ?? []
  return owner && name ? { owner, name, address: `https://github.com/${owner}/${name}` } : undefined
}

/**
 * The release, as package.json describes it.
 * @param {string} root
 */
export function releaseOf(root) {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const { version, mcpName, engines } = manifest
  return { version, mcpName, node: engines.node, address: repositoryOf(manifest)?.address ?? "" }
}

/**
 * The files that repeat the version and the address of package.json, with the text that they should have.
 * @param {string} root
 * @returns {Record<string, string>}
 */
export function filesWithPackageFields(root) {
  const read = (/** @type {string} */ file) => readFileSync(join(root, file), "utf8")
  const manifest = JSON.parse(read("package.json"))
  const { version, repository } = manifest
  const found = repositoryOf(manifest)
  if (!found) throw new Error('"repository" in package.json must be git+https://github.com/<owner>/<name>.git')
  const { owner, name, address } = found
  const links = { homepage: `${address}#readme`, bugs: `${address}/issues` }
  /** @type {Record<string, string>} */
  const files = { "package.json": asJson({ ...manifest, ...links, mcpName: `io.github.${owner}/${name}` }) }
  const lock = JSON.parse(read("package-lock.json"))
  lock.version = lock.packages[""].version = version
  for (const [folder, isPublished] of Object.entries(PACKAGES)) {
    const file = `${folder}/package.json`
    const published = isPublished ? { repository: { ...repository, directory: folder }, ...links } : {}
    files[file] = asJson({ ...JSON.parse(read(file)), version, ...published })
    if (lock.packages[folder]) lock.packages[folder].version = version
  }
  files["package-lock.json"] = asJson(lock)
  // dex runs the local model only if all its files are those that were published, package.json among them.
  const sum = createHash("sha512").update(files["packages/embed-local/package.json"]).digest("base64")
  files[LOCAL_FILES] = read(LOCAL_FILES)
    .replace(/(LOCAL_VERSION = ")[^"]+/, `$1${version}`)
    .replace(/("package\.json":\s+")[^"]+/, `$1${sum}`)
  return files
}

/** @param {object} data */
function asJson(data) {
  return `${JSON.stringify(data, undefined, 2)}\n`
}
