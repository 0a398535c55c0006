import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { repositoryOf } from "../package-fields.mjs"
import { tarGz } from "./archive.mjs"

/** Pages of the package that link to other pages of the repository. */
const PAGES = ["README.md", "CHANGELOG.md"]
const PICTURE = /\.(?:svg|png)$/

/**
 * The package's page outside the repository: every link and picture has its full address, at the version's tag.
 * @param {string} text
 * @param {{ owner: string, name: string, address: string }} repository
 * @param {string} tag
 */
export function withFullAddresses(text, { owner, name, address }, tag) {
  return text.replace(/(!?\[[^\]]*\]\()([^)\s]+)\)/g, (link, start, target) => {
    if (/^(?:[a-z]+:|#)/.test(target)) return link
    const isShown = start.startsWith("!")
    const path = target.replace(/^\.\//, "")
    return PICTURE.test(target) && isShown
      ? `${start}https://raw.githubusercontent.com/${owner}/${name}/${tag}/${path})`
      : `${start}${address}/blob/${tag}/${path})`
  })
}

/**
 * The files of the npm package, as package.json names them. It needs dist/.
 * @param {string} root
 * @returns {import("./archive.mjs").ArchiveFile[]}
 */
export function packageFiles(root) {
  const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  const repository = repositoryOf(manifest)
  if (!repository) throw new Error('"repository" in package.json must name the repository.')
  const left = manifest.files.filter((/** @type {string} */ name) => name.startsWith("!"))
  const programs = Object.values(manifest.bin)
  return ["package.json", ...manifest.files]
    .flatMap((name) => (name.startsWith("!") ? [] : filesBelow(root, name)))
    .filter((path) => !left.includes(`!${path}`))
    .map((path) => {
      const bytes = readFileSync(join(root, path))
      if (!PAGES.includes(path)) return { path, bytes, isProgram: programs.includes(path) }
      return { path, bytes: Buffer.from(withFullAddresses(bytes.toString(), repository, `v${manifest.version}`)) }
    })
}

/**
 * The package for npm. The same files always make the same package.
 * @param {string} root
 */
export function npmPackage(root) {
  return tarGz(packageFiles(root).map((file) => ({ ...file, path: `package/${file.path}` })))
}

/**
 * A file, or all files below a folder, with slashes.
 * @param {string} root
 * @param {string} name
 * @returns {string[]}
 */
export function filesBelow(root, name) {
  const entries = readdirSync(root, { withFileTypes: true })
  const parent = name.split("/").slice(0, -1).join("/")
  if (parent !== "")
    return filesBelow(join(root, parent), name.slice(parent.length + 1)).map((path) => `${parent}/${path}`)
  if (entries.find((entry) => entry.name === name)?.isDirectory() !== true) return [name]
  return readdirSync(join(root, name), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(join(root, "/").length).replaceAll("\\", "/"))
    .sort()
}
