import { createHash } from "node:crypto"
import { once } from "node:events"
import { existsSync, mkdirSync, readdirSync, rmSync, watch, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { describe, expect, onTestFinished, test } from "vitest"
import { formatRef } from "../../src/core/ref.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { HistoryReader } from "../../src/store/history/store.ts"
import { openSqlite } from "../../src/store/sqlite/engine.ts"
import {
  confidenceInterval,
  maskedStore,
  newestConversations,
  queryOf,
  questionsOf,
  subjectMask,
} from "../../src/tools/eval/run.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { DEX, startDex } from "../support/dex.ts"
import { claudeSession, type Turn } from "../support/home.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

/** A home whose temporary folders can be inspected. */
async function synced(fill: (home: string) => void): Promise<string> {
  const home = tempDir()
  mkdirSync(join(home, "tmp"))
  mkdirSync(join(home, ".dex", "tmp"), { recursive: true, mode: 0o700 })
  fill(home)
  await syncHome(home)
  return home
}

/** Node keeps its compile cache in the temporary folder too. */
const ownTemp = (home: string) => ({ TMPDIR: join(home, "tmp"), NODE_DISABLE_COMPILE_CACHE: "1" })
const temporary = (home: string) => [join(home, "tmp"), join(home, ".dex", "tmp")].flatMap((dir) => readdirSync(dir))
const measured = (home: string, args: string[] = []) => dex(home, ["eval", "--mine", ...args], ownTemp(home))

async function json(home: string) {
  const run = await measured(home, ["--json"])
  expect(run.stderr).toBe("")
  return JSON.parse(run.stdout)
}

const idOf = (n: number) => `${String(n).padStart(8, "0")}-1111-4111-8111-111111111111`
const startOf = (n: number) => new Date(Date.UTC(2026, 9, 1) + n * 3_600_000).toISOString()

function commit(hash: string, subject: string): Turn {
  const input = { command: `git add -A && git commit -m "${subject}"`, description: subject }
  return { tool: { name: "Bash", input, output: `[main ${hash}] ${subject}\n 1 file changed, 2 insertions(+)` } }
}

/** A unique word. Its letters keep the stemmer from shortening it. */
const word = (question: number, n: number) => `q${String.fromCharCode(97 + n)}${question}zk`
const words = (question: number, ...numbers: number[]) => numbers.map((n) => word(question, n))
const subjectOf = (question: number) => words(question, 0, 1, 2, 3, 4).join(" ")

/** Commits whose words are in the conversation only in the commit itself, or also in the work before it. */
function committing(home: string, n: number, worksOn: (question: number) => string[]): void {
  for (let question = 0; question < n; question++) {
    const subject = subjectOf(question)
    claudeSession(home, {
      id: idOf(question),
      start: startOf(question),
      title: `About ${subject}`,
      turns: [
        { user: `Please look after task number ${question}` },
        { assistant: worksOn(question).join(" and then ") || "I did what was asked for." },
        commit(createHash("sha1").update(subject).digest("hex").slice(0, 7), subject),
        { tool: { name: "Bash", input: { command: "git log -1" }, output: words(question, 4, 3, 2, 1, 0).join(" ") } },
        { assistant: `Committed as "${subject}".` },
      ],
    })
  }
}

describe("dex eval --mine", () => {
  test("finds nothing by the commit's own words, because they are masked everywhere", async () => {
    const home = await synced((dir) => committing(dir, 12, () => []))
    const output = await json(home)
    expect(output.asked).toMatchObject({ commits: 12, questions: 12 })
    expect(output.figures).toEqual({ n: 12, hit_at_1: 0, hit_at_5: 0, mrr: 0, silent: 1 })
  })

  test("finds conversations by the work, and is silent when they are left out", async () => {
    const home = await synced((dir) => committing(dir, 12, (question) => words(question, 4, 2, 0, 3)))
    const output = await json(home)
    expect(output).toMatchObject({
      asked: { commits: 12, questions: 12 },
      searched: { conversations: 12, of_conversations: 12 },
      figures: { n: 12, hit_at_1: 1, hit_at_5: 1, mrr: 1, silent: 0 },
      silent_without_answer: 1,
    })
    expect(output.hit_at_5_interval.high).toBeCloseTo(1, 9)
    expect(output.hit_at_5_interval.low).toBeCloseTo(0.757, 2)
    const run = await measured(home)
    expect(run.code).toBe(0)
    expect(run.stdout).toMatch(/^hit@5 on your work: 100 % {2}\(95 % confidence: 76 % to 100 %\)\n/)
    expect(run.stdout).toMatch(/silent, left out +100 %/)
    expect(temporary(home)).toEqual([])
  })

  test("contacts no server, and says that it measured search by words only", async () => {
    const home = await synced((dir) => committing(dir, 12, (question) => words(question, 4, 2, 0, 3)))
    const requests: string[] = []
    const server = createServer((request, response) => {
      requests.push(request.url ?? "")
      response.end("{}")
    }).listen(0, "127.0.0.1")
    onTestFinished(() => void server.close())
    await once(server, "listening")
    const { port } = server.address() as AddressInfo
    const env = { DEX_EMBED_PROVIDER: "ollama", DEX_EMBED_URL: `http://127.0.0.1:${port}`, DEX_EMBED_MODEL: "m" }
    const run = await dex(home, ["eval", "--mine", "--json"], { ...ownTemp(home), ...env })
    expect(JSON.parse(run.stdout).notes.join()).toMatch(/Measured by words only/)
    expect(requests).toEqual([])
  })

  test("leaves the index and the history as they were", async () => {
    const home = await synced((dir) => committing(dir, 12, (question) => words(question, 4, 2, 0, 3)))
    const before = readdirSync(join(home, ".dex")).sort()
    await measured(home)
    expect(readdirSync(join(home, ".dex")).sort()).toEqual(before)
    expect((await dex(home, ["search", word(3, 4)])).stdout).toContain(subjectOf(3).slice(0, 10))
  })

  test("removes its folder when it is interrupted, and says that nothing was kept", async () => {
    const home = await synced((dir) => committing(dir, 150, (question) => words(question, 4, 2, 0, 3)))
    const made = once(watch(join(home, ".dex", "tmp")), "change")
    const child = startDex(home, ["eval", "--mine"], DEX, ownTemp(home))
    let stderr = ""
    child.stderr!.on("data", (text: Buffer) => {
      stderr += text
    })
    const ended = once(child, "close")
    await made
    child.kill("SIGINT")
    expect((await ended)[0]).toBe(2)
    expect(stderr).toMatch(/Stopping\.[\s\S]*Stopped\. Nothing was stored or changed\./)
    expect(temporary(home)).toEqual([])
  })

  test("removes its folder when it fails", async () => {
    const home = await synced((dir) => committing(dir, 12, () => []))
    const db = openSqlite(join(home, ".dex", "history.db"))
    db.exec("drop table touch")
    db.close()
    expect((await measured(home)).code).toBe(2)
    expect(temporary(home)).toEqual([])
    rmSync(join(home, ".dex", "tmp"), { recursive: true })
    writeFileSync(join(home, ".dex", "tmp"), "")
    const nowhere = await measured(home)
    expect(nowhere.code).toBe(2)
    expect(nowhere.stderr).toMatch(/^dex: No temporary folder could be created in .*\.dex.* set DEX_HOME/)
  })

  test("says what is needed if there are too few commits", async () => {
    const home = await synced((dir) => committing(dir, 3, () => []))
    const run = await measured(home)
    expect(run).toMatchObject({ code: 1, stdout: "" })
    expect(run.stderr).toMatch(/Of 3 commits made in your conversations, 3 can be searched for; a measurement needs 10/)
    expect(run.stderr).toMatch(/dex sync/)
    const empty = await measured(
      await synced((dir) => claudeSession(dir, { id: idOf(0), start: startOf(0), turns: [] })),
    )
    expect(empty.stderr).toMatch(/Of 0 commits made in your conversations, 0 can be searched for/)
  })

  test("says what to do without --mine, and before anything was read", async () => {
    const home = tempDir()
    expect(await dex(home, ["eval"])).toMatchObject({ code: 2, stderr: expect.stringMatching(/dex eval --mine/) })
    expect(await dex(home, ["eval", "--mine"])).toMatchObject({ code: 2, stderr: expect.stringMatching(/dex sync/) })
    expect(existsSync(join(home, ".dex"))).toBe(false)
  })

  test("neither searches nor mentions private projects outside of them", async () => {
    const home = await synced((dir) => committing(dir, 12, (question) => words(question, 4, 2, 0, 3)))
    await dex(home, ["private", "/code/api"])
    const run = await measured(home)
    expect(run.code).toBe(1)
    expect(run.stderr).toMatch(/Of 0 commits made in your conversations, 0 can be searched for/)
  })
})

test("weights that an older dex fitted are ignored, and config says so", async () => {
  const home = await synced((dir) => committing(dir, 1, (question) => words(question, 4, 2, 0, 3)))
  const query = ["search", subjectOf(0), "--json", "--explain"]
  const scores = async () => JSON.parse((await dex(home, query)).stdout).results.map((row: Hit) => row.score_parts)
  const before = await scores()
  writeFileSync(join(home, ".dex", "config.json"), '{"search.pairs":0,"search.neighbours":0,"search.decay":0}')
  expect(await scores()).toEqual(before)
  expect((await dex(home, ["config"])).stderr).toContain('there is no setting "search.decay". It was ignored.')
})
type Hit = { score_parts: { name: string; value: number }[] }

test("measures only the newest conversations of a history that is too large, with only their commits as questions", async () => {
  const store = openStore(join(tempDir(), "history.db"))
  const made = (hash: string, subject: string) =>
    textMessage(hash, "x", { effects: [{ type: "commit", hash, subject }] })
  for (const n of [1, 2, 3])
    await store.writeUnit(
      unit(`u${n}`, [
        conversation(`c${n}`, [textMessage(`k${n}`, "one"), made(`${n}a2b3c4`, `subject with many words ${n}`)], {
          ended_at: n,
        }),
      ]),
    )
  const { refs, searched } = await newestConversations(store, 4, "")
  expect(searched).toEqual({ conversations: 2, messages: 4, of_messages: 6, of_conversations: 3 })
  expect([...refs]).toEqual(["claude_code:c3", "claude_code:c2"])
  const { questions, left_out } = questionsOf(await store.commits({ limit: 10 }), refs, 10)
  expect(questions.map(({ gold }) => gold[0]!.id).sort()).toEqual(["c2", "c3"])
  expect(left_out.out_of_reach).toBe(1)
  store.close()
})

test("commands that commit, show the log or talk to the forge are blanked with their results, whatever the agent's tools are called", async () => {
  const store = openStore(join(tempDir(), "history.db"))
  const call = (tool: string, input: unknown, id?: string) =>
    textMessage(`${tool} ${JSON.stringify(input)}`, "", {
      role: "assistant",
      parts: [
        {
          type: "tool_call",
          tool,
          origin: "agent",
          text: typeof input === "string" ? input : JSON.stringify(input),
          ...(id !== undefined && { call_id: id }),
        },
      ],
    })
  const result = (id: string, text: string) =>
    textMessage(`result ${id}`, "", {
      role: "tool",
      parts: [{ type: "tool_result", text, origin: "local_tool", call_id: id, is_error: false }],
    })
  const blanked = [
    call("shell", { command: ["bash", "-lc", "cd api && git -c x=y commit -F -"] }, "c1"),
    call("exec_command", { cmd: "gh pr view 12" }, "c2"),
    call("Bash", "git show HEAD"),
    call("mcp__github__get_commit", { sha: "1a2b3c4" }, "c3"),
    result("c1", "what was committed"),
    result("c2", "what was reviewed"),
    result("c3", "what was fetched"),
  ]
  const unchanged = [
    call("Write", { file_path: "a.md", content: "run git commit at the end" }, "k1"),
    call("Bash", { command: "git status && npm run log" }, "k2"),
    result("k2", "nothing to commit"),
  ]
  const subject = "Keep one refresh at a time"
  await store.writeUnit(
    unit("u", [conversation("c", [...blanked, ...unchanged], { title: { text: `Done: ${subject}`, from: "agent" } })]),
  )
  const ref = { source: "claude_code" as const, id: "c" }
  const view = (): HistoryReader =>
    maskedStore(store, [{ ref: { ...ref, number: 1 }, hash: "", subject }], new Set([formatRef(ref)]))
  const texts = (await view().messages(ref)).map(({ parts }) => parts[0]!.text)
  expect(texts.slice(0, blanked.length)).toEqual(blanked.map(() => ""))
  expect(texts.slice(blanked.length)).toEqual(unchanged.map(({ parts }) => parts[0]!.text))
  const masked = view()
  const [alone] = await masked.messages(ref, [5])
  expect(alone).toMatchObject({ number: 5, parts: [{ text: "" }] })
  expect((await masked.messages(ref, [10, 6])).map(({ number, parts }) => [number, parts[0]!.text])).toEqual([
    [6, ""],
    [10, "nothing to commit"],
  ])
  expect((await masked.conversation(ref))?.title?.text).toBe("Done: ")
  store.close()
})

test("merges, wip, short and repeated subjects are not questions; any conversation that made a repeated one is an answer", () => {
  const row = (hash: string, subject: string, id = "a") => ({
    ref: { source: "codex" as const, id, number: 1 },
    hash,
    subject,
  })
  const { questions, left_out } = questionsOf(
    [
      row("f000000", "Fix the flaky hook test"),
      row("e000000", "fix lint"),
      row("d000000", "WIP on the parser rewrite"),
      row("c000000", "Merge branch 'main' into the-feature"),
      row("b000000", "merge duplicate rows of the index"),
      row("a000000", "fix the  flaky hook test", "b"),
      row("9000000", "one more than was asked for"),
    ],
    new Set(["codex:a", "codex:b"]),
    2,
  )
  expect(questions.map(({ subject, gold }) => [subject, gold.map(({ id }) => id)])).toEqual([
    ["Fix the flaky hook test", ["a", "b"]],
    ["merge duplicate rows of the index", ["a"]],
  ])
  expect(left_out).toEqual({ too_short: 1, merge_or_wip: 1 + 1, repeated: 1, out_of_reach: 0, beyond_limit: 1 })
})

test("removes subjects from text and from a tool's JSON, longest first, and nothing else", () => {
  const mask = subjectMask(["Fix the parser", "Fix the parser of dates (#12)", 'say "yes" at once', "short"])
  expect(mask("a Fix the parser of dates (#12) b")).toBe("a  b")
  expect(mask("a Fix the parser of dates b")).toBe("a  b")
  expect(mask("Fix the parserFix the parser.")).toBe(".")
  expect(mask('{"text":"\\nsay \\"yes\\" at once"}')).toBe('{"text":"\\n"}')
  expect(mask("fix the parser, short")).toBe("fix the parser, short")
})

test("a subject is searched for by its words, without its punctuation", () => {
  const query = queryOf('tool:Bash add --all "to be" -x done')
  expect(query).toMatchObject({ required: [], excluded: [], filters: {} })
  expect(query.words).toEqual(["tool", "bash", "add", "all", "x", "done"])
})

test("the interval of a share is Wilson's", () => {
  expect(confidenceInterval(0.5, 100).low).toBeCloseTo(0.4038, 3)
  expect(confidenceInterval(0.5, 100).high).toBeCloseTo(0.5962, 3)
})
