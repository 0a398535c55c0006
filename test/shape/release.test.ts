import { execFileSync, spawnSync } from "node:child_process"
import { cpSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { makeRepository, type Repository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

const ROOT = join(import.meta.dirname, "../..")

/** A copy of this repository, as it is on disk, that is ready to be released as the version it has. */
function readyCopy(): Repository & { edit: (file: string, change: (text: string) => string) => void } {
  const folder = join(tempDir(), "copy")
  const listed = ["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", ":!test", ":!eval", ":!e2e"]
  const files = execFileSync("git", listed, { cwd: ROOT, encoding: "utf8" }).split("\0").filter(Boolean)
  for (const file of files) {
    mkdirSync(dirname(join(folder, file)), { recursive: true })
    cpSync(join(ROOT, file), join(folder, file))
  }
  symlinkSync(join(ROOT, "node_modules"), join(folder, "node_modules"), "dir")
  const edit = (file: string, change: (text: string) => string) =>
    writeFileSync(join(folder, file), change(readFileSync(join(folder, file), "utf8")))
  const { version } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as { version: string }
  edit("package.json", withField("repository", { type: "git", url: "git+https://github.com/example/example.git" }))
  edit(
    "CHANGELOG.md",
    () => `# Changelog\n\n## [Unreleased]\n\n## [${version}]\n\n- What is new.\n\n## [0.0.1]\n\n- Old.\n`,
  )
  // A link is no folder to git: the line with a slash does not cover it.
  edit(".gitignore", (text) => `${text}node_modules\n`)
  const repository = makeRepository(folder)
  repository.git("init", "-q")
  repository.git("add", "--all")
  repository.git("commit", "-qm", "release")
  return { ...repository, edit }
}

const withField = (name: string, value: unknown) => (text: string) =>
  `${JSON.stringify({ ...(JSON.parse(text) as object), [name]: value }, undefined, 2)}\n`

/** What the check prints, and the names of the checks that failed. */
function check({ folder }: Repository, ...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, ["scripts/release-check.mjs", ...args], {
    cwd: folder,
    encoding: "utf8",
  })
  const failed = [...stdout.matchAll(/^failed +(.+)$/gm)].map(([, what]) => what)
  return { status, failed, text: stdout + stderr }
}

test("a commit that is ready can be released: before its tag exists, and as the commit that its tag names", () => {
  const copy = readyCopy()
  const { version } = JSON.parse(readFileSync(join(copy.folder, "package.json"), "utf8")) as { version: string }
  const before = check(copy)
  expect(before.text).toContain(`dexctx ${version} can be released.`)
  expect(before).toMatchObject({ status: 0, failed: [] })
  expect(copy.git("status", "--porcelain")).toBe("")

  copy.git("tag", "-a", "-m", "release", `v${version}`)
  expect(check(copy, "--tag", `v${version}`)).toMatchObject({ status: 0, failed: [] })
  copy.edit("CHANGELOG.md", (text) => text.replace("## [Unreleased]\n", "## [Unreleased]\n\n- Not released.\n"))
  copy.git("commit", "-qam", "later")
  const later = check(copy, "--tag", `v${version}`)
  expect(later.failed).toEqual(["CHANGELOG.md has a section for this version", "the tag is right"])
  expect(later.text).toContain("[Unreleased] is not empty (entries: 1)")
})

test("every problem of a commit that is not ready is listed, with what to do", () => {
  const copy = readyCopy()
  copy.git("tag", "v9.9.9")
  const fields = { version: "9.9.9", repository: undefined, files: ["dist", "docs/words.md"] }
  for (const [name, value] of Object.entries(fields)) copy.edit("package.json", withField(name, value))
  copy.edit("package.json", (text) => text.replace('"vitest": "', '"vitest": "^'))
  copy.edit("docs/reference.md", (text) => `${text}Something else.\n`)
  rmSync(join(copy.folder, "LICENSE"))
  const { status, failed, text } = check(copy)
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
    "package-lock.json has version",
    "plugins/gemini-cli/gemini-extension.json",
    "Add the heading ## [9.9.9]",
    "v9.9.9 exists already",
    "npm refuses provenance without it",
    'vitest is "^',
    "Run: npm run reference",
    "LICENSE is missing from the package",
    "docs/words.md does not belong in the package",
  ])
    expect(text).toContain(said)
  expect(text).toContain("8 of 8 failed.")
})
