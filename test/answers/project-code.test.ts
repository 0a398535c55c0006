import { mkdirSync, renameSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { codePieces } from "../../src/answers/project-code.ts"
import { parseQuery } from "../../src/search/query.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

function repository(files: Record<string, string>): string {
  const { folder, git } = makeRepository(join(tempDir(), "repo"))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
  git("add", "-A")
  return folder
}

const ask = (folder: string, text: string) => {
  const { words } = parseQuery(text)
  return codePieces(folder, { text, words, weights: words.map(() => 3) })
}

test("a constant is found with the comment above it, and a task with its heading", async () => {
  const folder = repository({
    "src/upload.go":
      "package upload\n\nfunc a() {}\n\n// retryLimit is how often an upload is tried again\n// before it is given up.\nconst retryLimit = 7\n\nfunc b() {}\n",
    "mise.toml":
      '[tools]\ngo = "1.25"\n\n[tasks."build:all"]\ndescription = "Build for all platforms"\nrun = "make dist"\n',
  })
  const [limit] = (await ask(folder, "how often is an upload tried again, the retry limit")).pieces
  expect(limit).toMatchObject({
    path: "src/upload.go",
    line: 5,
    text: "// retryLimit is how often an upload is tried again\n// before it is given up.\nconst retryLimit = 7",
  })
  const [task] = (await ask(folder, "how do I build for all platforms")).pieces
  expect(task).toMatchObject({ path: "mise.toml", line: 4, headings: ['tasks."build:all"'] })
  expect(task!.text).toContain('run = "make dist"')
})

test("code that states nothing, tests, documents and generated files are left out, and secrets redacted", async () => {
  const text = "// The walrus timeout in seconds\nconst walrusTimeout = 30\n"
  const folder = repository({
    "a.ts": `if (walrus.timeout.seconds) go(walrus)\n`,
    "b.test.ts": text,
    "docs/c.md": text,
    "package-lock.json": text,
    ".env.example": "WALRUS_TIMEOUT_SECONDS=30\nTOKEN=ghp_0123456789abcdefghijklmnopqrstuvwxyzAB\n",
  })
  const { pieces } = await ask(folder, "walrus timeout seconds")
  expect(pieces.map(({ path }) => path)).toEqual([".env.example"])
  expect(pieces[0]!.text).not.toContain("ghp_")
  expect((await ask(folder, "walrus timeout seconds in the test")).pieces.map(({ path }) => path)).toContain(
    "b.test.ts",
  )
  expect((await ask(folder, "walrus colour of the moon")).pieces).toEqual([])
})

test("nothing is read outside of the project, and a folder without a repository has no code", async () => {
  const other = tempDir()
  writeFileSync(join(other, "secret.toml"), "walrus_timeout = 30\n")
  const folder = repository({ "config/secret.toml": "walrus_timeout = 1\n", "a/plain.toml": "walrus_timeout = 2\n" })
  renameSync(join(folder, "config"), join(tempDir(), "config"))
  symlinkSync(other, join(folder, "config"))
  expect((await ask(folder, "walrus timeout")).pieces.map(({ path }) => path)).toEqual(["a/plain.toml"])
  expect(await ask(other, "walrus timeout")).toEqual({ pieces: [], isComplete: true })
})

test("words of a question are never options of git", async () => {
  const folder = repository({ "a.toml": "open_files = 3\n" })
  expect((await ask(folder, "--open-files-in-pager=touch\u00a0x -O open files")).isComplete).toBe(true)
})
