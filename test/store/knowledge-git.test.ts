import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import fc from "fast-check"
import { describe, expect, test } from "vitest"
import { syncProjectGit } from "../../src/ingest/project-git.ts"
import { type CommitWrite, MAX_RELATED_FILES, type TouchWrite } from "../../src/store/knowledge/git.ts"
import { type Knowledge, openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { openKnowledgeFile } from "../support/inside.ts"
import { commitStream, makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"

const RUNS = Number(process.env.DEX_RUNS ?? 100)
const PROJECT = "/code/app"

function save(db: Knowledge, commits: CommitWrite[], more: { replaces?: boolean; max_commits?: number } = {}) {
  return db.git.saveCommits({
    project: PROJECT,
    head: commits[0]?.hash ?? "",
    shallow: "",
    read_at: 1,
    commits,
    replaces: false,
    left_out: [],
    max_commits: 2_000,
    when_more: "more",
    ...more,
  })
}

/** Valid git histories: every change is to an existing file, every new name is free. Oldest first. */
const history = fc
  .array(
    fc.array(
      fc.record({
        kind: fc.constantFrom("add", "modify", "modify", "delete", "rename"),
        file: fc.nat(9),
        to: fc.nat(9),
      }),
      { minLength: 1, maxLength: 5 },
    ),
    { maxLength: 25 },
  )
  .map((commits) => {
    const there = new Set<string>()
    return commits.map((changes, i): CommitWrite => {
      const files: TouchWrite[] = []
      const used = new Set<string>()
      for (const { kind, file, to } of changes) {
        const [path, next] = [`f${file}`, `f${to}`]
        if (used.has(path) || used.has(next)) continue
        if (kind === "add" && !there.has(path)) files.push({ status: "added", path })
        else if (kind === "modify" && there.has(path)) files.push({ status: "modified", path })
        else if (kind === "delete" && there.has(path)) files.push({ status: "deleted", path })
        else if (kind === "rename" && there.has(path) && !there.has(next))
          files.push({ status: "renamed", path: next, from: path })
        else continue
        used.add(path)
        if (kind === "rename") used.add(next)
      }
      for (const { status, path, from } of files) {
        if (status === "deleted") there.delete(path)
        else there.add(path)
        if (from !== undefined) there.delete(from)
      }
      // Sometimes a commit that is too large to show that its files belong together.
      const file_count = i % 7 === 6 ? MAX_RELATED_FILES + 1 : files.length
      return { hash: `h${i}`, at: i * 1000, committed_at: i * 1000, subject: `s${i}`, body: "", files, file_count }
    })
  })

/** Brute force: walks back from a name, and continues with the earlier name at each rename. */
function commitsOf(commits: CommitWrite[], path: string): Set<string> {
  const names = new Set([path])
  const found = new Set<string>()
  for (const { hash, files } of commits.toReversed()) {
    const mine = files.filter((file) => names.has(file.path))
    if (mine.length > 0) found.add(hash)
    for (const { from } of files) if (from !== undefined) names.delete(from)
    for (const { from } of mine) if (from !== undefined) names.add(from)
  }
  return found
}

const filesThere = (commits: CommitWrite[]) => {
  const there = new Set<string>()
  for (const { files } of commits)
    for (const { status, path, from } of files) {
      if (status === "deleted") there.delete(path)
      else there.add(path)
      if (from !== undefined) there.delete(from)
    }
  return [...there]
}

function together(commits: CommitWrite[], path: string) {
  const small = new Map(
    commits.flatMap(({ hash, at, file_count }) => (file_count <= MAX_RELATED_FILES ? [[hash, at]] : [])),
  )
  const smallOf = (file: string) => [...commitsOf(commits, file)].filter((hash) => small.has(hash))
  const own = smallOf(path)
  return filesThere(commits).flatMap((other) => {
    const theirs = smallOf(other)
    const both = own.filter((hash) => theirs.includes(hash))
    if (other === path || both.length === 0) return []
    const newest = Math.max(...both.map((hash) => small.get(hash) as number))
    return [{ path: other, together: both.length, own: own.length, other: theirs.length, newest }]
  })
}

const byPath = (a: { path: string }, b: { path: string }) => (a.path < b.path ? -1 : 1)

describe("files that change together", () => {
  test("are counted as by brute force, through every rename, read at once or in steps", () => {
    const db = openKnowledge(join(tempDir(), "knowledge.db"))
    fc.assert(
      fc.property(history, fc.nat(25), (commits, cut) => {
        const facts = () =>
          filesThere(commits).map((path) => [
            path,
            db.git.commitsTouching(PROJECT, path, { limit: 100 }).map(({ hash }) => hash),
            db.git.changedTogether(PROJECT, path, 100).sort(byPath),
          ])
        const expected = filesThere(commits).map((path) => [
          path,
          commits.flatMap(({ hash }) => (commitsOf(commits, path).has(hash) ? [hash] : [])).reverse(),
          together(commits, path).sort(byPath),
        ])
        save(db, commits.toReversed(), { replaces: true })
        expect(facts()).toEqual(expected)
        save(db, commits.slice(0, cut).toReversed(), { replaces: true })
        save(db, commits.slice(cut).toReversed())
        expect(facts()).toEqual(expected)
      }),
      { numRuns: RUNS * 3 },
    )
    db.close()
  })

  test("a rename in two branches, and a later change under the old name, belong to one file", () => {
    const db = openKnowledge(join(tempDir(), "knowledge.db"))
    const commit = (hash: string, ...files: TouchWrite[]): CommitWrite => {
      return { hash, at: 0, committed_at: 0, subject: "", body: "", files, file_count: files.length }
    }
    save(db, [
      commit("e", { status: "renamed", from: "a", path: "b" }),
      commit("d", { status: "modified", path: "a" }),
      commit("c", { status: "renamed", from: "a", path: "b" }),
      commit("b", { status: "modified", path: "a" }),
    ])
    for (const name of ["a", "b"]) {
      expect(db.git.commitsTouching(PROJECT, name, { limit: 9 }).map(({ hash }) => hash)).toEqual(["e", "d", "c", "b"])
      expect(db.git.currentFileName(PROJECT, name)).toEqual({ path: "b", gone: false })
    }
    db.close()
  })

  test("the oldest are deleted if there are too many, and that is reported", () => {
    const db = openKnowledge(join(tempDir(), "knowledge.db"))
    const commits = Array.from({ length: 8 }, (_, i): CommitWrite => {
      return {
        hash: `h${i}`,
        at: i,
        committed_at: i,
        subject: "",
        body: "",
        files: [{ status: "modified", path: `f${i}` }],
        file_count: 1,
      }
    })
    save(db, commits.slice(0, 4).toReversed(), { max_commits: 5 })
    expect(db.git.gitProject(PROJECT)).toMatchObject({ commits: 4, left_out: [] })
    save(db, commits.slice(4).toReversed(), { max_commits: 5 })
    expect(db.git.gitProject(PROJECT)).toMatchObject({ commits: 5, left_out: ["more"] })
    expect(db.git.currentFileName(PROJECT, "f2")).toBeUndefined()
    expect(db.git.currentFileName(PROJECT, "f3")).toBeDefined()
    expect(openKnowledgeFile(db).prepare("select count(*) from git_file").pluck().get()).toBe(5)
    db.close()
  })
})

describe("a project's commits in the knowledge", () => {
  const now = Date.now()

  test("follow the repository: new commits are added, a rewritten history is read again, a lost one is forgotten", async () => {
    const dir = tempDir()
    const db = openKnowledge(join(dir, "knowledge.db"))
    const { folder, git } = makeRepository(join(dir, "repo"))
    const commit = (name: string, text: string, message: string) => {
      writeFileSync(join(folder, name), text)
      git("add", "-A")
      git("commit", "-q", "-m", message)
    }
    const text = "one\ntwo\nthree\nfour\nfive\n"
    commit("old.ts", text, "feat: old")
    commit("b.ts", "b", "feat(api)!: drop v1")
    expect(await syncProjectGit(db, folder, { now })).toEqual({ added: 2, read_anew: false, left_out: [] })
    expect(await syncProjectGit(db, folder, { now })).toEqual({ added: 0, read_anew: false, left_out: [] })
    git("mv", "old.ts", "new.ts")
    commit("b.ts", "b2", "move")
    commit("c.ts", "c", 'Revert "feat: old"\n\nThis reverts commit 1234567.')
    expect(await syncProjectGit(db, folder, { now })).toMatchObject({ added: 2, read_anew: false })
    expect(db.git.commitsTouching(folder, "new.ts", { limit: 9 }).map(({ subject }) => subject)).toEqual([
      "move",
      "feat: old",
    ])
    expect(db.git.changedTogether(folder, "old.ts", 9)).toEqual([
      { path: "b.ts", together: 1, own: 2, other: 2, newest: expect.any(Number) },
    ])
    expect(db.git.markedCommits(folder, { limit: 9 })).toMatchObject([
      { reverts: { subject: "feat: old", hash: "1234567" } },
      { breaking: "drop v1" },
    ])
    expect(db.git.filesOfCommit(folder, git("rev-parse", "HEAD~1"))).toEqual(["b.ts", "new.ts"])

    git("reset", "-q", "--hard", "HEAD~2")
    commit("d.ts", "d", "another way")
    expect(await syncProjectGit(db, folder, { now })).toMatchObject({ added: 3, read_anew: true })
    expect(db.git.commitsTouching(folder, "new.ts", { limit: 9 })).toEqual([])
    expect(db.git.commitsTouching(folder, "old.ts", { limit: 9 })).toHaveLength(1)

    db.git.forgetProjectGit(folder)
    expect(db.git.gitProject(folder)).toBeUndefined()
    for (const table of ["git_commit", "git_file", "git_name", "git_touch", "git_read"])
      expect(openKnowledgeFile(db).prepare(`select count(*) from ${table}`).pluck().get(), table).toBe(0)
    db.close()
  })

  /** Commits on main and on a branch alternate; the last commit merges them. All on different days. */
  function merged(folder: string) {
    const { git, gitAt } = makeRepository(folder)
    const day = (n: number) => new Date(now - (30 - n) * 86_400_000).toISOString()
    const commit = (n: number, message: string, files: Record<string, string | undefined>) => {
      for (const [name, text] of Object.entries(files))
        if (text === undefined) git("rm", "-q", name)
        else writeFileSync(join(folder, name), text)
      git("add", "-A")
      gitAt(day(n), "commit", "-q", "-m", message)
    }
    commit(1, "base", { "a.ts": "1", "s.ts": "1", "b.ts": "1" })
    git("checkout", "-q", "-b", "side")
    commit(2, "side: old work", { "a.ts": "2", "s.ts": "2" })
    git("checkout", "-q", "main")
    commit(10, "main: b", { "b.ts": "2" })
    commit(11, "main: no s", { "s.ts": undefined })
    commit(12, "main: b again", { "b.ts": "3" })
    const before = git("rev-parse", "HEAD")
    gitAt(day(13), "merge", "-q", "--no-ff", "-s", "ours", "-m", "merge", "side")
    return { git, before }
  }

  test.each([2_000, 3])("after a merge they are the same as if read at once, with a limit of %i", async (most) => {
    const dir = tempDir()
    const folder = join(dir, "repo")
    const { git, before } = merged(folder)
    const [bit, once] = ["bit", "once"].map((name) => openKnowledge(join(dir, `${name}.db`))) as [Knowledge, Knowledge]
    const options = { now, limits: { commits: most } }
    git("checkout", "-q", before)
    await syncProjectGit(bit, folder, options)
    git("checkout", "-q", "main")
    await syncProjectGit(bit, folder, options)
    await syncProjectGit(once, folder, options)
    const facts = (db: Knowledge) =>
      ["a.ts", "b.ts", "s.ts"].map((file) => [
        db.git.commitsTouching(folder, file, { limit: 9 }).map(({ subject }) => subject),
        db.git.currentFileName(folder, file),
      ])
    expect(facts(bit)).toEqual(facts(once))
    expect(facts(bit)[1]![0]).toEqual(["main: b again", "main: b", ...(most === 3 ? [] : ["base"])])
    expect(facts(bit)[2]![1]).toEqual({ path: "s.ts", gone: true })
    bit.close()
    once.close()
  })

  test("are read again after a shallow clone is deepened or completed", async () => {
    const dir = tempDir()
    const { folder, git } = makeRepository(join(dir, "repo"))
    for (const i of [1, 2, 3, 4, 5]) {
      writeFileSync(join(folder, `f${i}.ts`), String(i))
      git("add", "-A")
      git("commit", "-q", "-m", `number ${i}`)
    }
    const copy = join(dir, "copy")
    git("clone", "-q", "--depth=2", `file://${folder}`, copy)
    const db = openKnowledge(join(dir, "knowledge.db"))
    const counts = async () => {
      const { read_anew } = await syncProjectGit(db, copy, { now })
      const files = openKnowledgeFile(db).prepare("select file_count from git_commit order by id").pluck().all()
      return { read_anew, files }
    }
    expect(await counts()).toEqual({ read_anew: false, files: [0, 1] })
    expect(await counts()).toEqual({ read_anew: false, files: [0, 1] })
    git("-C", copy, "fetch", "-q", "--deepen=1")
    expect(await counts()).toEqual({ read_anew: true, files: [0, 1, 1] })
    git("-C", copy, "fetch", "-q", "--unshallow")
    expect(await counts()).toEqual({ read_anew: true, files: [1, 1, 1, 1, 1] })
    expect(await counts()).toEqual({ read_anew: false, files: [1, 1, 1, 1, 1] })
    db.close()
  })

  test("a secret in a commit message is in none of their bytes, not even if the message is cut off", async () => {
    const dir = tempDir()
    const db = openKnowledge(join(dir, "knowledge.db"))
    const repository = makeRepository(join(dir, "repo"))
    const secret = `ghp_${"a1B2".repeat(9)}`
    const body = `${"x ".repeat(1_985)}${secret}`
    const messages = [
      `use ${secret}`,
      `long\n\n${body}`,
      "feat: x\n\nBREAKING CHANGE: postgres://me:hunter2secret@db/x",
    ]
    repository.import(
      messages
        .map((message, i) => commitStream(message, now + i * 1000, [{ name: `f${i}`, text: "x" }], i === 0))
        .join(""),
    )
    await syncProjectGit(db, repository.folder, { now })
    openKnowledgeFile(db).pragma("wal_checkpoint(truncate)")
    expect(db.git.gitProject(repository.folder)?.commits).toBe(3)
    const bytes = Buffer.concat(
      readdirSync(dir, { withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ name }) => readFileSync(join(dir, name))),
    ).toString("latin1")
    expect(bytes).toContain("[REDACTED:")
    for (const part of [secret, secret.slice(0, 20), "hunter2secret"]) expect(bytes).not.toContain(part)
    db.close()
  })
})
