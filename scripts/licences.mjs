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

/** A line that names a copyright holder or the licence. All other lines are the same in every text of a licence. */
const NOTICE = /^[ \t]*(?:\(?(?:the )?mit license\b|copyright\s*(?:\(c\)|©|\d)).*$/gim

/**
 * The licence texts of the packages that were bundled from these files: each package with its copyright notices, and the text
 * once below all packages that have it.
 * @param {string[]} inputs
 */
export function licencesOf(inputs) {
  const packages = packagesIn(inputs).map((folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"))
    const file = readdirSync(folder).find((entry) => /^licen[cs]e/i.test(entry))
    const text = file ? readFileSync(join(folder, file), "utf8") : ""
    const head = [`${name} ${version} (${license})`, ...(text.match(NOTICE) ?? []).map((notice) => notice.trim())]
    return { head: head.join("\n"), terms: text.replace(NOTICE, "").replace(/\s+/g, " ").trim() }
  })
  return [...Map.groupBy(packages, ({ terms }) => terms)]
    .map(([terms, same]) => `${same.map(({ head }) => head).join("\n\n")}\n\n${terms}\n`)
    .join("\n---\n\n")
}
