// Checks whether this commit can be released, and lists every problem. `npm run release:check` before the tag exists,
// `npm run release:check -- --tag v1.2.3` on the tagged commit. Builds dist/; publishes nothing and changes nothing else. What could
// not be checked is listed too, and is a failure without --partial. --offline fetches nothing; --schemas names a folder with the
// published schemas, and --quick installs nothing.
import { execFileSync, spawnSync } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { parseArgs } from "node:util"
import { problemsOfPackage } from "./package-contents.mjs"
import { filesWithPackageFields, PLACEHOLDER, repositoryOf } from "./package-fields.mjs"
import { checkPublishedSchemas } from "./published-schemas.mjs"
import { tryOut } from "./release/try-out.mjs"
import { gitIn, problemsOfChangelog, problemsOfTag } from "./release-version.mjs"

const ROOT = fileURLToPath(new URL("..", import.meta.url))
const { tag, partial, offline, quick, schemas } = parseArgs({
  options: {
    tag: { type: "string" },
    partial: { type: "boolean" },
    offline: { type: "boolean" },
    quick: { type: "boolean" },
    schemas: { type: "string" },
  },
}).values
const manifest = JSON.parse(read("package.json"))
const { version } = manifest

/** The checks. Each returns its problems (what is wrong, and what to do), and what it could not check. */
const CHECKS = {
  "the working tree is clean": cleanTree,
  "every file has the version of package.json": sameVersion,
  "CHANGELOG.md has a section for this version": () => problemsOfChangelog(read("CHANGELOG.md"), version),
  "the tag is right": () => problemsOfTag(ROOT, version, tag),
  "package.json names the repository": namedRepository,
  "dependencies are pinned": pinnedDependencies,
  "docs/reference.md is current": currentReference,
  "the package has the right files": rightPackage,
  "manifests match their published schemas": () => checkPublishedSchemas(ROOT, { folder: schemas, offline }),
  "what can run here can be installed, run and removed": () =>
    quick || offline ? { problems: [], unchecked: ["no file of the release was installed"] } : tryOut(ROOT),
}

let failed = 0
let incomplete = 0
for (const [what, check] of Object.entries(CHECKS)) {
  const result = await check()
  const { problems, unchecked } = Array.isArray(result) ? { problems: result, unchecked: [] } : result
  const state = problems.length > 0 ? "failed " : unchecked.length > 0 ? "partly " : "ok     "
  console.log(`${state} ${what}`)
  for (const problem of problems) console.log(`        ${problem}`)
  for (const missing of unchecked) console.log(`        not checked: ${missing}`)
  if (problems.length > 0) failed++
  else if (unchecked.length > 0) incomplete++
}
const count = Object.keys(CHECKS).length
if (failed > 0) console.log(`\n${failed} of ${count} failed.`)
else if (incomplete > 0 && !partial)
  console.log(`\n${incomplete} of ${count} could not be checked completely. If that is enough: --partial`)
else console.log(`\ndexctx ${version} can be released${incomplete > 0 ? ", as far as it could be checked" : ""}.`)
process.exit(failed > 0 || (incomplete > 0 && !partial) ? 1 : 0)

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
  if (repositoryOf(manifest)) {
    const files = Object.entries(filesWithPackageFields(ROOT))
    const old = files.flatMap(([file, text]) => (read(file) === text ? [] : file))
    if (old.length > 0) problems.push(`Not current: ${old.join(", ")}. Run: npm run plugins`)
  }
  const others = [".claude-plugin", "plugins"]
    .flatMap(filesBelow)
    .concat("server.json")
    .filter((file) => {
      const named = [...read(file).matchAll(/dexctx@(\d[\w.-]*)|^\s*"version": "([^"]+)"/gm)]
      return named.some(([, started, declared]) => (started ?? declared) !== version)
    })
  if (others.length > 0) problems.push(`Another version is in ${others.join(", ")}. Run: npm run plugins`)
  return problems
}

/** npm refuses a package with provenance whose repository is not the one that it was built in. */
function namedRepository() {
  const found = repositoryOf(manifest)
  if (!found)
    return ['"repository" must be git+https://github.com/<owner>/<name>.git: npm refuses provenance without it.']
  if (found.owner !== PLACEHOLDER) return []
  return [`"repository" still has the placeholder ${PLACEHOLDER}. Write the real owner, then run: npm run plugins`]
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
