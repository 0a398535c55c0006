import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { filesWithPackageFields } from "../../scripts/package-fields.mjs"
import { checkPublishedSchemas } from "../../scripts/published-schemas.mjs"
import { changesOf, problemsOfChangelog, problemsOfTag } from "../../scripts/release-version.mjs"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")

/** A copy of this checkout that is ready to be released with its current version. */
function readyCopy(folder: string) {
  const listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!test", ":!eval", ":!e2e"]
  const files = execFileSync("git", listed, { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean)
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(ROOT, file), join(folder, file))
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir")
  const read = (file: string) => readFileSync(join(folder, file), "utf8")
  const edit = (file: string, change: (text: string) => string) => writeFileSync(join(folder, file), change(read(file)))
  const { version } = JSON.parse(read("package.json")) as { version: string }
  edit("package.json", withField("repository", { type: "git", url: "git+https://github.com/example/example.git" }))
  for (const [file, text] of Object.entries(filesWithPackageFields(folder))) edit(file, () => text)
  edit(
    "CHANGELOG.md",
    () => `# Changelog\n\n## [Unreleased]\n\n## [${version}]\n\n- What is new.\n\n## [0.0.1]\n\n- Old.\n`,
  )
  // If node_modules is a link, git does not treat it as a folder, so a pattern with a slash does not match it.
  edit(".gitignore", (text) => `${text}node_modules\n`)
  const repository = makeRepository(folder)
  repository.git("add", "--all")
  repository.git("commit", "-qm", "release")
  return { ...repository, read, edit }
}

const withField = (name: string, value: unknown) => (text: string) =>
  `${JSON.stringify({ ...(JSON.parse(text) as object), [name]: value }, undefined, 2)}\n`

const copy = readyCopy(sharedTempDir())

/** The output of the check, and the names of the failed checks. */
function check(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/release-check.mjs", "--offline", ...args], {
    cwd: copy.folder,
    encoding: "utf8",
  })
  const failed = [...stdout.matchAll(/^failed +(.+)$/gm)].map(([, what]) => what)
  return { status, failed, text: stdout + stderr }
}

test("a commit that is ready can be released, before its tag exists and once the tag names it", () => {
  const { version } = JSON.parse(copy.read("package.json")) as { version: string }
  const tag = `v${version}`
  expect(problemsOfTag(copy.folder, version, undefined)).toEqual([])
  copy.git("tag", "-a", "-m", "release", tag)
  const ready = check("--partial", "--tag", tag)
  expect(ready.text).toContain(`dexctx ${version} can be released, as far as it could be checked.`)
  expect(ready.text).toContain("not checked: server.json: its schema was not fetched")
  expect(ready).toMatchObject({ status: 0, failed: [] })
  expect(copy.git("status", "--porcelain")).toBe("")
  // The licences of bundled packages are included even if node_modules is a link.
  const licences = "dist/THIRD_PARTY_LICENSES.txt"
  expect(copy.read(licences)).toBe(readFileSync(join(ROOT, licences), "utf8"))

  copy.edit("CHANGELOG.md", (text) => text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Not released.\n"))
  copy.git("commit", "-qam", "later")
  expect(problemsOfTag(copy.folder, version, tag)).toEqual([`${tag} is not the commit that is checked out.`])
  expect(problemsOfChangelog(copy.read("CHANGELOG.md"), version)).toEqual([
    expect.stringContaining("[Unreleased] is not empty (entries: 1)"),
  ])
})

test("every problem of a commit that is not ready is listed, with what to do", () => {
  copy.git("tag", "v9.9.9")
  const repository = { url: "git+https://github.com/OWNER/dex.git" }
  const fields = { version: "9.9.9", repository, files: ["dist", "docs/words.md"] }
  for (const [name, value] of Object.entries(fields)) copy.edit("package.json", withField(name, value))
  copy.edit("package.json", (text) => text.replace('"vitest": "', '"vitest": "^'))
  copy.edit("docs/reference.md", (text) => `${text}Something else.\n`)
  rmSync(join(copy.folder, "LICENSE"))
  const { status, failed, text } = check()
  expect(status).toBe(1)
  expect(failed).toEqual([
    "the working tree is clean",
    "every file has the version of package.json",
    "CHANGELOG.md has a section for this version",
    "the tag is right",
    "package.json names the repository",
    "dependencies are pinned",
    "docs/reference.md is current",
    "the package has the right files",
  ])
  for (const said of [
    "Commit or remove: LICENSE, docs/reference.md, package.json",
    "plugins/gemini-cli/gemini-extension.json",
    "Add the heading ## [9.9.9]",
    "v9.9.9 exists already",
    "Not current: package.json, ",
    "still has the placeholder OWNER",
    'vitest is "^',
    "Run: npm run reference",
    "LICENSE is missing from the package",
    "docs/words.md does not belong in the package",
  ])
    expect(text).toContain(said)
  expect(text).toContain("8 of 10 failed.")
})

test("a release's notes are the version's section of the changelog", () => {
  const text =
    "# Changelog\n\n## [Unreleased]\n\n- Later.\n\n## [1.2.3] - 2026-11-20\n\n### Added\n\n- New.\n\n## [1.2.2]\n\n- Old.\n"
  expect(changesOf(text, "1.2.3")).toBe("### Added\n\n- New.")
  expect(changesOf(text, "9.9.9")).toBe("")
})

test("a manifest that breaks its published schema is a problem, and a schema that cannot be had is listed", async () => {
  const folder = tempDir()
  const write = (schema: object) => writeFileSync(join(folder, "server.schema.json"), JSON.stringify(schema))
  const properties = { name: { type: "string" } }
  write({ $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties })
  const fits = await checkPublishedSchemas(ROOT, { folder })
  expect(fits.problems).toEqual([])
  expect(fits.unchecked.map((missing) => missing.split(":")[0])).not.toContain("server.json")
  expect(fits.unchecked.length).toBe(3)
  write({ type: "object", properties: { name: { type: "number" } } })
  const { problems } = await checkPublishedSchemas(ROOT, { folder })
  expect(problems).toEqual([expect.stringMatching(/^server\.json: .*name.*number/)])
})
