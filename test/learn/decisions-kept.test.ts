import { mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { KNOWLEDGE_FILE } from "../../src/core/formats.ts"
import type { DecisionFilter, MadeDecision } from "../../src/store/knowledge/decisions.ts"
import { type Knowledge, openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { call, putSession, type Writer, writer } from "../support/claude-code.ts"
import { openKnowledgeFile } from "../support/inside.ts"
import { makeRepository } from "../support/repository.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const FIRST = "11111111-2222-4333-8444-555555555555"
const SECOND = "22222222-2222-4333-8444-555555555555"
const ELSEWHERE = "33333333-2222-4333-8444-555555555555"
const PROJECT = "/home/dev/proj"

type Session = [id: string, cwd: string, day: number, tell: (session: Writer) => void]

async function home(...sessions: Session[]): Promise<string> {
  const at = tempDir()
  for (const [id, cwd, day, tell] of sessions) {
    const session = writer({ sessionId: id, cwd }, id.slice(0, 3))
    tell(session)
    const records = session.records.map((record) => ({
      ...record,
      timestamp: String(record.timestamp).replace("2026-01-02", `2026-01-0${day}`),
    }))
    putSession(at, records, id)
  }
  await syncHome(at)
  return at
}

function edits(session: Writer, file: string): void {
  const filePath = `${PROJECT}/${file}`
  session.answer(`m_${file}`, [call(file, "Edit", { file_path: filePath, old_string: "a", new_string: "b" })])
  session.result(file, "The file was updated.", { toolUseResult: { filePath, structuredPatch: [] } })
}

const enabled: Session = [
  FIRST,
  PROJECT,
  2,
  (session) => {
    session.prompt("telemetry should be enabled by default for quokkas, see `sendMetrics`")
    edits(session, "src/metrics/send.ts")
    session.prompt("thanks a lot")
    edits(session, "src/late.ts")
  },
]
const disabled: Session = [
  SECOND,
  PROJECT,
  3,
  (session) => session.prompt("we want telemetry disabled by default for quokkas"),
]
const elsewhere: Session = [
  ELSEWHERE,
  "/home/dev/other",
  4,
  (session) => session.prompt("we should always sort the wombat table by name"),
]

const decisions = async (at: string, ...args: string[]) => {
  const { code, stdout } = await dex(at, ["decisions", ...args, "--json"])
  const { decisions: found, ...rest } = JSON.parse(stdout) as {
    decisions: { quote: string; ref: string; superseded_by?: { quote: string } }[]
    total: number
    notes: string[]
  }
  return { code, quotes: found.map(({ quote }) => quote.slice(0, 24)), found, ...rest }
}
const TO_DISABLED = "we want telemetry disabled by default for quokkas".slice(0, 24)
const TO_ENABLED = "telemetry should be enabled by default".slice(0, 24)
const SORTED = "we should always sort the wombat table".slice(0, 24)

test("lists decisions newest first, and what reversed them", async () => {
  const at = await home(enabled, disabled, elsewhere)
  const all = await decisions(at, "--all")
  expect(all).toMatchObject({ code: 0, total: 3, quotes: [SORTED, TO_DISABLED, TO_ENABLED] })
  expect(all.found[2]).toMatchObject({
    kind: "said",
    by: "person",
    date: expect.stringContaining("2026-01-02"),
    ref: `claude_code:${FIRST}#1`,
    project: PROJECT,
    files: ["src/metrics/send.ts"],
    superseded_by: {
      quote: "we want telemetry disabled by default for quokkas",
      date: expect.stringContaining("2026-01-03"),
      ref: `claude_code:${SECOND}#1`,
    },
  })
  expect(all.found[1]!.superseded_by).toBeUndefined()

  const printed = await dex(at, ["decisions", "--all"])
  expect(printed.stdout).toContain("superseded 2026-01-03 10:00: we want telemetry disabled by default for quokkas")
  expect(printed.stdout).toContain(`said 2026-01-02 10:00 · proj · claude_code:${FIRST}#1`)
})

test("finds them by project, file, symbol and words", async () => {
  const at = await home(enabled, disabled, elsewhere)
  expect(await decisions(at, "--project", "other")).toMatchObject({ quotes: [SORTED] })
  expect(await decisions(at)).toMatchObject({ code: 1, quotes: [], total: 0 })
  for (const file of ["src/metrics/send.ts", "metrics/send.ts", "send.ts"])
    expect(await decisions(at, "--all", "--file", file)).toMatchObject({ quotes: [TO_ENABLED] })
  for (const file of ["end.ts", "src/late.ts", "src/metrics"])
    expect(await decisions(at, "--all", "--file", file)).toMatchObject({ code: 1, quotes: [] })
  for (const symbol of ["sendMetrics", "sendmetrics()"])
    expect(await decisions(at, "--all", "--symbol", symbol)).toMatchObject({ quotes: [TO_ENABLED] })
  expect(await decisions(at, "--all", "--symbol", "Metrics")).toMatchObject({ quotes: [] })
  expect(await decisions(at, "telemetry", "disabled", "--all")).toMatchObject({ quotes: [TO_DISABLED] })
  expect(await decisions(at, '"wombat" OR telemetry*', "--all")).toMatchObject({ quotes: [] })
  expect(await decisions(at, "--all", "--limit", "1")).toMatchObject({
    quotes: [SORTED],
    total: 3,
    notes: ["1 to 1 of 3. For more: --offset 1"],
  })
  const pages: unknown[] = []
  for (const offset of ["1", "2"]) {
    const { quotes, notes } = await decisions(at, "--all", "--limit", "1", "--offset", offset)
    pages.push([quotes, notes])
  }
  expect(pages).toEqual([
    [[TO_DISABLED], ["2 to 2 of 3. For more: --offset 2"]],
    [[TO_ENABLED], ["3 to 3 of 3."]],
  ])
  expect(await decisions(at, "--all", "--offset", "3")).toMatchObject({ code: 1, quotes: [], total: 3 })
})

test("a file is found by its path in the project, from any folder", async () => {
  const at = tempDir()
  const project = join(at, "proj")
  mkdirSync(join(project, "src/metrics"), { recursive: true })
  mkdirSync(join(project, ".git"))
  const session = writer({ cwd: project })
  session.prompt("telemetry should be enabled by default for quokkas, see src/metrics/send.ts")
  putSession(at, session.records)
  await syncHome(at)
  const inside = (cwd: string, file: string) => dex(at, ["decisions", "--file", file, "--json"], {}, cwd)
  for (const [cwd, file] of [
    [project, "src/metrics/send.ts"],
    [join(project, "src"), "metrics/send.ts"],
    [join(project, "src"), join(project, "src/metrics/send.ts")],
  ] as const)
    expect(await inside(cwd, file)).toMatchObject({ code: 0 })
  expect(await inside(join(project, "src"), "send.ts")).toMatchObject({ code: 1 })
})

test("a private project's decisions are listed only inside it, and counted elsewhere", async () => {
  const at = await home(enabled, elsewhere)
  await dex(at, ["private", "/home/dev/other"])
  expect(await decisions(at, "--all")).toMatchObject({
    quotes: [TO_ENABLED],
    total: 1,
    notes: ["Not shown: 1 decision in private projects."],
  })
  expect(await decisions(at, "--project", "/home/dev/other")).toMatchObject({ code: 1, quotes: [] })
})

test("forgotten decisions are in no byte of the file, and reverse nothing", async () => {
  const at = await home(enabled, disabled)
  expect((await decisions(at, "--all")).found[1]!.superseded_by).toBeDefined()
  expect(await dex(at, ["forget", `claude_code:${SECOND}`, "--yes"])).toMatchObject({ code: 0 })
  const left = await decisions(at, "--all")
  expect(left.quotes).toEqual([TO_ENABLED])
  expect(left.found[0]!.superseded_by).toBeUndefined()
  const knowledge = openKnowledge(join(at, ".dex", KNOWLEDGE_FILE))
  expect(openKnowledgeFile(knowledge).prepare("select count(reversed_by) from decision").pluck().get()).toBe(0)
  knowledge.close()

  const bytes = () => {
    const dir = join(at, ".dex")
    const files = readdirSync(dir).filter((name) => name.startsWith(KNOWLEDGE_FILE))
    return Buffer.concat(files.map((name) => readFileSync(join(dir, name)))).toString("latin1")
  }
  expect(bytes()).toContain("quokka")
  expect(bytes()).not.toContain("we want telemetry disabled")
  await dex(at, ["forget", `claude_code:${FIRST}`, "--yes"])
  for (const word of ["quokka", "sendmetrics", "sendMetrics", "send.ts"]) expect(bytes()).not.toContain(word)
})

test("a project's decision records count, other documents do not", async () => {
  const at = await home([FIRST, PROJECT, 2, (session) => session.prompt("hello there")])
  const project = join(at, "code")
  mkdirSync(join(project, "docs/adr"), { recursive: true })
  mkdirSync(join(project, ".git"))
  writeFileSync(
    join(project, "docs/adr/0004-queue.md"),
    "# 4. Use a queue\n\nStatus: Accepted\n\n## Context\n\nSlow.\n\n## Decision\n\nInvoices go into a queue.\n",
  )
  writeFileSync(join(project, "docs/guide.md"), "# Guide\n\n## Decision\n\nWe should always say hello.\n")
  const there = (...args: string[]) => dex(at, args, {}, project)
  expect(await there("docs", "add", join(project, "docs"))).toMatchObject({ code: 0 })
  const { stdout } = await there("decisions", "--json")
  expect(JSON.parse(stdout)).toMatchObject({
    decisions: [{ kind: "adr", quote: "4. Use a queue\nInvoices go into a queue.", by: "document" }],
  })
})

test("no control character of a transcript reaches the terminal", async () => {
  const at = await home([
    FIRST,
    PROJECT,
    2,
    (session) => session.prompt("we should always paint the wombat\u001b[31m table red\u0007 by name"),
  ])
  const { stdout } = await dex(at, ["decisions", "--all"])
  expect(stdout).toContain("wombat")
  expect(stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f]/)
})

test("words after a web page are marked, and a person's decision after it is kept", async () => {
  const at = await home([
    FIRST,
    PROJECT,
    2,
    (session) => {
      session.prompt("we should always sort the wombat table by name")
      session.answer("m_w", [call("w1", "WebFetch", { url: "https://example.org" })])
      session.result("w1", "a page")
      session.prompt("we should always sort the quokka table by size")
    },
  ])
  await dex(at, ["decisions", "--all"])
  const knowledge = openKnowledge(join(at, ".dex", KNOWLEDGE_FILE))
  const filter: DecisionFilter = { project: PROJECT, exactly: true, limit: 10 }
  const own = knowledge.decisions.knownDecisions(filter).decisions.map(({ ref, is_own_words }) => [ref, is_own_words])
  expect(own).toEqual([
    [`claude_code:${FIRST}#4`, false],
    [`claude_code:${FIRST}#1`, true],
  ])
  knowledge.close()
})

test("breaking commits and reverts are listed once each, and removed when the history is rewritten", async () => {
  const at = tempDir()
  const project = join(at, "api")
  mkdirSync(join(project, "src"), { recursive: true })
  const { git } = makeRepository(project)
  const commit = (subject: string, body = "") => {
    writeFileSync(join(project, "src/totals.ts"), `// ${subject}\n`)
    git("add", ".")
    git("commit", "-q", "-m", subject, ...(body === "" ? [] : ["-m", body]))
    return git("rev-parse", "HEAD")
  }
  commit("totals: the first one")
  const breaking = commit("feat(totals)!: quokka totals are cents", "BREAKING CHANGE: `totalOf` gives whole cents.")
  commit("feat!: drop the wombat table")
  const revert = commit('Revert "feat(totals)!: quokka totals are cents"', "It broke every invoice.")
  const told = writer({ sessionId: FIRST, cwd: project }, "c")
  told.prompt("Go on")
  told.answer("m_c", [call("c1", "Bash", { command: "git commit -am 'feat!: drop the wombat table'" })])
  told.result("c1", "[main 1a2b3c4] feat!: drop the wombat table\n 1 file changed", {
    toolUseResult: { stdout: "[main 1a2b3c4] feat!: drop the wombat table\n 1 file changed", stderr: "" },
  })
  putSession(at, told.records, FIRST)
  const run = (...args: string[]) => dex(at, args, {}, project)
  const decisions = async (...args: string[]) =>
    (JSON.parse((await run("decisions", "--json", ...args)).stdout) as { decisions: Record<string, unknown>[] })
      .decisions
  await run("sync")
  expect(await decisions()).toMatchObject([{ kind: "breaking", by: "agent" }])

  await run("suggest") // opts the project in
  const refs = async (...args: string[]) => (await decisions(...args)).map(({ ref }) => ref)
  expect(await decisions("quokka")).toMatchObject([
    { kind: "revert", by: "commit", ref: `git:${revert}`, files: ["src/totals.ts"] },
    {
      kind: "breaking",
      quote: "feat(totals)!: quokka totals are cents\n`totalOf` gives whole cents.",
      ref: `git:${breaking}`,
      superseded_by: { ref: `git:${revert}` },
    },
  ])
  expect(await refs("wombat")).toEqual([`claude_code:${FIRST}#2`])
  expect(await refs("--symbol", "totalOf")).toEqual([`git:${breaking}`])
  expect(await refs("--file", "src/totals.ts")).toEqual([`git:${revert}`, `git:${breaking}`])
  const { stderr } = await run("show", `git:${breaking}`)
  expect(stderr).toContain(`git show ${breaking}`)

  git("reset", "-q", "--hard", breaking)
  expect(await refs("quokka")).toEqual([`git:${breaking}`])
})

test("while reversals are computed, others can write, and nothing that they write is missed", () => {
  const path = join(tempDir(), KNOWLEDGE_FILE)
  const [ours, theirs] = [openKnowledge(path), openKnowledge(path)]
  onTestFinished(() => {
    ours.close()
    theirs.close()
  })
  const decide = (db: Knowledge, key: string) => {
    const ref = { source: "claude_code" as const, id: key }
    const id = db.conversations.renewConversation({ name: key, ref, root: key, project: PROJECT, kind: "person" })
    const said = { kind: "said" as const, quote: key, number: 1, files: [], symbols: [], subject: [key] }
    db.decisions.saveDecisions(id, PROJECT, [{ key, ...said, origin: "person" }])
  }
  /** Each decision reverses the one before it. */
  const chained = (made: MadeDecision[]) => new Map(made.slice(1).map(({ key }, i) => [made[i]!.key, key]))
  const kept = () => openKnowledgeFile(ours).prepare("select key, reversed_by from decision order by id").raw().all()
  const stale = () => openKnowledgeFile(ours).prepare("select count(*) from decision_stale").pluck().get()

  decide(ours, "a")
  decide(ours, "b")
  const given: number[] = []
  ours.decisions.renewReversals((made) => {
    given.push(made.length)
    if (given.length === 1) decide(theirs, "c")
    return chained(made)
  })
  expect(given).toEqual([2, 3])
  expect(kept()).toEqual([
    ["a", "b"],
    ["b", "c"],
    ["c", null],
  ])
  expect(stale()).toBe(0)

  // Another process was first, with the same result; then something came that nobody has processed yet.
  decide(ours, "d")
  ours.decisions.renewReversals((made) => {
    if (stale() === 1) theirs.decisions.renewReversals(chained)
    return chained(made)
  })
  expect([kept()[2], stale()]).toEqual([["c", "d"], 0])
  decide(ours, "e")
  ours.decisions.renewReversals((made) => {
    if (made.length === 5) {
      theirs.decisions.renewReversals(chained)
      decide(theirs, "f")
    }
    return chained(made)
  })
  expect([kept()[4], stale()]).toEqual([["e", "f"], 0])

  // If it changes each time, it is left for the next time.
  let more = 0
  decide(ours, "g")
  ours.decisions.renewReversals((made) => {
    decide(theirs, `more ${++more}`)
    return chained(made)
  })
  expect(stale()).toBe(1)
  theirs.decisions.renewReversals(chained)
  expect([kept().at(-2), stale()]).toEqual([["more 2", "more 3"], 0])
})

test("a decision record is superseded by one with a later name, whenever their files were written", async () => {
  const at = await home([FIRST, PROJECT, 2, (session) => session.prompt("hello there")])
  const project = join(at, "code")
  mkdirSync(join(project, "docs/adr"), { recursive: true })
  mkdirSync(join(project, ".git"))
  const record = (name: string, days: number, day: number, mark = "") => {
    const path = join(project, "docs/adr", name)
    writeFileSync(
      path,
      `# Sessions\n\nStatus: Accepted\n\n## Decision\n\nSessions are kept in the shared cache of every region for at most ${days} days${mark}\n`,
    )
    utimesSync(path, new Date(2026, 0, day), new Date(2026, 0, day))
  }
  record("9-sessions.md", 30, 1)
  record("10-sessions.md", 90, 2)
  const run = (...args: string[]) => dex(at, args, {}, project)
  await run("docs", "add", join(project, "docs"))
  const told = async () => {
    const { stdout } = await run("decisions", "--all", "--json")
    const { decisions } = JSON.parse(stdout) as { decisions: { ref: string; superseded_by?: { ref: string } }[] }
    const name = (ref: string | undefined) => /(\d+)-sessions/.exec(ref ?? "")?.[1]
    return Object.fromEntries(decisions.map(({ ref, superseded_by }) => [name(ref), name(superseded_by?.ref)]))
  }
  expect(await told()).toEqual({ 9: "10", 10: undefined })
  record("9-sessions.md", 30, 3, ".")
  await run("sync")
  expect(await told()).toEqual({ 9: "10", 10: undefined })
})

test("a commit that reverts another marks the decisions for that commit, and not those for the next one", async () => {
  const at = tempDir()
  const project = join(at, "api")
  mkdirSync(join(project, "src"), { recursive: true })
  const { git } = makeRepository(project)
  const decided = writer({ sessionId: FIRST, cwd: project }, "d")
  for (const [i, [words, file, subject]] of [
    ["Let's use Redis for the quokka queue", "queue.ts", "queue: wait in Redis"],
    ["Let's use cents for the wombat totals", "totals.ts", "totals: whole cents"],
  ].entries()) {
    const path = join(project, "src", file!)
    decided.prompt(words!)
    decided.answer(`m_${i}`, [call(`w${i}`, "Write", { file_path: path, content: `// ${subject}\n` })])
    decided.result(`w${i}`, "done", {
      toolUseResult: {
        type: "create",
        filePath: path,
        content: `// ${subject}\n`,
        structuredPatch: [],
        originalFile: null,
      },
    })
    writeFileSync(path, `// ${subject}\n`)
    git("add", ".")
    git("commit", "-q", "-m", subject!)
    const printed = `[main 1a2b3c${i}] ${subject}\n 1 file changed`
    decided.answer(`n_${i}`, [call(`c${i}`, "Bash", { command: `git commit -am '${subject}'` })])
    decided.result(`c${i}`, printed, { toolUseResult: { stdout: printed, stderr: "" } })
  }
  putSession(at, decided.records, FIRST)
  const run = (...args: string[]) => dex(at, args, {}, project)
  const reversedBy = async (words: string) => {
    const { decisions } = JSON.parse((await run("decisions", words, "--json")).stdout) as {
      decisions: { kind: string; superseded_by?: { ref: string } }[]
    }
    return decisions.filter(({ kind }) => kind === "said").map(({ superseded_by }) => superseded_by?.ref)
  }
  await run("sync")
  await run("suggest") // opts the project in
  expect(await reversedBy("quokka")).toEqual([undefined])

  git("revert", "--no-edit", "HEAD~1")
  expect(await reversedBy("quokka")).toEqual([`git:${git("rev-parse", "HEAD")}`])
  expect(await reversedBy("wombat")).toEqual([undefined])
})
