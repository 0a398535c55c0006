import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { projectSections } from "../../src/answers/project-documents.ts"
import { tempDir } from "../support/temp.ts"

const all = () => true

test("a project's own documents are read section by section, with their lines", async () => {
  const root = tempDir()
  mkdirSync(join(root, "docs", "deep"), { recursive: true })
  writeFileSync(join(root, "README.md"), "# dex\n\nIt remembers.\n\n```sh\n# not a heading\n```\n\n## Use\n\nRun it.\n")
  writeFileSync(join(root, "notes.md"), "Not one of them.\n")
  writeFileSync(join(root, "docs/deep/a.md"), "Set `token=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB` first.\n")
  const { sections, isComplete } = await projectSections(root, all)
  expect(isComplete).toBe(true)
  expect(sections.map(({ path, line, headings }) => ({ path, line, headings }))).toEqual([
    { path: "README.md", line: 1, headings: [] },
    { path: "README.md", line: 1, headings: ["dex"] },
    { path: "README.md", line: 9, headings: ["dex", "Use"] },
    { path: "docs/deep/a.md", line: 1, headings: [] },
  ])
  expect(sections[1]!.text).toContain("# not a heading")
  expect(sections[3]!.text).not.toContain("ghp_")
})

test("its security policy and what .github says are read too; its list of changes is not", async () => {
  const root = tempDir()
  mkdirSync(join(root, ".github"))
  for (const path of ["SECURITY.md", "CHANGELOG.md", ".github/copilot-instructions.md"])
    writeFileSync(join(root, path), "Some text.\n")
  const { sections } = await projectSections(root, all)
  expect(sections.map(({ path }) => path)).toEqual([".github/copilot-instructions.md", "SECURITY.md"])
})

test("links out of a project are not followed", async () => {
  const [root, other] = [tempDir(), tempDir()]
  writeFileSync(join(other, "secret.md"), "Not yours.\n")
  symlinkSync(other, join(root, "docs"))
  symlinkSync(join(other, "secret.md"), join(root, "README.md"))
  expect(await projectSections(root, all)).toEqual({ sections: [], isComplete: true })
})

test("a project with more documents than are read says so", async () => {
  const root = tempDir()
  writeFileSync(join(root, "README.md"), "Small.\n")
  mkdirSync(join(root, "docs"))
  for (let i = 0; i < 3; i++) writeFileSync(join(root, `docs/${i}.md`), "word ".repeat(180_000))
  const { sections, isComplete } = await projectSections(root, all)
  expect(isComplete).toBe(false)
  expect(new Set(sections.map(({ path }) => path))).toEqual(new Set(["README.md", "docs/0.md", "docs/1.md"]))
})
