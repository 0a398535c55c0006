import { execFileSync } from "node:child_process"

/**
 * The changelog's section of a version, without its heading; empty if there is none.
 * @param {string} text
 * @param {string} version
 */
export function changesOf(text, version) {
  const section = text.split(/^## /m).find((part) => part.startsWith(`[${version}]`)) ?? ""
  return section.split("\n").slice(1).join("\n").trim()
}

/**
 * The problems of the changelog of a version that will be released.
 * @param {string} text
 * @param {string} version
 * @returns {string[]}
 */
export function problemsOfChangelog(text, version) {
  const [, ...sections] = text.split(/^## /m)
  const parsed = sections.map((section) => ({
    title: /^\[([^\]]+)\]/.exec(section)?.[1],
    entries: section.split("\n").filter((line) => line.startsWith("- ")).length,
  }))
  const unreleased = parsed.find(({ title }) => title === "Unreleased")
  const newest = parsed.find(({ title }) => title !== "Unreleased")
  if (newest?.title !== version)
    return [`Its newest version is ${newest?.title}, package.json has ${version}. Add the heading ## [${version}].`]
  if (newest.entries === 0) return [`The section of ${version} is empty.`]
  if (unreleased && unreleased.entries > 0)
    return [`[Unreleased] is not empty (entries: ${unreleased.entries}). Move them to the section of the new version.`]
  return []
}

/**
 * Before the release no tag may have the version's name; a given tag must be the commit that is checked out.
 * @param {string} root
 * @param {string} version
 * @param {string | undefined} tag
 * @returns {string[]}
 */
export function problemsOfTag(root, version, tag) {
  const expected = `v${version}`
  const isThere = gitIn(root, "tag", "--list", expected) !== ""
  const tagged = isThere ? gitIn(root, "rev-parse", `${expected}^{commit}`) : undefined
  if (tag === undefined)
    return isThere ? [`${expected} exists already. Choose the next version: npm version --no-git-tag-version`] : []
  if (tag !== expected) return [`The tag is ${tag}, but package.json has ${version}. Tag the right commit.`]
  return tagged === gitIn(root, "rev-parse", "HEAD") ? [] : [`${tag} is not the commit that is checked out.`]
}

/**
 * @param {string} root
 * @param {...string} args
 */
export function gitIn(root, ...args) {
  return execFileSync("git", args, { cwd: root, encoding: "utf8" }).trimEnd()
}
