import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/**
 * The folders of the packages that these files belong to, wherever they are: node_modules may be a link, and packages may contain
 * others.
 * @param {string[]} inputs
 */
export function packagesIn(inputs) {
  const folders = inputs.flatMap((path) => /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//.exec(path)?.[1] ?? [])
  return [...new Set(folders)].sort()
}

/**
 * The licence texts of the packages that were bundled from these files.
 * @param {string[]} inputs
 */
export function licencesOf(inputs) {
  return packagesIn(inputs)
    .map((folder) => {
      const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
      const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
      return `${name} ${version} (${license})\n\n${file ? readFileSync(join(folder, file), "utf8").trim() : ""}\n`
    })
    .join("\n---\n\n")
}
