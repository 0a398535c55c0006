import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { blameLines } from "../../src/git/blame-lines.ts"
import { countTouchedFiles, readCommitDiffs, readCommitHeads } from "../../src/git/commit-diffs.ts"
import { parseCommitMarks } from "../../src/git/commit-marks.ts"
import { readCommits } from "../../src/git/commits.ts"
import { listGitFiles } from "../../src/git/list-files.ts"
import { ignoredFiles, skippedFolders } from "../../src/watch/project.ts"
import { commitStream, makeRepository, type Repository } from "../support/repository.ts"
import { tempDir, treeHash } from "../support/temp.ts"

const now = Date.now()

function write(repository: Repository, files: Record<string, string>, message: string): string {
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(join(repository.folder, name, ".."), { recursive: true })
    writeFileSync(join(repository.folder, name), text)
  }
  repository.git("add", "-A")
  repository.git("commit", "-q", "--allow-empty", "-m", message)
  return repository.git("rev-parse", "HEAD")
}

const LINES = Array.from({ length: 20 }, (_, i) => `line ${i}\n`).join("")

describe("a project's commits", () => {
  test("are listed newest first, with their files and renames, without merges; nothing in the folder changes", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const first = write(repository, { "a.ts": LINES, "b.ts": "b" }, "first: the start\n\nWhy it was begun.\n\nRefs: 1")
    repository.git("mv", "a.ts", "c.ts")
    const second = write(repository, { "b.ts": "b2" }, "second")
    repository.git("checkout", "-q", "-b", "side", first)
    const third = write(repository, { "d.ts": "d" }, "third")
    repository.git("checkout", "-q", "main")
    repository.git("merge", "-q", "--no-ff", "-m", "a merge", "side")
    repository.git("rm", "-q", "b.ts")
    const last = write(repository, {}, "without b")
    const empty = write(repository, {}, "nothing")
    const before = treeHash(repository.folder)
    const read = await readCommits(repository.folder, { now })
    expect(treeHash(repository.folder)).toEqual(before)
    expect(read).toMatchObject({ head: empty, replaces: true, left_out: [] })
    const byHash = Object.fromEntries(read.commits.map((commit) => [commit.hash, commit]))
    expect(read.commits.slice(0, 2).map(({ hash }) => hash)).toEqual([empty, last])
    expect(new Set(Object.keys(byHash))).toEqual(new Set([first, second, third, last, empty]))
    expect(byHash[first]).toMatchObject({
      subject: "first: the start",
      body: "Why it was begun.\n\nRefs: 1",
      files: [
        { status: "added", path: "a.ts" },
        { status: "added", path: "b.ts" },
      ],
      file_count: 2,
    })
    expect(byHash[second]!.files).toEqual([
      { status: "modified", path: "b.ts" },
      { status: "renamed", path: "c.ts", from: "a.ts" },
    ])
    expect(byHash[last]!.files).toEqual([{ status: "deleted", path: "b.ts" }])
    expect(byHash[empty]!.files).toEqual([])
    expect(Math.abs(byHash[first]!.at - now)).toBeLessThan(600_000)
  })

  test("names and messages of any bytes are separated from git's own output", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const odd = ['new\nline "q"', "A", "M", "R100", "tab\there", " lead", "ünï", ":(glob)x", "-rf", "f".repeat(40)]
    const raw = Buffer.concat([
      Buffer.from(
        commitStream(
          "odd",
          now,
          odd.map((name) => ({ name, text: name })),
          true,
        ),
      ),
    ])
    const invalid = Buffer.from('M 100644 inline "\\377\\376x"\ndata 1\nx\n', "latin1")
    const hash = "0123456789".repeat(4)
    const second = commitStream(`A\n\nM\n${hash}\nR100`, now + 1000, [{ name: "A", text: "again" }])
    repository.import(Buffer.concat([raw.subarray(0, raw.length - 1), invalid, Buffer.from(`\n${second}`)]))
    const { commits } = await readCommits(repository.folder, { now })
    expect(commits.map(({ subject, files }) => [subject, files.length])).toEqual([
      ["A", 1],
      ["odd", odd.length + 1],
    ])
    expect(commits[0]!.body).toBe(`M\n${hash}\nR100`)
    const names = commits[1]!.files.map(({ path }) => path)
    expect(new Set(names)).toEqual(new Set([...odd, "\\xff\\xfex"]))
  })

  test("only new commits are read, and a rewritten history is noticed", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const first = write(repository, { a: "1" }, "one")
    const second = write(repository, { a: "2" }, "two")
    const more = await readCommits(repository.folder, { now, known: first })
    expect(more).toMatchObject({ head: second, replaces: false, left_out: [] })
    expect(more.commits.map(({ hash }) => hash)).toEqual([second])
    expect(await readCommits(repository.folder, { now, known: second })).toMatchObject({ head: second, commits: [] })
    repository.git("commit", "-q", "--amend", "-m", "two, differently")
    const anew = await readCommits(repository.folder, { now, known: second })
    expect(anew.replaces).toBe(true)
    expect(anew.commits.map(({ subject }) => subject)).toEqual(["two, differently", "one"])
    const gone = await readCommits(repository.folder, { now, known: "ab".repeat(20) })
    expect(gone).toMatchObject({ replaces: true })
    expect(gone.commits).toHaveLength(2)
  })

  test("commits that are left out are reported: too many, too old, too large, and a shallow copy's oldest", async () => {
    const repository = makeRepository(join(tempDir(), "repo"))
    const start = now - 30 * 86_400_000
    const stream = Array.from({ length: 30 }, (_, i) =>
      commitStream(`number ${i}`, start + i * 86_400_000, [{ name: `f${i}`, text: "x" }], i === 0),
    )
    repository.import(stream.join(""))
    const few = await readCommits(repository.folder, { now, limits: { commits: 10 } })
    expect(few.commits.map(({ subject }) => subject)).toEqual(Array.from({ length: 10 }, (_, i) => `number ${29 - i}`))
    expect(few.left_out).toEqual(["Only the newest 10 commits are known."])
    const young = await readCommits(repository.folder, { now, limits: { days: 7 } })
    expect(young.commits.length).toBeGreaterThan(4)
    expect(young.commits.length).toBeLessThan(9)
    expect(young.left_out.join()).toMatch(/Commits older than a year are not read/)
    const small = await readCommits(repository.folder, { now, limits: { bytes: 1_000 } })
    expect(small.commits.length).toBeLessThan(30)
    expect(small.left_out.join()).toMatch(/stopped reading commits after 0 MB, so it knows only the newest \d+/)
    // A gap makes the stored commits useless.
    const known = repository.git("rev-parse", "HEAD~20")
    const cut = await readCommits(repository.folder, { now, known, limits: { commits: 5 } })
    expect(cut).toMatchObject({ replaces: true })
    const copy = join(tempDir(), "copy")
    execFileSync("git", ["clone", "-q", "--depth=3", `file://${repository.folder}`, copy], { stdio: "pipe" })
    const shallow = await readCommits(copy, { now })
    expect(shallow.commits.map(({ file_count }) => file_count)).toEqual([1, 1, 0])
  })

  test("are none outside the root of a repository and in an empty one, and a damaged repository is reported", async () => {
    const outer = makeRepository(tempDir())
    write(outer, { "inner/x": "1" }, "outer")
    const nothing = { commits: [], replaces: true, left_out: [] }
    expect(await readCommits(join(outer.folder, "inner"), { now })).toEqual(nothing)
    expect(await readCommits(makeRepository(join(tempDir(), "empty")).folder, { now })).toEqual(nothing)
    const odd = makeRepository(join(tempDir(), "a:b"))
    write(odd, { "inner/x": "1" }, "outer")
    mkdirSync(join(odd.folder, "inner", ".git"))
    expect(await readCommits(odd.folder, { now })).toMatchObject({ commits: [{ subject: "outer" }] })
    expect(await readCommits(join(odd.folder, "inner"), { now })).toEqual(nothing)
    const broken = makeRepository(join(tempDir(), "broken"))
    writeFileSync(join(broken.folder, ".git", "config"), "[core\n")
    await expect(readCommits(broken.folder, { now })).rejects.toThrow(/could not be read: .*Try `git log` there/)
  })
})

describe("a malicious repository", () => {
  /** Every setting of a repository that names a program which some way of reading would start. */
  const SETTINGS = (bait: string) => ({
    "core.fsmonitor": bait,
    "core.pager": bait,
    "pager.log": bait,
    "core.editor": bait,
    "core.sshCommand": bait,
    "core.askPass": bait,
    "core.gitProxy": bait,
    "core.alternateRefsCommand": bait,
    "diff.external": bait,
    "diff.bait.command": bait,
    "diff.bait.textconv": bait,
    "filter.bait.clean": bait,
    "filter.a=b.c.clean": bait,
    "filter.a=b.c.required": "true",
    "filter.bait.smudge": bait,
    "filter.bait.process": bait,
    "gpg.program": bait,
    "gpg.ssh.program": bait,
    "log.showSignature": "true",
    "credential.helper": `!${bait}`,
    "alias.log": `!${bait}`,
    "alias.rev-parse": `!${bait}`,
    "remote.origin.uploadpack": bait,
    "remote.origin.promisor": "true",
    "extensions.partialClone": "origin",
    "protocol.ext.allow": "always",
    "protocol.file.allow": "always",
  })

  function baited(remote: (bait: string) => string): { repository: Repository; bait: string; sprung: string } {
    const dir = tempDir()
    const repository = makeRepository(join(dir, "repo"))
    const sprung = join(dir, "sprung")
    const bait = join(dir, "bait")
    writeFileSync(bait, `#!/bin/sh\necho "$0 $*" >> ${sprung}\n`)
    chmodSync(bait, 0o755)
    write(
      repository,
      { "a.bait": LINES, ".gitattributes": "* diff=bait filter=bait\nc.bait filter=a=b.c\n", "c.bait": LINES },
      "one",
    )
    repository.git("mv", "a.bait", "b.bait")
    write(repository, { "b.bait": `${LINES}more\n` }, "two")
    // A signed commit, so that there is something to verify.
    const tree = repository.git("rev-parse", "HEAD^{tree}")
    const signed = `tree ${tree}\nparent ${repository.git("rev-parse", "HEAD")}\nauthor t <t@e> ${Math.floor(now / 1000)} +0000\ncommitter t <t@e> ${Math.floor(now / 1000)} +0000\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\nsigned\n`
    writeFileSync(join(dir, "signed"), signed)
    repository.git("update-ref", "HEAD", repository.git("hash-object", "-t", "commit", "-w", join(dir, "signed")))
    for (const hook of ["post-index-change", "pre-commit", "reference-transaction", "fsmonitor-watchman"]) {
      writeFileSync(join(repository.folder, ".git", "hooks", hook), `#!/bin/sh\n${bait}\n`)
      chmodSync(join(repository.folder, ".git", "hooks", hook), 0o755)
    }
    repository.git("config", "core.repositoryformatversion", "1")
    for (const [key, value] of Object.entries(SETTINGS(bait))) repository.git("config", key, value)
    repository.git("config", "remote.origin.url", remote(bait))
    return { repository, bait, sprung }
  }

  test("cannot run anything when its commits are read", async () => {
    const { repository, sprung } = baited((bait) => `ext::${bait}`)
    const read = await readCommits(repository.folder, { now })
    expect(read.commits.map(({ subject }) => subject)).toEqual(["signed", "two", "one"])
    expect(read.commits[1]!.files).toContainEqual({ status: "renamed", path: "b.bait", from: "a.bait" })
    expect(existsSync(sprung)).toBe(false)
    // The bait works: plain git runs it, however it ends then.
    const plain = spawnSync("git", ["-C", repository.folder, "log", "-p", "--ext-diff"], { encoding: "utf8" })
    expect(existsSync(sprung), `git ended with ${plain.status ?? plain.signal}: ${plain.stderr}`).toBe(true)
  })

  test("cannot run anything when the changes of its commits or the lines of a file are read", async () => {
    const { repository, sprung } = baited((bait) => `ext::${bait}`)
    const [two, one] = ["HEAD~1", "HEAD~2"].map((name) => repository.git("rev-parse", name))
    const { commits } = await readCommitDiffs(repository.folder, [two!, one!])
    expect(commits.map(({ subject, files }) => [subject, files.length])).toEqual([
      ["two", 1],
      ["one", 3],
    ])
    expect(await readCommitHeads(repository.folder, [two!, one!])).toHaveLength(2)
    expect((await countTouchedFiles(repository.folder, [one!])).get(one!)).toBe(3)
    await blameLines(repository.folder, "b.bait", { rev: two! }).catch((e) => console.log(String(e)))
    expect(existsSync(sprung)).toBe(false)
    for (const words of [
      ["log", "-p", "--ext-diff"],
      ["blame", "b.bait"],
    ]) {
      rmSync(sprung, { force: true })
      const plain = spawnSync("git", ["-C", repository.folder, ...words], { encoding: "utf8" })
      expect(existsSync(sprung), `git ${words[0]} ended with ${plain.status}: ${plain.stderr}`).toBe(true)
    }
  })

  test("cannot run anything when its files are listed or git is asked which of them it ignores", async () => {
    const { repository, sprung } = baited((bait) => `ext::${bait}`)
    expect(await listGitFiles(repository.folder)).toEqual([".gitattributes", "b.bait", "c.bait"])
    await skippedFolders(repository.folder)
    expect(await ignoredFiles(repository.folder, ["b.bait"])).toEqual(new Set())
    expect(existsSync(sprung)).toBe(false)
    execFileSync("git", ["-C", repository.folder, "ls-files", "--others"], { stdio: "pipe" })
    expect(existsSync(sprung), "the bait works").toBe(true)
  })

  test("cannot make git fetch a missing object with a program that the repository names", async () => {
    for (const remote of [
      (bait: string) => `ext::${bait} %S`,
      () => "/",
      (bait: string) => `file://${bait}`,
      () => "host:x",
    ]) {
      const { repository, sprung } = baited(remote)
      // The blob that a rename must be compared with is missing.
      const blob = repository.git("rev-parse", "HEAD~2:a.bait")
      const path = join(repository.folder, ".git", "objects", blob.slice(0, 2), blob.slice(2))
      renameSync(path, `${path}.away`)
      const read = await readCommits(repository.folder, { now })
      expect(read.commits).toHaveLength(3)
      expect(read.left_out.join()).toMatch(/partial clone/)
      expect(existsSync(sprung), remote("bait")).toBe(false)
      try {
        execFileSync("git", ["-C", repository.folder, "log", "-M", "--name-status", "--no-show-signature"], {
          stdio: "pipe",
          env: { ...process.env, GIT_SSH_COMMAND: undefined },
        })
      } catch {
        // it fails to fetch
      }
      if (remote("bait") === "/") expect(existsSync(sprung), "the bait works").toBe(true)
    }
  })

  test("is not read if it only looks like a repository", async () => {
    const { repository, sprung } = baited((bait) => bait)
    const dir = join(tempDir(), "project")
    mkdirSync(dir)
    for (const name of readdirSync(join(repository.folder, ".git")))
      renameSync(join(repository.folder, ".git", name), join(dir, name))
    expect((await readCommits(dir, { now })).commits).toEqual([])
    writeFileSync(join(dir, ".git"), "not a repository")
    await expect(readCommits(dir, { now })).rejects.toThrow(/could not be read/)
    expect(existsSync(sprung)).toBe(false)
  })
})

describe("the marks in a message", () => {
  test.each([
    ["feat!: drop v1", "", { breaking: "drop v1" }],
    [
      "feat(api)!: drop v1",
      "BREAKING CHANGE: clients of v1\nmust move\n\nmore",
      { breaking: "clients of v1 must move" },
    ],
    ["feat: x", "BREAKING-CHANGE: y\nReviewed-by: z", { breaking: "y" }],
    ["feat: x", "this is no BREAKING CHANGE: really", {}],
    ["wow! great: x", "", {}],
    [
      'Revert "auth: sessions"',
      "This reverts commit 0123456789abcdef0123456789abcdef01234567.",
      { reverts: { subject: "auth: sessions", hash: "0123456789abcdef0123456789abcdef01234567" } },
    ],
    ["revert: auth: sessions", "Refs: 676104e, a215868", { reverts: { subject: "auth: sessions", hash: "676104e" } }],
    ['Revert "Revert "auth: sessions""', "This reverts commit 0123456789.", {}],
    ['Reapply "auth: sessions"', "This reverts commit 0123456789.", {}],
    ["Reverting is hard", "", {}],
  ])("%s", (subject, body, marks) => {
    expect(parseCommitMarks(subject, body)).toEqual(marks)
  })
})
