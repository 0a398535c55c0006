// Checks whether this commit can be released, and lists every problem. `npm run release:check` before the tag exists,
// `npm run release:check -- --tag v1.2.3` on the tagged commit. Builds dist/; publishes nothing and changes nothing else.
import { execFileSync, spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { problemsOfPackage } from "./package-contents.mjs"
import { gitIn, problemsOfChangelog, problemsOfTag } from "./release-version.mjs"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
const { tag } = parseArgs({ options: { tag: { type: "string" } } }).values
const manifest = JSON.parse(read("package.json"))
const { version } = manifest

/** The checks. Each returns its problems: what is wrong, and what to do. */
const CHECKS = {
  "the working tree is clean": cleanTree,
  "every file has the version of package.json": sameVersion,
  "CHANGELOG.md has a section for this version": () => problemsOfChangelog(read("CHANGELOG.md"), version),
  "the tag is right": () => problemsOfTag(ROOT, version, tag),
  "package.json names the repository": namedRepository,
  "dependencies are pinned": pinnedDependencies,
  "docs/reference.md is current": currentReference,
  "the package has the right files": rightPackage,
}

let failed = 0
for (const [what, problemsOf] of Object.entries(CHECKS)) {
  const problems = problemsOf()
  console.log(`${problems.length === 0 ? "ok     " : "failed "} ${what}`)
  for (const problem of problems) console.log(`        ${problem}`)
  if (problems.length > 0) failed++
}
console.log(
  failed === 0 ? `\ndexctx ${version} can be released.` : `\n${failed} of ${Object.keys(CHECKS).length} failed.`,
)
process.exit(failed === 0 ? 0 : 1)

function cleanTree() {
  const changed = gitIn(ROOT, "status", "--porcelain")
    .split("\n")
    .filter((line) => line !== "")
  return changed.length === 0 ? [] : [`Commit or remove: ${changed.map((line) => line.slice(3)).join(", ")}`]
}

function sameVersion() {
  const problems = []
  if (!/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(version))
    problems.push(`"${version}" in package.json is not a version.`)
  const lock = JSON.parse(read("package-lock.json"))
  if (lock.version !== version || lock.packages[""].version !== version)
    problems.push(`package-lock.json has version ${lock.version}. Run: npm install --package-lock-only`)
  const others = [".claude-plugin", "plugins"].flatMap(filesBelow).filter((file) => {
    const named = [...read(file).matchAll(/dexctx@(\d[\w.-]*)|^\s*"version": "([^"]+)"/gm)]
    return named.some(([, started, declared]) => (started ?? declared) !== version)
  })
  if (others.length > 0) problems.push(`Another version is in ${others.join(", ")}. Run: npm run plugins`)
  return problems
}

/** npm refuses a package with provenance whose repository is not the one that it was built in. */
function namedRepository() {
  const url = typeof manifest.repository === "string" ? manifest.repository : manifest.repository?.url
  if (/^(git\+)?https:\/\/github\.com\/[^/]+\/[^/]+$/.test(url ?? "")) return []
  return [`"repository" must have the address on GitHub (https://github.com/…): npm refuses provenance without it.`]
}

function pinnedDependencies() {
  const kinds = ["dependencies", "devDependencies", "optionalDependencies", "peerDependencies"]
  return kinds
    .flatMap((kind) => Object.entries(manifest[kind] ?? {}))
    .filter(([, range]) => !/^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?$/.test(range))
    .map(([name, range]) => `${name} is "${range}". Write one exact version.`)
}

function currentReference() {
  const { status, stderr } = spawnSync(process.execPath, ["scripts/reference.ts", "--check"], {
    cwd: ROOT,
    encoding: "utf8",
  })
  return status === 0 ? [] : [stderr.trim()]
}

function rightPackage() {
  try {
    execFileSync(process.execPath, ["scripts/build.mjs"], { cwd: ROOT, stdio: ["ignore", "ignore", "pipe"] })
    const out = execFileSync("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], {
      cwd: ROOT,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "ignore"],
      shell: process.platform === "win32",
    })
    return problemsOfPackage(JSON.parse(out.slice(out.indexOf("[")))[0])
  } catch (error) {
    return [`It could not be made: ${error.message}`]
  }
}

function filesBelow(folder) {
  return readdirSync(join(ROOT, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length).replaceAll("\\", "/"))
}

function read(file) {
  return readFileSync(join(ROOT, file), "utf8")
}
