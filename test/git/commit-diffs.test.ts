import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { readCommitDiffs } from "../../src/git/commit-diffs.ts"
import { makeRepository, type Repository } from "../support/repository.ts"
import { tempDir, treeHash } from "../support/temp.ts"

function write(repository: Repository, files: Record<string, string>, message: string): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(repository.folder, name, ".."), { recursive: true })
    writeFileSync(join(repository.folder, name), text)
  }
  repository.git("add", "-A")
  repository.git("commit", "-q", "-m", message)
  return repository.git("rev-parse", "HEAD")
}

const LINES = Array.from({ length: 12 }, (_, i) => `line ${i}\n`).join("")

describe("the changes of commits", () => {
  test("include added lines with their numbers, removed lines, renames and the complete message; the repository is unchanged", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const first = write(repository, { "src/a.ts": LINES }, "first: the start\n\nWhy.\n\nCo-Authored-By: A <a@b.c>")
    repository.git("mv", "src/a.ts", "src/b.ts")
    const second = write(repository, { "src/b.ts": LINES.replace("line 3", "line three") }, "second")
    const before = treeHash(repository.folder)
    const { commits, stopped } = await readCommitDiffs(repository.folder, [second, first])
    expect(treeHash(repository.folder)).toEqual(before)
    expect(stopped).toBeUndefined()
    expect(commits.map(({ hash, subject }) => [hash, subject])).toEqual([
      [second, "second"],
      [first, "first: the start"],
    ])
    expect(commits[0]!.files).toEqual([
      { path: "src/b.ts", from: "src/a.ts", added: [{ line: 4, text: "line three" }], removed: ["line 3"] },
    ])
    expect(commits[1]!.body).toBe("Why.\n\nCo-Authored-By: A <a@b.c>")
    expect(commits[1]!.files[0]!.added).toHaveLength(12)
  })

  test("lines that look like a patch's own are lines, and odd names are read correctly", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const odd = "-- a/x\n++ b/y\n@@ -1 +1 @@\ndiff --git a/q b/q\n"
    const first = write(repository, { "a b\tü.txt": odd, "plain.txt": "x\n" }, "odd")
    const second = write(repository, { "a b\tü.txt": "" }, "empty")
    const { commits } = await readCommitDiffs(repository.folder, [first, second])
    expect(commits[0]!.files.map(({ path }) => path).sort()).toEqual(["a b\tü.txt", "plain.txt"])
    expect(commits[0]!.files.find(({ path }) => path !== "plain.txt")!.added.map(({ text }) => text)).toEqual(
      odd.trimEnd().split("\n"),
    )
    expect(commits[1]!.files[0]!.removed).toEqual(odd.trimEnd().split("\n"))
  })

  test("a merge has its changes to its first parent, and a limit reports that it stopped", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const first = write(repository, { "a.ts": "a\n" }, "first")
    repository.git("checkout", "-q", "-b", "side")
    write(repository, { "b.ts": "b of the side\n" }, "side")
    repository.git("checkout", "-q", "main")
    write(repository, { "c.ts": "c\n" }, "main goes on")
    repository.git("merge", "-q", "--no-ff", "-m", "a merge", "side")
    const { commits } = await readCommitDiffs(repository.folder, ["HEAD"])
    expect(commits[0]!.files.map(({ path }) => path)).toEqual(["b.ts"])
    const cut = await readCommitDiffs(repository.folder, [first, "HEAD"], { limits: { bytes: 100 } })
    expect(cut).toEqual({ commits: [], stopped: "size" })
  })
})
