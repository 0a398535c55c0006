import { appendFileSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import {
  type Answer,
  codeOf,
  commit,
  conversationsOfLines,
  createAsk,
  EXPECTED,
  FIRST,
  fill,
  ONE,
  OWN,
  put,
  refTo,
  SECOND,
  session,
  shop,
  TWO,
} from "../../support/blame-shop.ts"
import { makeRepository } from "../../support/repository.ts"
import { sharedTempDir, tempDir, treeHash } from "../../support/temp.ts"
import { warmDex } from "../../support/warm.ts"

describe("dex blame", () => {
  const home = sharedTempDir()
  const repository = makeRepository(join(home, "shop"))
  const ask = createAsk(home, repository)
  const run = (...args: string[]) => warmDex(home, ["blame", ...args], {}, repository.folder)
  beforeAll(() => fill(home, repository))

  test("names the conversation of each line, and nobody for a person's lines; the repository is unchanged", async () => {
    const before = treeHash(repository.folder)
    const answer = await ask("src/zoo.ts")
    expect(conversationsOfLines(answer)).toEqual(EXPECTED)
    expect(answer).toMatchObject({ kind: "file", total: 28, proved: 24, likely: 0, unknown: 4 })
    expect(answer.lines[4]).toMatchObject({ line: 5, level: "proved", reason: "wrote_line", agent: "Claude Code" })
    expect(treeHash(repository.folder)).toEqual(before)
  })

  test("handles one line, some lines, an old version of a file, and reports an error for what does not exist", async () => {
    expect((await ask("src/zoo.ts:5")).lines).toMatchObject([{ line: 5, text: FIRST[0] }])
    expect((await ask("src/zoo.ts:16-17")).lines.map(({ line }) => line)).toEqual([16, 17])
    expect(conversationsOfLines(await ask("src/zoo.ts", "--rev", "HEAD~2"))).toEqual(FIRST.map(() => refTo(ONE)))
    expect(await run("src/none.ts")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("There is no file or commit"),
    })
    expect(await run("src/zoo.ts:9-3")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("is not a range of lines"),
    })
    expect(await run("src/zoo.ts", "--rev", "--output=x")).toMatchObject({ code: 2 })
  })

  test("handles a commit, a range and a folder", async () => {
    const one = await ask("HEAD~2")
    expect(one.commits).toMatchObject([
      { subject: "zoo: quokkas", level: "proved", conversation: refTo(ONE), total: 12 },
    ])
    const range = await ask("HEAD~3..HEAD")
    expect(range.commits.map(({ conversation }) => conversation)).toEqual([undefined, refTo(TWO), refTo(ONE)])
    const folder = await ask(".")
    expect(folder.agents).toMatchObject([
      { agent: "Claude Code", total: 24, proved: 24 },
      { agent: "", total: 5 },
    ])
    expect((await run("src")).stdout).toMatch(/^Claude Code +85\.7 %/m)
  })

  test("prints columns for people, and porcelain for editors", async () => {
    const { stdout, stderr, code } = await run("src/zoo.ts:4-5")
    const [person, agent] = stdout.split("\n")
    expect(person).toMatch(/^u .*2026-01-20.* 4\) +const mine3/)
    expect(agent).toMatch(/^p 11111111#\d+ +Claude Code +Add the quokka table +2026-01-02 +5\) +const quokka0/)
    expect(stderr).toContain("2 lines: 1 proved (p), 0 likely (l), 1 unknown (u).")
    expect(code).toBe(0)
    const { stdout: porcelain } = await run("src/zoo.ts:5", "--porcelain")
    const hash = repository.git("rev-parse", "HEAD~2")
    expect(porcelain.split("\n")).toEqual([
      `${hash} 1 5 1`,
      "author-time 1767348300",
      "summary zoo: quokkas",
      "filename src/zoo.ts",
      "dex-level proved",
      "dex-reason wrote_line",
      expect.stringMatching(`^dex-ref ${refTo(ONE)}#\\d+$`),
      "dex-agent Claude Code",
      "dex-title Add the quokka table",
      `\t${FIRST[0]}`,
      "",
    ])
  })

  test("says nothing about a private project outside of it", async () => {
    const { repository, home } = await shop()
    expect(await warmDex(home, ["private", repository.folder], {}, repository.folder)).toMatchObject({ code: 0 })
    const inside = await createAsk(home, repository)("src/zoo.ts")
    expect(conversationsOfLines(inside)).toEqual(EXPECTED)
    const { stdout } = await warmDex(home, ["blame", join(repository.folder, "src/zoo.ts"), "--json"])
    const outside = JSON.parse(stdout) as Answer
    expect(outside).toMatchObject({ proved: 0, likely: 0 })
    expect(outside.notes.join(" ")).toContain("private")
  })

  test("names nobody once the conversation is forgotten", async () => {
    const { home, ask } = await shop()
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toContain(refTo(ONE))
    expect(await warmDex(home, ["forget", refTo(ONE), "--yes"])).toMatchObject({ code: 0 })
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(
      EXPECTED.map((one) => (one === refTo(ONE) ? "" : one)),
    )
  })
})

describe("lines keep their conversation", () => {
  test("when they are rebased onto another base", async () => {
    const { repository, ask } = await shop()
    repository.git("checkout", "-q", "-b", "topic")
    repository.git("checkout", "-q", "main")
    repository.git("reset", "-q", "--hard", "HEAD~3")
    put(repository, "other.txt", ["something else"])
    commit(repository, "13:00", "main goes on")
    repository.git("checkout", "-q", "topic")
    repository.git("rebase", "-q", "main")
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(EXPECTED)
  })

  test("when they are cherry-picked", async () => {
    const { repository, ask } = await shop()
    const picked = repository.git("rev-parse", "HEAD~2")
    repository.git("checkout", "-q", "-b", "release", "HEAD~3")
    repository.git("cherry-pick", picked)
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(FIRST.map(() => refTo(ONE)))
  })

  test("when their branch is squashed", async () => {
    const { repository, ask } = await shop()
    repository.git("checkout", "-q", "-b", "topic", "HEAD~1")
    repository.git("checkout", "-q", "-b", "squashed", "HEAD~2")
    repository.git("merge", "-q", "--squash", "topic")
    commit(repository, "12:30", "zoo (#12)")
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(EXPECTED.slice(OWN.length))
  })

  test("when their folder is renamed before they are committed again, and when their file is", async () => {
    const { repository, ask } = await shop()
    repository.git("mv", "src", "lib")
    commit(repository, "14:00", "move")
    expect(conversationsOfLines(await ask("lib/zoo.ts"))).toEqual(EXPECTED)
    repository.git("checkout", "-q", "--orphan", "fresh", "HEAD~2")
    repository.git("mv", "src", "packages")
    commit(repository, "12:10", "history begins here")
    expect(conversationsOfLines(await ask("packages/zoo.ts"))).toEqual(EXPECTED.slice(OWN.length))
  })

  test("when a formatter changes their white space, committed with them or later", async () => {
    const { repository, ask } = await shop()
    const formatted = [...FIRST, ...SECOND].map((line) => `    ${line.trim().replaceAll(", ", ",")}`)
    repository.git("checkout", "-q", "-b", "formatted", "HEAD~3")
    put(repository, "src/zoo.ts", formatted)
    commit(repository, "12:06", "zoo, formatted")
    expect(conversationsOfLines(await ask("src/zoo.ts"))).toEqual(EXPECTED.slice(OWN.length))
    repository.git("checkout", "-q", "main")
    put(repository, "src/zoo.ts", [...OWN, ...formatted])
    const format = commit(repository, "20:00", "format everything")
    put(repository, ".git-blame-ignore-revs", ["# formatters", format])
    const seen = await ask("src/zoo.ts")
    expect(seen.lines[5]!.commit).not.toBe(format)
    expect(conversationsOfLines(seen)).toEqual(EXPECTED)
  })

  test("before they are committed", async () => {
    const { repository, ask, home } = await shop()
    const fresh = codeOf("numbat")
    const id = "33333333-2222-4333-8444-555555555555"
    session(home, repository.folder, id, "And numbats", "src/new.ts", fresh, 13)
    await warmDex(home, ["sync"])
    const path = join(repository.folder, "src/zoo.ts")
    writeFileSync(path, readFileSync(path, "utf8"))
    appendFileSync(path, `${OWN.join("\n")}\n`)
    put(repository, "src/new.ts", fresh)
    repository.git("add", "-N", "src/new.ts")
    const zoo = await ask("src/zoo.ts")
    expect(zoo.lines.slice(-4).map(({ commit, level }) => [commit, level])).toEqual(OWN.map(() => ["", "unknown"]))
    const answer = await ask("src/new.ts")
    expect(answer.lines.every(({ commit }) => commit === "")).toBe(true)
    expect(conversationsOfLines(answer)).toEqual(fresh.map(() => refTo(id)))
  })

  test("when they are moved within a file, with -M", async () => {
    const { repository, ask } = await shop()
    put(repository, "src/zoo.ts", [...SECOND, ...OWN, ...FIRST])
    commit(repository, "21:00", "wombats first")
    const answer = await ask("src/zoo.ts", "-M")
    expect(conversationsOfLines(answer)).toEqual([...EXPECTED.slice(-12), ...EXPECTED.slice(0, 16)])
  })
})

describe("records in the repository itself", () => {
  test("a session that git-ai names is proved if it is known, and only named if it is not", async () => {
    const { repository, ask } = await shop()
    const note = (session: string) => `src/zoo.ts
  s_0123456789abcd::t_0123456789abcd 1-2
  h_0123456789abcd 3
---
{"schema_version":"authorship/3.0.0","sessions":{"s_0123456789abcd":{"agent_id":{"tool":"claude","id":"${session}","model":"x"}}},"humans":{"h_0123456789abcd":{"author":"A Person <a@example.com>"}}}`
    repository.git("notes", "--ref=ai", "add", "-m", note(ONE), "HEAD")
    const known = await ask("src/zoo.ts:1-4")
    expect(known.lines.map(({ level, conversation }) => [level, conversation])).toEqual([
      ["proved", refTo(ONE)],
      ["proved", refTo(ONE)],
      ["unknown", undefined],
      ["unknown", undefined],
    ])
    repository.git("notes", "--ref=ai", "add", "-f", "-m", note("99999999-far"), "HEAD")
    const far = await ask("src/zoo.ts:1-5")
    expect(far.lines[0]).toMatchObject({
      level: "unknown",
      recorded: "git-ai: claude session 99999999-far, not on this machine",
    })
    expect(far.lines[4]).toMatchObject({ level: "proved", conversation: refTo(ONE) })
    expect(JSON.stringify(far)).not.toContain("A Person")
  })

  test("Entire's trailers, co-authors that are agents, and Agent Trace files are read", async () => {
    const { repository, ask } = await shop()
    put(repository, "a.txt", codeOf("a", 3))
    commit(repository, "22:00", `entire\n\nEntire-Session: 2026-01-02-${TWO}`)
    expect(await ask("a.txt")).toMatchObject({ lines: [{ level: "proved", conversation: refTo(TWO) }, {}, {}] })
    put(repository, "b.txt", codeOf("b", 3))
    commit(
      repository,
      "22:10",
      "co\n\nCo-authored-by: Claude <noreply@anthropic.com>\nCo-authored-by: A Person <a@example.com>",
    )
    const co = await ask("b.txt")
    expect(co.lines[0]).toMatchObject({ level: "unknown", recorded: "Co-Authored-By: Claude Code" })
    expect(JSON.stringify(co)).not.toContain("A Person")
    put(repository, "c.txt", codeOf("c", 3))
    const revision = commit(repository, "22:20", "traced")
    const conversation = { url: `https://example.com/conversations/${ONE}`, ranges: [{ start_line: 2, end_line: 3 }] }
    const trace = {
      vcs: { type: "git", revision },
      tool: { name: "cursor" },
      files: [{ path: "c.txt", conversations: [conversation] }],
    }
    put(repository, ".agent-trace/traces.jsonl", ["not json", JSON.stringify(trace)])
    expect((await ask("c.txt")).lines.map(({ level }) => level)).toEqual(["unknown", "proved", "proved"])
  })
})

test("no control character in a file, a title or a commit reaches the terminal", async () => {
  const home = tempDir()
  const repository = makeRepository(join(home, "shop"))
  const lines = codeOf("quokka").map((line) => `${line} // \x1b[31mred\x07\u202e`)
  session(home, repository.folder, ONE, "Add \x1b]0;owned\x07 the \u202equokka table", "src/zoo.ts", lines)
  put(repository, "src/zoo.ts", lines)
  commit(repository, "10:05", "zoo \x1b[2J")
  await warmDex(home, ["sync"])
  for (const args of [["src/zoo.ts"], ["src/zoo.ts", "--porcelain"], ["HEAD"], ["."]]) {
    const { stdout, stderr } = await warmDex(home, ["blame", ...args], {}, repository.folder)
    expect(stdout).not.toBe("")
    expect(stdout + stderr).not.toMatch(/[\x00-\x08\x0b-\x1f\x7f\u202e]/)
  }
})

test("without a history, and outside a repository, it says what to do", async () => {
  const home = tempDir()
  const repository = makeRepository(join(home, "shop"))
  put(repository, "a.txt", ["one line of text"])
  commit(repository, "10:00", "start")
  const { code, stderr } = await warmDex(home, ["blame", "a.txt"], {}, repository.folder)
  expect([code, stderr]).toEqual([1, expect.stringContaining("dex sync")])
  writeFileSync(join(home, "loose.txt"), "x\n")
  expect(await warmDex(home, ["blame", "loose.txt"])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining("is not in a git repository"),
  })
})
