import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, expect, onTestFinished, test } from "vitest"
import { onTerminal } from "../integrations/terminal.ts"
import { dex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { answersInTurn, modelServer, type Script } from "../support/model-server.ts"
import { sharedTempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"

const PORT = "claude_code:11111111-1111-4111-8111-111111111111"
const home = sharedTempDir()

beforeAll(async () => {
  claudeSession(home, {
    id: PORT.split(":")[1]!,
    start: "2026-10-03T10:00:00Z",
    turns: [
      { user: "CI is red again, why?" },
      { assistant: "The flaky hook test binds to port 8080, which another test has taken. It now binds to port 0." },
    ],
  })
  await syncHome(home)
})

type Keys = [after: RegExp, keys: string][]

/** The screen after these keys. */
async function typed(keys: Keys, options: { script?: Script; columns?: number; args?: string[] } = {}) {
  const server = options.script && (await modelServer(options.script))
  if (server) {
    await dex(home, ["config", "set", "llm.provider", server.url])
    onTestFinished(async () => void (await dex(home, ["config", "unset", "llm.provider"])))
  }
  const run = await onTerminal(home, ["chat", ...(options.args ?? [])], keys, options.columns)
  if (!run) console.log("NOT RUN: chat on a terminal, which cannot be made here")
  const lines = run?.screen.replaceAll(/\x1b\[[0-9;?]*[A-Za-z]/g, "").split(/\r?\n/) ?? []
  return run && { ...run, lines, text: lines.join("\n"), asked: server?.requests ?? [] }
}

const ANSWER = [{ text: "Port 8080 was taken by another test [1]. It was the moon. It now binds to port 0 [1]." }]

test("the arguments are the first question, and the commands work as described", async () => {
  const told = await typed(
    [
      [/You: /, "why is the hook test flaky\r"],
      [/without a source was left out[\s\S]*You: /, "and before?\r"],
      [/Confidence[\s\S]*You: /, "/sources\r"],
      [/said by[\s\S]*You: /, "/use-case CI\r"],
      [/You: /, "/use-case\r"],
      [/The use case is: CI[\s\S]*keeps it\): /, "\r"],
      [/You: /, "/verbose\r"],
      [/Every step[\s\S]*You: /, "/collections\r"],
      [/conversations are searched[\s\S]*You: /, "/nonsense\r"],
      [/There is no command \/nonsense[\s\S]*You: /, "/help\r"],
      [/\/exit[\s\S]*You: /, "/save notes.md\r"],
      [/Written to[\s\S]*You: /, "/save notes.md\r"],
      [/was not changed[\s\S]*You: /, "/clear\r"],
      [/Starting over[\s\S]*You: /, "once more\r"],
      [/search once more →[\s\S]*You: /, "/quit\r"],
    ],
    { script: answersInTurn(ANSWER) },
  )
  if (!told) return
  expect(told.code).toBe(0)
  expect(told.text).toContain("Port 8080 was taken by another test [1]. It now binds to port 0 [1].\n")
  expect(told.text).not.toContain("the moon")
  expect(told.text).toMatch(/This chat is saved in ~\/\.dex\/chat-sessions\/2/)
  expect(told.asked.map(({ body }) => body.messages.length)).toEqual([2, 4, 2])
  expect(told.asked[0]!.body.messages[1]!.content).toContain("why is the hook test flaky")
  expect(told.asked[0]!.body.messages[1]!.content).not.toContain("Use case:")
  expect(told.asked[2]!.body.messages[1]!.content).toContain("Use case: CI")
  const saved = readFileSync(join(home, "notes.md"), "utf8")
  expect(saved).toContain("## why is the hook test flaky\n\nPort 8080 was taken")
  expect(saved).toContain(`- [1] \`${PORT}#2\``)
})

test("Ctrl-C stops the answer, a second one leaves; what was shown is stored", async () => {
  const told = await typed(
    [
      [/You: /, "why is the hook test flaky\r"],
      [/Port 8080 was taken \[1\]\./, "\x03"],
      [/[Yy]ou stopped it[\s\S]*You: /, "\x03"],
    ],
    { script: answersInTurn([{ text: "Port 8080 was taken [1]. It was the" }, { hang: true }]) },
  )
  if (!told) return
  expect(told.code).toBe(0)
  const chats = readdirSync(join(home, ".dex/chat-sessions")).sort()
  const kept = readFileSync(join(home, ".dex/chat-sessions", chats.at(-1)!, "messages.jsonl"), "utf8")
  expect(JSON.parse(kept.trim().split("\n").at(-1)!)).toMatchObject({
    type: "answer",
    text: "Port 8080 was taken [1].",
    stopped: true,
  })
})

test("at an empty line the first Ctrl-C clears it with a hint, the second leaves; Ctrl-D leaves at once", async () => {
  const before = readdirSync(join(home, ".dex")).includes("chat-sessions")
    ? readdirSync(join(home, ".dex/chat-sessions")).length
    : 0
  const first = await typed([
    [/You: /, "half a thought\x03\x03"],
    [/Press Ctrl-C again[\s\S]*You: /, "\x03"],
  ])
  if (!first) return
  expect(first.code).toBe(0)
  expect(first.text).toContain("No model is set up, so the answers are quotes.")
  const second = await typed([[/You: /, "\x04"]])
  expect(second!.code).toBe(0)
  expect(second!.text).not.toContain("is saved in")
  const after = before === 0 ? 0 : readdirSync(join(home, ".dex/chat-sessions")).length
  expect(after).toBe(before)
})

test.each([80, 140])(
  "at %i columns no line is longer, and a question given at the start is answered first",
  async (columns) => {
    const told = await typed([[/Confidence[\s\S]*You: /, "\x04"]], {
      script: answersInTurn([{ text: `${"the hook test binds to a port that is taken, and ".repeat(8)}fails [1].` }]),
      columns,
      args: ["-i", "-u", "CI", "why is the hook test flaky"],
    })
    if (!told) return
    expect(told.code).toBe(0)
    expect(told.lines.some((line) => line.length > columns - 15)).toBe(true)
    expect(told.lines.filter((line) => line.length > columns)).toEqual([])
    expect(told.asked[0]!.body.messages[1]!.content).toContain("Use case: CI")
  },
)

test.each(["ask", "chat"])(
  "dex %s with a question answers it without prompting, on a terminal too",
  async (command) => {
    const run = await onTerminal(home, [command, "why is the hook test flaky"], [])
    if (!run) return
    expect(run.code).toBe(0)
    expect(run.screen).toContain("port 8080")
  },
)
