import { execFileSync } from "node:child_process"
import { appendFileSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, test } from "vitest"
import { INDEX_FILE } from "../../src/core/formats.ts"
import { dex } from "../support/dex.ts"
import { claudeSession, smallHome } from "../support/home.ts"
import { makeRepository } from "../support/repository.ts"
import { synced, syncedOnce } from "../support/synced.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const AUTH = "claude_code:11111111-1111-4111-8111-111111111111"
const SIDEBAR = "claude_code:22222222-2222-4222-8222-222222222222"

const SMALL = syncedOnce()

const json = async (home: string, args: string[]) => JSON.parse((await warmDex(home, [...args, "--json"])).stdout)

describe("dex sync", () => {
  test("reads everything once, and then nothing", async () => {
    const home = tempDir()
    smallHome(home)
    const first = await warmDex(home, ["sync"])
    expect(first.stdout).toMatch(/^Read 3 transcripts of 3: 14 new messages in /)
    const second = await warmDex(home, ["sync"])
    expect(second.stdout).toMatch(/^Nothing new in 3 transcripts/)
  })

  test("reads only what was appended", async () => {
    const home = await synced()
    const [folder] = readdirSync(join(home, ".claude", "projects"))
    const [file] = readdirSync(join(home, ".claude", "projects", folder!))
    const path = join(home, ".claude", "projects", folder!, file!)
    const line = readFileSync(path, "utf8").split("\n")[0]!
    appendFileSync(
      path,
      `${JSON.stringify({ ...JSON.parse(line), uuid: "later-1", message: { role: "user", content: "and one more thing" } })}\n`,
    )
    expect((await warmDex(home, ["sync"])).stdout).toMatch(/^Read 1 transcript of 3: 1 new message /)
  })

  test("leaves the agents' files as they were, byte for byte", async () => {
    const home = tempDir()
    smallHome(home)
    const before = treeHash(join(home, ".claude"))
    await warmDex(home, ["sync"])
    expect(treeHash(join(home, ".claude"))).toEqual(before)
  })

  test("prints its progress as JSON events, with the report last", async () => {
    const home = tempDir()
    smallHome(home)
    const lines = (await warmDex(home, ["sync", "--json"])).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(lines.at(0)).toMatchObject({ event: "progress", phase: "reading" })
    expect(lines.at(-1)).toMatchObject({ event: "done", complete: true, read: 3, added_messages: 14 })
  })

  test("keeps a conversation whose file the agent has deleted, and says so", async () => {
    const home = await synced()
    rmSync(join(home, ".claude", "projects", "-code-web"), { recursive: true })
    expect((await warmDex(home, ["sync"])).stderr).toMatch(/1 transcript was deleted from the agents' folders/)
    const [shown] = (await json(home, ["show", SIDEBAR])).conversations
    expect(shown).toMatchObject({ archived: true, messages: [{ index: 1 }, { index: 2 }] })
    expect((await json(home, ["sources"])).sources[0]).toMatchObject({ source: "claude_code", archived: 1, kept: 3 })
    const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id)
    const list = (...args: string[]) => json(home, ["list", "--archived", ...args])
    expect(idsOf((await list()).conversations)).toEqual([SIDEBAR])
    expect(await list("--project", "api")).toMatchObject({ total: 0, note: expect.stringMatching(/--archived\.$/) })
    const search = (...args: string[]) => json(home, ["search", ...args])
    expect(idsOf((await search("sidebar", "--archived")).results)).toEqual([SIDEBAR])
    expect(idsOf((await search("--archived")).results)).toEqual([SIDEBAR])
    expect((await search("refresh token")).results).not.toEqual([])
    expect(await search("refresh token", "--archived")).toMatchObject({
      results: [],
      notes: expect.arrayContaining([expect.stringMatching(/\d+ messages? match(?:es)? without --archived\.$/)]),
    })
  })

  test("reads every one of many conversations", async () => {
    const home = tempDir()
    for (let i = 0; i < 40; i++)
      claudeSession(home, {
        id: `aaaaaaaa-0000-4000-8000-0000000000${String(i).padStart(2, "0")}`,
        start: "2026-11-01T00:00:00Z",
        turns: [{ user: `question ${i}` }],
      })
    await warmDex(home, ["sync"])
    expect((await json(home, ["stats"])).total_conversations).toBe(40)
  })
})

describe("dex search", () => {
  test("finds the conversation, shows the matched words, and names the message", async () => {
    const home = SMALL
    const run = await warmDex(home, ["search", "refresh token race"])
    expect(run.code).toBe(0)
    expect(run.stdout).toContain("Refresh token race")
    expect((await warmDex(home, ["search", "mutex"])).stdout).toMatch(/\S.*\*\*mutex\*\*.*\S/)
    const found = await json(home, ["search", "mutex"])
    expect(found).toMatchObject({ total: 1, matched: "all", mode: "lexical" })
    expect(found.results[0]).toMatchObject({
      id: AUTH,
      source: "claude_code",
      project: "/code/api",
      kind: "person",
      message_index: 7,
    })
    expect(found.results[0].snippet).toContain("**mutex**")
  })

  test("marks words that match by their stem", async () => {
    const home = SMALL
    expect((await json(home, ["search", "flickering"])).results[0].snippet).toContain("**flickers**")
  })

  test("says so when no message contains all of the words", async () => {
    const home = SMALL
    const found = await json(home, ["search", "mutex", "zebra"])
    expect(found).toMatchObject({ matched: "some" })
    expect(found.notes.join()).toMatch(/contain some of them/)
  })

  test("exits with 1 when there is nothing, and prints an empty list as JSON", async () => {
    const home = SMALL
    const run = await warmDex(home, ["search", "zebra"])
    expect(run).toMatchObject({ code: 1, stdout: "" })
    expect(run.stderr).toMatch(/Nothing found/)
    expect(await json(home, ["search", "zebra"])).toMatchObject({ results: [], total: 0 })
  })

  test.each([
    '"',
    '"unclosed',
    "AND",
    "NOT OR",
    "a*b(c)",
    "^x",
    "col:umn",
    "-minus",
    "🎉",
    "'; drop table",
    "NEAR(a b)",
    "{a b}:c",
    "\\",
    "--",
    "%_",
    "日本語",
    "a\u0000b",
  ])("takes %j as words, whatever it looks like", async (query) => {
    const home = SMALL
    const run = await warmDex(home, ["search", "--json", "--", query.replaceAll("\0", " ")])
    expect(run.code, run.stderr).toBeOneOf([0, 1])
    expect(run.stderr).toBe("")
  })

  test("filters by project, agent, time, file and conversation", async () => {
    const home = SMALL
    const ids = async (...args: string[]) =>
      (await json(home, ["search", ...args])).results.map((result: { id: string }) => result.id)
    expect(await ids("the", "theme", "--project", "WEB")).toEqual([SIDEBAR])
    expect(await ids("the", "--project", "api", "-s", "codex")).toEqual([])
    expect(await ids("request OR theme", "--from", "2026-11-09")).toEqual([SIDEBAR])
    expect(await ids("request theme", "--to", "2026-11-09")).toEqual([AUTH])
    expect(await ids("token", "--file", "src/auth.ts")).toEqual([AUTH])
    expect(await ids("token", "-f", "nowhere.ts")).toEqual([])
    expect(await ids("mutex", "-m", "MODEL-A")).toEqual([AUTH])
    expect(await ids("mutex", "--model", "other")).toEqual([])
    expect(await ids("theme", "--session", "22222222")).toEqual([SIDEBAR])
    expect(await ids("theme", "--session", "11111111")).toEqual([])
  })

  test("answers without an index, slower, and says so", async () => {
    const home = await synced()
    for (const file of readdirSync(join(home, ".dex")))
      if (file.startsWith(INDEX_FILE)) rmSync(join(home, ".dex", file))
    const found = await json(home, ["search", "mutex"])
    expect(found).toMatchObject({ mode: "scan", results: [{ id: AUTH }] })
    expect((await json(home, ["search", "mutex", "--file", "nowhere.ts"])).results).toEqual([])
    expect((await json(home, ["search", "mutex", "--from", "2026-11-09"])).results).toEqual([])
    expect(found.notes.join()).toMatch(
      /no search index yet: \d of \d conversations, subagents and notes were read one by one/,
    )
    await syncHome(home)
    expect(await json(home, ["search", "mutex"])).toMatchObject({ mode: "lexical", results: [{ id: AUTH }] })
  })

  test("gives the same results after the index was deleted and built again", async () => {
    const home = await synced()
    const before = await json(home, ["search", "token"])
    rmSync(join(home, ".dex", INDEX_FILE))
    expect((await warmDex(home, ["reindex"])).code).toBe(0)
    expect(await json(home, ["search", "token"])).toEqual(before)
  })

  test("works before anything was ever synced: the first search reads the newest conversations", async () => {
    const home = tempDir()
    smallHome(home)
    expect(await json(home, ["search", "mutex"])).toMatchObject({ results: [{ id: AUTH }] })
  })

  test("reads new conversations if the first run found nothing", async () => {
    const home = tempDir()
    expect(await warmDex(home, [])).toMatchObject({ code: 1 })
    smallHome(home)
    expect(await json(home, ["search", "mutex"])).toMatchObject({ results: [{ id: AUTH }] })
  })
})

describe("dex list", () => {
  test("lists what a person did, newest first, and says what it leaves out", async () => {
    const home = SMALL
    const run = await warmDex(home, ["list"])
    expect(
      run.stdout
        .split("\n")
        .filter(Boolean)
        .map((line) => line.slice(0, 60).trim()),
    ).toEqual([
      expect.stringMatching(/^1 {2}2026-11-10 09:01 {2}The sidebar flickers/),
      expect.stringMatching(/^2 {2}2026-11-03 10:0\d {2}Refresh token race/),
    ])
    expect(run.stderr).toMatch(/Not shown: 1 automated; show with --all/)
    expect((await json(home, ["list", "--all"])).conversations.length).toBe(3)
  })

  test("pages, and says how to continue", async () => {
    const home = SMALL
    const page = await json(home, ["list", "-l", "1"])
    expect(page).toMatchObject({ total: 2, next_offset: 1, conversations: [{ id: SIDEBAR }] })
    expect(await json(home, ["list", "-l", "1", "--offset", "1"])).toMatchObject({
      conversations: [{ id: AUTH, message_count: 10 }],
    })
  })

  test("refuses a date it cannot read and says how to write one", async () => {
    const run = await warmDex(SMALL, ["list", "--from", "lately"])
    expect(run.code).toBe(2)
    expect(run.stderr).toMatch(/"lately" is not a date that dex understands\. Write a day \(2026-11-03.*7d, 2w\)/)
  })
})

describe("dex show", () => {
  test("prints an outline with message numbers", async () => {
    const run = await warmDex(SMALL, ["show", "11111111", "--format", "outline"])
    expect(run.stdout).toContain("[Assistant] [Read: src/auth.ts]")
    expect(run.stdout).not.toContain('{"')
    expect(run.stdout).toMatch(/^ {3}1 {2}\[User\] Two requests refresh the token .* \(\d+ tokens\)$/m)
    expect(run.stdout).toMatch(/^ {3}3 {2}\[Assistant\] \[Bash: .*npm test.* tokens\)$/m)
  })

  test("omits tool outputs from the stripped format and shows their size; shows them in the full format", async () => {
    const home = SMALL
    expect((await warmDex(home, ["show", "11111111"])).stdout).toMatch(/\[Bash failed: \d+ tokens\]/)
    expect((await warmDex(home, ["show", "11111111"])).stdout).not.toContain("token already used")
    expect((await warmDex(home, ["show", "11111111", "--format", "full"])).stdout).toContain(
      "Error: token already used",
    )
  })

  test("shows a person's words only", async () => {
    const [shown] = (await json(SMALL, ["show", AUTH, "--format", "user_only"])).conversations
    expect(shown.messages.map((message: { content: string }) => message.content)).toEqual([
      "Two requests refresh the token at once and one of them is logged out. Why?",
      "Works. Commit it.",
    ])
  })

  test("shows the messages around one, including one that the ref names", async () => {
    const home = SMALL
    const indexes = async (...args: string[]) =>
      (await json(home, ["show", ...args])).conversations[0].messages.map((message: { index: number }) => message.index)
    expect(await indexes(AUTH, "--expand", "4", "--before", "1", "--after", "0")).toEqual([3, 4])
    expect(await indexes(`${AUTH}#4`, "--before", "1", "--after", "0")).toEqual([3, 4])
    expect(await indexes(`${AUTH}#4`, "--before", "0")).toEqual([4, 5, 6])
    expect((await warmDex(SMALL, ["show", AUTH, "--before", "1"])).stderr).toMatch(/Before or after which message\?/)
    expect(await indexes(`${AUTH}#5`)).toEqual([3, 4, 5, 6, 7])
    const [shown] = (await json(home, ["show", `${AUTH}#1`])).conversations
    expect(shown).toMatchObject({ has_more_before: false, has_more_after: true })
  })

  test("never exceeds max-tokens, and says how to continue", async () => {
    const home = SMALL
    const answer = await json(home, ["show", AUTH, "--max-tokens", "300"])
    expect(answer.estimated_tokens).toBeLessThanOrEqual(300)
    const [shown] = answer.conversations
    expect(shown.truncated.messages_left_out).toBeGreaterThan(0)
    const [, ...args] = shown.truncated.continue_with.split(" ")
    const [rest] = (await json(home, args)).conversations
    expect([...shown.messages, ...rest.messages].map((message: { index: number }) => message.index)).toEqual(
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].slice(0, shown.messages.length + rest.messages.length),
    )
  })

  test("takes several refs", async () => {
    expect((await json(SMALL, ["show", AUTH, SIDEBAR])).conversations.map((shown: { id: string }) => shown.id)).toEqual(
      [AUTH, SIDEBAR],
    )
  })

  test("lists the conversations that an ambiguous prefix could mean, and reports an unknown one", async () => {
    const home = tempDir()
    for (const n of [1, 2])
      claudeSession(home, {
        id: `abcabcab-000${n}-4000-8000-000000000000`,
        start: "2026-11-01T00:00:00Z",
        turns: [{ user: "hello" }],
      })
    await syncHome(home)
    expect((await warmDex(home, ["show", "abcabcab"])).stderr).toMatch(
      /matches several conversations: claude_code:abcabcab-000[12]-.*, claude_code:abcabcab-000[12]-.*Type more of it/,
    )
    expect(await warmDex(home, ["show", "nothing"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/No conversation "nothing" was found.*dex list/),
    })
    expect((await warmDex(home, ["show", "7"])).stderr).toMatch(/There is no row 7/)
  })
})

describe("dex resume", () => {
  test("continues in a clone of the same repository if the folder is gone", async () => {
    const home = tempDir()
    const [old, clone] = [join(home, "old"), join(home, "clone")]
    const { git } = makeRepository(old)
    git("commit", "-q", "--allow-empty", "-m", "first")
    claudeSession(home, {
      id: "44444444-4444-4444-8444-444444444444",
      cwd: old,
      start: "2026-11-01T00:00:00Z",
      turns: [{ user: "hello" }],
    })
    await syncHome(home)
    await warmDex(home, ["backup", join(home, "b.db")]) // it learns what names the repository
    execFileSync("git", ["clone", "-q", old, clone], { stdio: "pipe" })
    rmSync(old, { recursive: true })
    const there = await warmDex(home, ["resume", "44444444"], {}, clone)
    expect(there.stdout).toBe(`cd ${clone} && claude --resume 44444444-4444-4444-8444-444444444444\n`)
    expect(there.stderr).toMatch(/This folder is a clone of the same\s+repository\./)
    const elsewhere = await warmDex(home, ["resume", "44444444"])
    expect(elsewhere.stdout).toBe(there.stdout)
    expect(elsewhere.stderr).toMatch(/is gone .*clone is a\s+clone of the same\s+repository/s)
  })

  test("prints the command if there is no terminal", async () => {
    const home = tempDir()
    mkdirSync(join(home, "code"))
    claudeSession(home, {
      id: "44444444-4444-4444-8444-444444444444",
      cwd: join(home, "code"),
      start: "2026-11-01T00:00:00Z",
      turns: [{ user: "hello" }],
    })
    await syncHome(home)
    expect((await warmDex(home, ["resume", "44444444"])).stdout).toBe(
      `cd ${join(home, "code")} && claude --resume 44444444-4444-4444-8444-444444444444\n`,
    )
  })

  test("says why when the folder or the transcript is gone", async () => {
    const home = await synced()
    expect(await warmDex(home, ["resume", AUTH])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(
        /The conversation's folder is gone \(\/code\/api\)\. .* --here\. .*dex handover \S+ --to claude_code/s,
      ),
    })
    expect((await warmDex(home, ["resume", AUTH, "--here"])).stdout).toBe(
      `cd ${home} && claude --resume 11111111-1111-4111-8111-111111111111\n`,
    )
    rmSync(join(home, ".claude"), { recursive: true })
    await syncHome(home)
    expect((await warmDex(home, ["resume", AUTH])).stderr).toMatch(/own file was deleted.*dex handover/s)
  })
})

describe("dex forget and private", () => {
  test("asks for --yes, then deletes the conversation from every file and never reads it again", async () => {
    const home = await synced()
    const unconfirmed = await warmDex(home, ["forget", "11111111"])
    expect(unconfirmed.stderr).toMatch(/would permanently delete 1 conversation.*Nothing was\s+deleted.*Add --yes/s)
    expect(unconfirmed.code).toBe(2)
    expect(await warmDex(home, ["forget", "11111111", "--json"])).toMatchObject({ code: 2 })
    expect((await json(home, ["search", "mutex"])).total).toBe(1)
    expect((await warmDex(home, ["forget", "11111111", "--yes"])).code).toBe(0)
    // Traces are off, because a trace would contain the word that is searched for.
    const search = async () =>
      JSON.parse((await warmDex(home, ["search", "mutex", "--json"], { DEX_TRACES: "off" })).stdout).results
    expect(await search()).toEqual([])
    const leaves = () =>
      readdirSync(join(home, ".dex"), { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .filter((entry) => /mutex|rotated/.test(readFileSync(join(entry.parentPath, entry.name), "latin1")))
        .map((entry) => entry.name)
    expect(leaves()).toEqual([])
    await syncHome(home)
    expect(await search()).toEqual([])
    expect(leaves()).toEqual([])
  })

  test("forgets all conversations of a project", async () => {
    const home = await synced()
    expect((await json(home, ["forget", "/code/api", "--yes"])).count).toBe(2)
    expect((await json(home, ["list", "--all"])).conversations.map((row: { id: string }) => row.id)).toEqual([SIDEBAR])
  })

  test("answers from a private project only inside it, and says what is hidden elsewhere", async () => {
    const home = tempDir()
    const project = join(home, "acme")
    mkdirSync(project)
    claudeSession(home, {
      id: "55555555-5555-4555-8555-555555555555",
      cwd: project,
      start: "2026-11-01T00:00:00Z",
      turns: [{ user: "the acme invoice format" }],
    })
    await syncHome(home)
    expect((await warmDex(home, ["private", project])).stdout).toMatch(/is private/)
    const outside = await json(home, ["search", "invoice"])
    expect(outside.results).toEqual([])
    expect(outside.notes).toContain("Not shown: 1 match in private projects.")
    expect((await json(home, ["list"])).conversations).toEqual([])
    expect((await warmDex(home, ["show", "55555555"])).stderr).toMatch(/private project/)
    expect((await warmDex(home, ["private", project, "--off"])).stdout).toMatch(/no longer private/)
    expect((await json(home, ["search", "invoice"])).results.length).toBe(1)
  })
})

describe("dex doctor, stats and sources", () => {
  test("finds everything undamaged, and explains Claude Code's retention", async () => {
    const report = await json(await synced(), ["doctor"])
    expect(report.ok).toBe(true)
    expect(report.checks.map((check: { name: string }) => check.name)).toEqual([
      "dex",
      "home",
      "history",
      "index",
      "sync",
      "claude_code",
      "retention",
    ])
    expect(report.checks.at(-1).message).toMatch(/deletes transcripts after 30 days/)
  })

  test("says how to repair a damaged index and a damaged history", async () => {
    const home = await synced()
    damage(join(home, ".dex", "history.db"))
    const run = await warmDex(home, ["doctor"])
    expect(run.code).toBe(1)
    expect(run.stdout).toMatch(/problem +history: history.db is damaged/)
    expect(run.stdout).toMatch(/→ dex doctor --repair/)
  })

  test("counts what is stored", async () => {
    const stats = await json(await synced(), ["stats"])
    expect(stats).toMatchObject({
      total_conversations: 2,
      total_messages: 14,
      sources: { claude_code: 3 },
      kinds: { person: 2, automation: 1 },
      projects: ["/code/api", "/code/web"],
    })
    expect(stats.disk_bytes).toBeGreaterThan(0)
  })

  test("reports the session in which it is run", async () => {
    const home = await synced()
    const run = await warmDex(home, ["stats", "--json"], {
      CLAUDE_CODE_SESSION_ID: "11111111-1111-4111-8111-111111111111",
    })
    expect(JSON.parse(run.stdout).session_id).toBe(AUTH)
  })
})

describe("the command line", () => {
  test("prints its version and its help", async () => {
    const home = tempDir()
    expect((await dex(home, ["--version"])).stdout).toMatch(/^dex \d+\.\d+\.\d+\n$/)
    expect((await warmDex(home, ["--help"])).stdout).toMatch(/search +Find past conversations/)
    expect((await warmDex(home, ["search", "--help"])).stdout).toMatch(/-n, --limit N/)
    expect(readdirSync(home)).toEqual([])
  })

  test("says what is wrong with a command, an option or a value, and what is valid", async () => {
    const home = tempDir()
    expect(await warmDex(home, ["serach"])).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/no command "serach"/),
    })
    expect((await warmDex(home, ["list", "--colour"])).stderr).toMatch(/has no option --colour. See: dex list --help/)
    expect((await warmDex(home, ["list", "--limit", "many"])).stderr).toMatch(/--limit needs a whole number/)
    expect((await warmDex(home, ["list", "--limit", "0"])).stderr).toMatch(/--limit must be at least 1/)
    expect((await warmDex(home, ["list", "-s", "vim"])).stderr).toMatch(
      /No agent is called ".*"\. The agents are: claude_code/,
    )
    expect((await warmDex(home, ["search"])).stderr).toMatch(
      /A search needs words, or at least a file.*For example: dex search "refresh/,
    )
  })

  test("a first run finds the agents, reads them and says what to try", async () => {
    const home = tempDir()
    smallHome(home)
    const run = await warmDex(home, [])
    expect(run.code).toBe(0)
    expect(run.stdout).toMatch(/claude_code +2 conversations \(and 1 automated\), 14 messages/)
    expect(run.stdout).toMatch(/Newest\n {2}1 .*The sidebar[\s\S]*Try\n {2}dex show \S+\n {2}dex search sidebar\n/)
    const empty = await warmDex(tempDir(), [])
    expect(empty).toMatchObject({ code: 1, stdout: expect.stringMatching(/No conversations were found yet/) })
  })

  test("lets only the owner read its files", async () => {
    const home = await synced()
    for (const words of [["list"], ["search", "mutex"], ["fix", "mutex"], ["note", "quokka"], ["suggest"], ["usage"]])
      await warmDex(home, words)
    await warmDex(home, ["backup", join(home, ".dex", "backup.db")])
    const dex = join(home, ".dex")
    const modes = ["", ...readdirSync(dex, { recursive: true, encoding: "utf8" })].map((name) => {
      const found = statSync(join(dex, name))
      return [name, (found.mode & 0o777).toString(8), found.isDirectory() ? "700" : "600"]
    })
    expect(modes.map(([name]) => name)).toEqual(expect.arrayContaining(["history.db", "suggest.db"]))
    expect(modes.filter(([, mode, wanted]) => mode !== wanted)).toEqual([])
  })

  test("prints no control sequence from a transcript, in text or in JSON", async () => {
    const home = tempDir()
    const hostile =
      "\u001b[2J\u001b]0;owned\u0007 \u001b]8;;http://evil.test\u001b\\link\u001b]8;;\u001b\\ \u009b31m \u202egnp.exe zebra \u0000 \r overwritten \u{e0041}"
    claudeSession(home, {
      id: "66666666-6666-4666-8666-666666666666",
      start: "2026-11-01T00:00:00Z",
      title: hostile,
      turns: [{ user: hostile }, { assistant: `answer ${hostile}` }],
    })
    await syncHome(home)
    for (const args of [
      ["search", "zebra"],
      ["list"],
      ["show", "66666666", "--format", "full"],
      ["show", "66666666", "--format", "outline"],
      ["search", "zebra", "--json"],
      ["show", "66666666", "--json"],
    ]) {
      const run = await warmDex(home, args)
      expect(run.stdout).toContain("zebra")
      expect([args, /[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]/.test(run.stdout)]).toEqual([
        args,
        false,
      ])
    }
  })

  test.each(["bash", "zsh", "fish"])("writes completions for %s", async (shell) => {
    const run = await warmDex(tempDir(), ["completions", shell])
    expect(run.code).toBe(0)
    expect(run.stdout).toContain("max-tokens")
  })
})

function damage(path: string): void {
  const bytes = readFileSync(path)
  for (let at = 4096; at < bytes.length; at += 512) bytes.fill(0x5a, at, at + 64)
  writeFileSync(path, bytes)
}
