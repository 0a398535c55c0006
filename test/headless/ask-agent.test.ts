import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { beforeEach, describe, expect, onTestFinished, test } from "vitest"
import { agents } from "../../src/agents/registry.ts"
import { MODEL_AGENTS, MODEL_RUN_VARIABLE } from "../../src/core/model-run.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { onTerminal, shellOnTerminal } from "../integrations/terminal.ts"
import { DEX, dex as dexAlone, startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { isAlive } from "../support/processes.ts"
import { claudeAnswer, printScript, standIn } from "../support/stand-in.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const ANSWER = "The zeppelin test needs port 8080 [1]."
const ASK = ["ask", "Which port does the zeppelin test need?"]
const ASK_FOR = [...ASK, "--use-case", "a test"]

let home: string
let path: string

beforeEach(async () => {
  home = tempDir()
  mkdirSync(join(home, "tmp"))
  path = standIn(
    home,
    "claude",
    `echo started >> ${home}/started\n${printScript(claudeAnswer(ANSWER), `${home}/input`)}`,
  )
  claudeSession(home, {
    id: "11111111-1111-4111-8111-111111111111",
    start: "2026-10-03T10:00:00Z",
    turns: [{ user: "CI is red" }, { assistant: "The zeppelin test needs port 8080." }],
  })
  await syncHome(home)
  await dex(home, ["config", "set", "llm.provider", "claude_code"])
})

const env = () => ({ PATH: path, TMPDIR: join(home, "tmp") })
const run = (...args: string[]) => dex(home, args, env())
const agree = () => dex(home, ["config", "set", "llm.allowed_agents", "claude_code"])
const offerAnswer = () => readFileSync(join(home, ".dex/agent-offered"), "utf8")
const config = () => JSON.parse(readFileSync(join(home, ".dex/config.json"), "utf8")) as Record<string, unknown>

test("the agents that can be used are those that the settings name", () => {
  const able = agents.filter(({ headless }) => headless !== undefined).map(({ source }) => source)
  expect(able.sort()).toEqual([...MODEL_AGENTS].sort())
})

describe("before the user has agreed", () => {
  test.each([
    ["ask", ASK],
    ["ask, as JSON", [...ASK, "--json"]],
    ["chat", ["chat", "Which port?"]],
    ["map", ["map", "ports"]],
    ["digest", ["digest", "--from", "2026-10-01"]],
    ["rules", ["rules"]],
  ])(
    "%s in a pipe refuses, says what would be sent to whom and how to agree, and starts nothing",
    async (name, args) => {
      if (name === "digest") {
        const now = new Date().toISOString()
        claudeSession(home, { id: "22222222-1111-4111-8111-111111111111", start: now, turns: [{ user: "again" }] })
        await syncHome(home)
      }
      const { code, stdout, stderr } = await run(...(name === "digest" ? ["digest"] : args))
      const message = stderr.replaceAll(/\s+/g, " ")
      expect({ code, stdout }).toEqual({ code: 2, stdout: "" })
      expect(message).toContain("would be sent to Anthropic")
      expect(message).toContain("dex config set llm.allowed_agents claude_code")
      expect(existsSync(join(home, "started"))).toBe(false)
    },
  )

  test("a dry run needs no consent: it sends nothing", async () => {
    expect(await run("map", "ports", "--dry-run")).toMatchObject({
      code: 0,
      stderr: expect.stringContaining("Nothing was sent"),
    })
    expect(existsSync(join(home, "started"))).toBe(false)
  })

  test("doctor names the agent and says that it waits for the user", async () => {
    const { checks } = JSON.parse((await run("doctor", "--json")).stdout)
    expect(checks.find(({ name }: { name: string }) => name === "model")).toMatchObject({
      status: "note",
      message: expect.stringMatching(/Claude Code.*You have not agreed/),
    })
    expect(existsSync(join(home, "started"))).toBe(false)
  })

  test("a terminal asks once; no sends nothing, and yes is stored", async () => {
    const no = await onTerminal(home, ASK_FOR, [[/from now on\?/, "n\r"]], 100, path)
    if (!no) return console.log("NOT RUN: consent on a terminal, which cannot be made here")
    expect(no.code).toBe(2)
    expect(no.screen).toContain("Nothing was sent")
    expect(config()).not.toHaveProperty("llm.allowed_agents")
    expect(existsSync(join(home, "started"))).toBe(false)
    const yes = await onTerminal(home, ASK_FOR, [[/from now on\?/, "y\r"]], 100, path)
    expect(yes!.screen).toContain(ANSWER)
    expect(config()).toMatchObject({ "llm.allowed_agents": "claude_code" })
    const again = await onTerminal(home, ASK_FOR, [], 100, path)
    expect(again!.screen).toContain(ANSWER)
    expect(again!.screen).not.toContain("from now on?")
  })
})

describe("while no model is set up", () => {
  const OFFER = /write dex's answers\?/
  const DOWN = "\u001b[B"
  const wasStarted = () => existsSync(join(home, "started"))

  beforeEach(() => dex(home, ["config", "unset", "llm.provider"]))

  test("ask offers the installed agent once: no is remembered, and the quotes follow", async () => {
    const no = await onTerminal(home, ASK, [[OFFER, "\r"]], 100, path)
    if (!no) return console.log("NOT RUN: the offer on a terminal, which cannot be made here")
    expect(no.screen.replaceAll(/\s+/g, " ")).toContain("would be sent to Anthropic")
    expect(no.screen.replaceAll(/\s+/g, " ")).toContain("count towards your own plan")
    expect(no.screen).toContain("port 8080")
    expect(offerAnswer()).toBe("no")
    const again = await onTerminal(home, ASK, [], 100, path)
    expect(again!.screen).not.toMatch(OFFER)
    expect(again!.screen).toContain("No model is set up")
    expect(wasStarted()).toBe(false)
  })

  test("yes is stored for this agent only, and --quotes still answers without it", async () => {
    const purpose: [RegExp, string] = [/What is it for\?/, "a new test\r"]
    const yes = await onTerminal(home, ASK, [[OFFER, `${DOWN}\r`], purpose], 100, path)
    if (!yes) return console.log("NOT RUN: the offer on a terminal, which cannot be made here")
    expect(yes.screen).toContain(ANSWER)
    expect(readFileSync(join(home, "input"), "utf8")).toContain("Use case: a new test")
    expect(config()).toEqual({ "llm.provider": "claude_code", "llm.allowed_agents": "claude_code" })
    writeFileSync(join(home, "started"), "")
    const quotes = await run(...ASK, "--quotes", "--json")
    expect(JSON.parse(quotes.stdout)).toMatchObject({ extractive: true, answer: expect.stringContaining("“") })
    expect(readFileSync(join(home, "started"), "utf8")).toBe("")
  })

  test("never leaves out what mentions a model", async () => {
    const never = await onTerminal(home, ASK, [[OFFER, `${DOWN}${DOWN}\r`]], 100, path)
    if (!never) return console.log("NOT RUN: the offer on a terminal, which cannot be made here")
    expect(offerAnswer()).toBe("never")
    expect(JSON.parse((await run(...ASK, "--json")).stdout).note).toBeUndefined()
    expect(wasStarted()).toBe(false)
  })

  test("nothing is offered with --quotes, in a pipe, and to an agent on a terminal", async () => {
    const quotes = await onTerminal(home, [...ASK, "--quotes"], [], 100, path)
    if (!quotes) return console.log("NOT RUN: the offer on a terminal, which cannot be made here")
    expect(quotes.screen).not.toMatch(OFFER)
    expect((await run(...ASK)).stderr).not.toMatch(OFFER)
    const inAgent = await shellOnTerminal(home, ["export CLAUDECODE=1", `dex ${ASK[0]} '${ASK[1]}'`], [], path)
    expect(inAgent!.screen).toContain("port 8080")
    expect(inAgent!.screen).not.toMatch(OFFER)
    expect(config()).toEqual({})
  })
})

describe("once the user has agreed", () => {
  beforeEach(agree)

  test("ask, chat and doctor are answered, and the cost is shown", async () => {
    const answer = await run(...ASK)
    expect(answer).toMatchObject({ code: 0, stdout: expect.stringContaining(ANSWER) })
    expect(answer.stderr).toContain(
      "claude_code: 0 calls, 30 tokens read and 5 written; $0.0123 by the agent's own count.",
    )
    const chatted = await run("chat", "Which port does the zeppelin test need?")
    expect(chatted).toMatchObject({ code: 0, stdout: expect.stringContaining(ANSWER) })
    expect(chatted.stderr).toContain("$0.0123")
    expect(JSON.parse((await run(...ASK, "--json")).stdout).used).toMatchObject({
      model: "claude_code",
      cost_usd: 0.0123,
    })
    expect((await run("doctor")).stdout).toMatch(/claude_code answers/)
    expect((await run("config", "list")).stderr.replaceAll(/\s+/g, " ")).toContain("claude_code writes the answers")
    expect(readdirSync(join(home, "tmp")).filter((name) => name.startsWith("dex-model-run"))).toEqual([])
  })

  test("map, rules and digest read its JSON", async () => {
    const now = new Date().toISOString()
    const id = "22222222-1111-4111-8111-111111111111"
    claudeSession(home, { id, start: now, turns: [{ user: "always use port 0" }, { assistant: "I will." }] })
    await syncHome(home)
    const refs = [`claude_code:${id}#1`]
    const done = [{ text: "Use port 0", project: "api", refs }]
    const answers = {
      map: { items: [{ text: "Use port 0", refs }] },
      rules: { rules: [{ rule: "Use port 0", kind: "testing", refs }], contradictions: [] },
      digest: { done, decided: [], left_open: [] },
    }
    for (const [command, result] of Object.entries(answers)) {
      standIn(home, "claude", printScript(claudeAnswer(`\`\`\`json\n${JSON.stringify(result)}\n\`\`\``)))
      const { code, stdout, stderr } = await run(command, ...(command === "map" ? ["ports"] : []))
      expect({ code, stdout, stderr }).toMatchObject({ code: 0, stdout: expect.stringContaining("Use port 0") })
      expect(stderr).toMatch(/claude_code: \d requests?, .*\$0\.0\d+ by the agent's own count/)
    }
  })

  test("agent is the one that is installed, and consent to one is not consent to another", async () => {
    await dex(home, ["config", "set", "llm.provider", "agent"])
    expect(await run(...ASK)).toMatchObject({ code: 0, stdout: expect.stringContaining(ANSWER) })
    const other = standIn(join(home, "other"), "codex", "exit 1")
    const { code, stderr } = await dex(home, ASK, { PATH: other })
    expect(code).toBe(2)
    expect(stderr.replaceAll(/\s+/g, " ")).toContain("dex config set llm.allowed_agents claude_code,codex")
  })

  test("a model is passed on, and a temperature is refused", async () => {
    standIn(home, "claude", `echo "$@" > ${home}/args\n${printScript(claudeAnswer(ANSWER))}`)
    await run(...ASK)
    expect(readFileSync(join(home, "args"), "utf8")).not.toContain("--model")
    await run(...ASK, "--model", "opus")
    expect(readFileSync(join(home, "args"), "utf8")).toContain("--model opus")
    expect(await run("chat", "x", "--temperature", "1")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("--temperature works only with a model server"),
    })
    expect(await run("chat", "x", "--opencode")).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("needs a server"),
    })
  })

  test("an agent that is not installed is reported", async () => {
    const nowhere = { PATH: "/nonexistent" }
    expect(await dex(home, ASK, nowhere)).toMatchObject({
      code: 2,
      stderr: expect.stringMatching(/Claude Code is not installed: there is no\s+program claude/),
    })
    expect(await dex(home, ASK, { ...nowhere, DEX_LLM_PROVIDER: "agent" })).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("no agent is installed"),
    })
    expect((await dex(home, ["doctor"], nowhere)).stdout).toContain("Claude Code is not installed")
  })

  test("one that fails leaves the quotes, with its reason; map ends with it", async () => {
    standIn(home, "claude", "cat >/dev/null; echo \"error: unknown option '--safe-mode'\" >&2; exit 1")
    expect(await run(...ASK)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("needs port 8080"),
      stderr: expect.stringContaining("too old"),
    })
    expect(await run("map", "ports")).toMatchObject({ code: 2, stderr: expect.stringContaining("too old") })
  })

  test.each(["SIGINT", "SIGTERM"] as const)(
    "%s to dex ends the agent and everything that it started",
    async (signal) => {
      let pids: number[] = []
      let isStarted = () => {}
      const started = new Promise<void>((resolve) => (isStarted = resolve))
      const server = createServer((request, response) => {
        pids = request.url!.slice(1).split(",").map(Number)
        response.end()
        isStarted()
      })
      await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening))
      onTestFinished(() => void server.close())
      const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
      const tell = `fetch("${url}/" + process.argv.slice(1).join())`
      standIn(home, "claude", `sleep 1000 &\n'${process.execPath}' -e '${tell}' $$ $!\nwait`)
      const child = startDex(home, ASK, DEX, env())
      await started
      child.kill(signal)
      await new Promise((resolve) => child.once("close", resolve))
      expect(pids).toHaveLength(2)
      await expect.poll(() => pids.filter(isAlive)).toEqual([])
    },
  )
})

test("dex does nothing inside an agent that it uses as a model: no server, no hook, no answer", async () => {
  const inside = { [MODEL_RUN_VARIABLE]: "1" }
  for (const args of [["serve"], ["mcp", "agent"], ["list"], ASK])
    expect(await dexAlone(home, args, inside)).toMatchObject({
      code: 2,
      stdout: "",
      stderr: expect.stringContaining("dex does nothing here"),
    })
  expect(await dexAlone(home, ["hook", "claude_code", "SessionStart"], inside)).toMatchObject({ code: 0, stdout: "" })
})

test("sessions of an agent that was used as a model are not read, and nothing of them stays in the history", async () => {
  const id = "33333333-1111-4111-8111-111111111111"
  const cwd = "/tmp/dex-model-run-abc/empty"
  claudeSession(home, {
    id,
    cwd,
    start: "2026-10-04T10:00:00Z",
    turns: [{ user: "quokkaword" }, { assistant: "Yes." }],
  })
  const mine = {
    id: "44444444-1111-4111-8111-111111111111",
    cwd: "/code/dex-model-runner",
    start: "2026-10-04T10:00:00Z",
  }
  claudeSession(home, { ...mine, turns: [{ user: "wombatword" }] })
  const gemini = join(home, ".gemini/tmp/dex-model-run")
  mkdirSync(join(gemini, "chats"), { recursive: true })
  writeFileSync(join(gemini, ".project_root"), join(home, ".dex/dex-model-run"))
  const header = {
    sessionId: "55555555-1111-4111-8111-111111111111",
    projectHash: "x",
    startTime: "2026-10-04T10:00:00Z",
    kind: "main",
  }
  const message = { id: "1", timestamp: "2026-10-04T10:00:00Z", type: "user", content: "quokkaword" }
  writeFileSync(
    join(gemini, "chats/session-2026-10-04T10-00-55555555.jsonl"),
    `${JSON.stringify(header)}\n${JSON.stringify(message)}\n`,
  )
  await syncHome(home)
  expect((await dex(home, ["search", "quokkaword"])).code).toBe(1)
  expect((await dex(home, ["search", "wombatword"])).code).toBe(0)
  const store = await openStore(join(home, ".dex/history.db"))
  onTestFinished(() => store.close())
  const units = [...(await store.knownUnits("claude_code")).keys(), ...(await store.knownUnits("gemini_cli")).keys()]
  const lines = await Promise.all(
    units.map((key) => store.rawLines("claude_code", key, "live", { onlyReadable: false })),
  )
  expect(lines.flat().join()).toContain("wombatword")
  expect(lines.flat().join()).not.toContain("quokkaword")
  expect([...(await store.knownUnits("gemini_cli")).keys()]).toEqual([])
})
