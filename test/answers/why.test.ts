import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, test } from "vitest"
import { shortenToOneMinute } from "../../src/answers/why-page.ts"
import { connect } from "../mcp/client.ts"
import { call, putSession, writer } from "../support/claude-code.ts"
import { modelServer } from "../support/model-server.ts"
import { makeRepository } from "../support/repository.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome, warmDex } from "../support/warm.ts"

const ID = "11111111-2222-4333-8444-555555555555"
const REF = `claude_code:${ID}`
const LINES = Array.from({ length: 12 }, (_, i) => `\tconst quokka${i} = waitFor("quokka", ${i * 7}, options.kept${i})`)

const home = sharedTempDir()
const repository = makeRepository(join(home, "shop"))
const { folder } = repository
let made = ""
const OTHER = "22222222-2222-4333-8444-555555555555"
let changed = ""

beforeAll(async () => {
  repository.git("commit", "-q", "--allow-empty", "-m", "start")
  const told = writer({ sessionId: ID, cwd: folder }, "q")
  told.prompt("Orders are lost when the queue is restarted, please find out why and repair that")
  told.prompt("we should always store the queue in Postgres")
  const filePath = join(folder, "src/queue.ts")
  told.answer("m_1", [call("e1", "Write", { file_path: filePath, content: LINES.join("\n") })])
  const patch = {
    oldStart: 1,
    oldLines: 0,
    newStart: 1,
    newLines: LINES.length,
    lines: LINES.map((line) => `+${line}`),
  }
  told.result("e1", "done", { toolUseResult: { type: "create", filePath, structuredPatch: [patch] } })
  told.answer("m_2", [call("t1", "Bash", { command: "npm test 2>&1" })])
  const passed = "Tests  3 passed (3)"
  told.result("t1", passed, { toolUseResult: { stdout: passed, stderr: "" } })
  mkdirSync(join(folder, "src"), { recursive: true })
  writeFileSync(filePath, `${LINES.join("\n")}\n`)
  repository.git("add", "-A")
  repository.gitAt("2026-01-02T10:20:00Z", "commit", "-q", "-m", "queue: survives a restart")
  made = repository.git("rev-parse", "HEAD")
  const printed = `[main ${made.slice(0, 7)}] queue: survives a restart\n 1 file changed`
  told.answer("m_3", [call("c1", "Bash", { command: "git commit -am 'queue: survives a restart'" })])
  told.result("c1", printed, { toolUseResult: { stdout: printed, stderr: "" } })
  putSession(home, told.records, ID)
  putSession(home, changedByHand(), OTHER)
  await syncHome(home)
})

/** A commit of lines that a conversation wrote, three of which the person changed before committing. */
function changedByHand() {
  const lines = LINES.map((line) => line.replaceAll("quokka", "wombat"))
  const told = writer({ sessionId: OTHER, cwd: folder }, "w")
  told.prompt("Wombats wait for ever, please write that anew")
  const filePath = join(folder, "src/wombat.ts")
  told.answer("m_1", [call("e1", "Write", { file_path: filePath, content: lines.join("\n") })])
  const patch = { oldStart: 1, oldLines: 0, newStart: 1, newLines: 12, lines: lines.map((line) => `+${line}`) }
  told.result("e1", "done", { toolUseResult: { type: "create", filePath, structuredPatch: [patch] } })
  const kept = lines.map((line, i) => ([3, 5, 8].includes(i) ? `\tlet counted${i} = 0 // by hand` : line))
  writeFileSync(filePath, `${kept.join("\n")}\n`)
  repository.git("add", "-A")
  repository.gitAt("2026-01-02T10:30:00Z", "commit", "-q", "-m", "wombat: does not wait for ever")
  changed = repository.git("rev-parse", "HEAD")
  return told.records
}

const why = (...args: string[]) => warmDex(home, ["why", ...args], {}, folder)

describe("dex why", () => {
  test("says for a commit what was asked, decided and tested, each with its message", async () => {
    const { stdout, stderr, code } = await why(made)
    expect(code).toBe(0)
    expect(stdout).toMatch(/proved, 12 of 12 lines/)
    expect(stdout).toMatch(/Asked\n +“Orders are lost[^”]+” #\d+\n/)
    expect(stdout).toMatch(/Decided\n +“we should always store the queue in Postgres” #\d+\n/)
    expect(stdout).toMatch(/Tests\n +npm test: passed #\d+\n/)
    expect(stderr).toContain(`dex show ${REF}#`)
  })

  test("says the same for a line, and for a range of commits", async () => {
    const answers = await Promise.all(
      [["src/queue.ts:3"], [`${made}~1..${made}`]].map(async (args) =>
        JSON.parse((await why(...args, "--json")).stdout),
      ),
    )
    for (const { conversations } of answers) expect(conversations).toMatchObject([{ ref: REF, level: "proved" }])
    expect(answers.map(({ lines }) => lines)).toEqual([1, 12])
  })

  test("prints Markdown with complete refs for a review", async () => {
    const { stdout } = await why(made, "--pr")
    expect(stdout).toMatch(/^## Why\n\n- [0-9a-f]{10} queue: survives a restart\n/)
    expect(stdout).toMatch(new RegExp(`\\*\\*Asked\\*\\*\n\n- “Orders are lost.*” \\(\`${REF}#\\d+\`\\)`))
  })

  test("says how many lines are proved and how many only likely, as blame does", async () => {
    const blame = JSON.parse((await warmDex(home, ["blame", changed, "--json"], {}, folder)).stdout)
    expect(blame).toMatchObject({ total: 12, proved: 9, likely: 3 })
    const told = JSON.parse((await why(changed, "--json")).stdout)
    expect(told.conversations).toMatchObject([{ level: "proved", lines: 12, proved: 9, likely: 3 }])
    for (const args of [[changed], [changed, "--pr"]])
      expect((await why(...args)).stdout).toContain("9 proved and 3 likely of 12 lines")
    const client = await connect(home, { cwd: folder })
    const { result } = await client.request("tools/call", { name: "dex_why", arguments: { target: changed } })
    expect(result!.content[0]!.text).toContain(`${OTHER} 9 proved and 3 likely of 12 lines: `)
  })

  test("says if nobody is known to have written the lines, and what to name instead of a folder", async () => {
    const first = repository.git("rev-list", "--max-parents=0", "HEAD")
    expect(await why(first)).toMatchObject({ code: 1, stdout: "", stderr: expect.stringContaining("is known to have") })
    expect(await why("src")).toMatchObject({ code: 2, stderr: expect.stringContaining("is a folder") })
  })

  test("agents get it as dex_why, without a model", async () => {
    const client = await connect(home, { cwd: folder })
    const { result } = await client.request("tools/call", { name: "dex_why", arguments: { target: "src/queue.ts:3" } })
    const { text } = result!.content[0]!
    expect(text).toContain("1 of 1 lines are known.")
    expect(text).toMatch(/ {2}Decided\n {4}“we should always store the queue in Postgres” #\d+/)
  })

  test("with a model it is prose, and a sentence that names something that is in no passage is left out", async () => {
    const server = await modelServer(() => [
      { text: "The queue is stored in Postgres [2]. It was written for Kubernetes in src/made-up.ts [1]." },
    ])
    const env = { DEX_LLM_PROVIDER: server.url, DEX_LLM_MODEL: "scripted" }
    const { stdout } = await warmDex(home, ["why", made, "--json"], env, folder)
    const { answer } = JSON.parse(stdout)
    expect(answer.text).toBe("The queue is stored in Postgres [2].")
    expect(answer.sources).toEqual([{ n: 2, ref: expect.stringContaining(REF) }])
    expect(JSON.parse((await warmDex(home, ["why", made, "--json", "--facts"], env, folder)).stdout).answer).toBe(
      undefined,
    )
  })
})

test("however long a conversation is, the explanation can be read in a minute, and the requests are kept", () => {
  const said = (count: number) =>
    Array.from({ length: count }, (_, i) => ({ ref: `${REF}#${i}`, kind: "said", text: "word ".repeat(200) }))
  const one = {
    ...{
      ref: REF,
      title: "t",
      source: "claude_code",
      date: "",
      level: "proved" as const,
      lines: 1,
      proved: 1,
      likely: 0,
    },
    ...{ asked: said(2), decided: said(4), rejected: said(2), tests: [], open: said(3) },
  }
  const shown = shortenToOneMinute([one, one, one])
  const words = JSON.stringify(shown.map(({ asked, decided, rejected, open }) => [asked, decided, rejected, open]))
  expect(words.match(/\bword\b/g)!.length).toBeLessThanOrEqual(300)
  expect(shown[0]!.asked).toHaveLength(2)
  expect(shown.length).toBeLessThan(3)
})
