import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, onTestFinished, test } from "vitest"
import { run as runAsk } from "../../src/answers/ask.run.ts"
import { type ChatOptions, openChat, startChat } from "../../src/answers/chat.run.ts"
import { createDex } from "../../src/app/dex.ts"
import { openModel } from "../../src/llm/model.ts"
import { startDex } from "../support/dex.ts"
import { claudeSession } from "../support/home.ts"
import { answersInTurn, modelServer, type Script } from "../support/model-server.ts"
import { sharedTempDir, tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const PORT = "claude_code:11111111-1111-4111-8111-111111111111"
const QUESTION = "why is the flaky hook test flaky"
const home = sharedTempDir()

function writeHistory(at: string): void {
  claudeSession(at, {
    id: PORT.split(":")[1]!,
    start: "2026-10-03T10:00:00Z",
    turns: [
      { user: "CI is red again, why?" },
      { assistant: "The flaky hook test binds to port 8080, which another test has taken. It now binds to port 0." },
    ],
  })
  claudeSession(at, {
    id: "22222222-1111-4111-8111-111111111111",
    start: "2026-09-01T10:00:00Z",
    turns: [{ user: "How are invoices numbered?" }, { assistant: "Invoices are numbered per year, from 1." }],
  })
}

beforeAll(async () => {
  writeHistory(home)
  await syncHome(home)
})

function open(env: Record<string, string> = {}, at = home) {
  const opened = createDex({ env: { HOME: at, DEX_HOME: join(at, ".dex"), ...env }, cwd: at, version: "test" })
  onTestFinished(() => opened.close())
  return opened
}

async function chatWith(script?: Script, options: Partial<ChatOptions> = {}) {
  const server = script && (await modelServer(script))
  const model =
    server &&
    openModel({ provider: server.url, model: "m", temperature: 0, maxTokens: 4096 }, { sleep: async () => {} })
  const chat = await openChat(open(), { scope: { among: "all" }, model, ...options })
  const shown: string[] = []
  const steps: string[] = []
  return {
    chat,
    shown,
    steps,
    asked: server?.requests ?? [],
    server,
    ask: (question: string, signal?: AbortSignal) =>
      chat.ask(question, {
        onSentence: (sentence) => shown.push(sentence),
        onStep: ({ call }) => steps.push(call),
        ...(signal && { signal }),
      }),
  }
}

/** One byte at a time, so that every intermediate form of a sentence occurs. */
const slowly = (text: string) => [...text].map((character) => ({ text: character }))

describe("while an answer arrives", () => {
  test("a sentence is shown before the model continues", async () => {
    const seen = Promise.withResolvers<void>()
    const { chat } = await chatWith(
      answersInTurn([
        { text: "Port 8080 was taken [1]. It" },
        { wait: seen.promise },
        { text: " now binds to port 0 [1]." },
      ]),
    )
    const shown: string[] = []
    const turn = await chat.ask(QUESTION, {
      onSentence: (sentence) => {
        shown.push(sentence)
        seen.resolve()
      },
    })
    expect(shown).toEqual(["Port 8080 was taken [1].", "It now binds to port 0 [1]."])
    expect(turn).toMatchObject({ answer: shown.join(" "), extractive: false, sources: [{ n: 1, ref: `${PORT}#2` }] })
  })

  test("sentences that a model makes up are never shown, not even for a moment, and are counted at the end", async () => {
    const lies = [
      "It was the moon.",
      "It was fixed in March [44].",
      'It said "the port is 9999, sorry about that" [1].',
      "See https://evil.test/x?q=1 [1].",
    ]
    const { ask, shown } = await chatWith(
      answersInTurn(
        slowly(`${lies[0]} Port 8080 was taken [1]. ${lies.slice(1).join(" ")}\n- It binds to port 0 [1]\n`),
      ),
    )
    const turn = await ask(QUESTION)
    expect(shown).toEqual(["Port 8080 was taken [1].", "- It binds to port 0 [1]"])
    expect(turn.note).toMatch(/2 sentences without a source .*1 sentence with a quotation .*1 sentence with a link/)
  })

  test("if the connection breaks in the middle, nothing is shown twice, and never half a sentence", async () => {
    const { ask, shown, asked } = await chatWith(
      answersInTurn(
        [...slowly("Port 8080 was taken [1]. It was the mo"), { reset: true }],
        slowly("Port 8080 was taken [1]. It now binds to port 0 [1]."),
      ),
    )
    const turn = await ask(QUESTION)
    expect(asked).toHaveLength(2)
    expect(shown).toEqual(["Port 8080 was taken [1].", "It now binds to port 0 [1]."])
    expect(turn).toMatchObject({ answer: shown.join(" "), note: expect.stringContaining("The connection broke") })
  })

  test("if the connection does not come back, what was shown remains, marked as partial", async () => {
    const { ask, shown } = await chatWith(() => [{ text: "Port 8080 was taken [1]. It " }, { reset: true }])
    expect(await ask(QUESTION)).toMatchObject({
      answer: "Port 8080 was taken [1].",
      partial: true,
      extractive: false,
      note: expect.stringContaining("Stopped early"),
    })
    expect(shown).toEqual(["Port 8080 was taken [1]."])
  })

  test("if it is stopped before a supported sentence, nothing is shown, and no quotes replace it", async () => {
    const stop = new AbortController()
    const { ask, shown } = await chatWith(() => {
      stop.abort()
      return [{ text: "It was the moon. It" }, { hang: true }]
    })
    expect(await ask(QUESTION, stop.signal)).toMatchObject({ stopped: true, sources: [], note: "You stopped it." })
    expect(shown).toEqual([])
  })

  test("an answer without a supported sentence shows nothing, and returns quotes", async () => {
    const { ask, shown } = await chatWith(answersInTurn(slowly("It is the moon. Trust me.")))
    expect(await ask(QUESTION)).toMatchObject({
      extractive: true,
      note: expect.stringContaining("could not be verified"),
    })
    expect(shown).toEqual([])
  })

  test("NOT FOUND is accepted as an answer, and not shown", async () => {
    const { ask, shown } = await chatWith(answersInTurn(slowly("NOT FOUND")))
    expect(await ask(QUESTION)).toMatchObject({ sources: [], confidence: "none" })
    expect(shown).toEqual([])
  })

  test("every search and read is reported, and words before one are not part of the answer", async () => {
    const { ask, steps, shown } = await chatWith(
      answersInTurn(
        [{ text: "Let me look. " }, { calls: [{ id: "c", name: "read", arguments: { ref: `${PORT}#2` } }] }],
        [{ text: "Port 8080 was taken [1]." }],
      ),
    )
    const turn = await ask(QUESTION)
    expect(steps).toEqual([`search ${QUESTION}`, `read ${PORT}#2`])
    expect(shown).toEqual(["Port 8080 was taken [1]."])
    expect(turn.note).toBeUndefined()
  })

  test("without a model, the answer consists of quotes", async () => {
    const { ask, shown } = await chatWith()
    expect(await ask(QUESTION)).toMatchObject({ extractive: true, note: expect.stringContaining("No model is set up") })
    expect(shown).toEqual([])
  })
})

test("if it is stopped in the middle, it keeps what was shown, closes the connection, and answers the next question", async () => {
  const stop = new AbortController()
  const { chat, ask, server } = await chatWith(
    answersInTurn([{ text: "Port 8080 was taken [1]. It was the" }, { hang: true }], [{ text: "To port 0 [1]." }]),
  )
  const turn = await chat.ask(QUESTION, { signal: stop.signal, onSentence: () => stop.abort() })
  expect(turn).toMatchObject({ stopped: true, partial: true, answer: "Port 8080 was taken [1]." })
  expect(turn.note).toBe("Stopped early: you stopped it.")
  await server!.left
  expect(await ask("to which port does the hook test bind")).toMatchObject({ answer: "To port 0 [1]." })
})

describe("a series of questions", () => {
  const says = (asked: { body: { messages: { role: string; content: string | null }[] } }) =>
    asked.body.messages.map(({ role, content }) => `${role}: ${content}`)

  test("the model sees the earlier exchange and its passages; a passage keeps its number", async () => {
    const { ask, asked } = await chatWith(
      answersInTurn([{ text: "Port 8080 was taken [1]. It is a lie." }], [{ text: "Another test has taken it [1]." }]),
    )
    await ask(QUESTION)
    const second = await ask("zebra")
    expect(says(asked[1]!).slice(1, 3)).toEqual([`user: ${QUESTION}`, "assistant: Port 8080 was taken [1]."])
    expect(says(asked[1]!)[3]).toMatch(/Question: zebra\n[\s\S]*\[1\] claude_code:1{8}/)
    expect(second.sources).toMatchObject([{ n: 1, ref: `${PORT}#2` }])
  })

  test("a question that refers to the last one is searched for with its rarest words, until a clear", async () => {
    const { chat, ask } = await chatWith()
    await ask("how are invoices numbered")
    const followUp = await ask("and why is it done per year?")
    expect(followUp.answer).toContain("Invoices are numbered per year")
    expect((await ask("which port does the hook test bind to")).answer).not.toContain("Invoices")
    await ask("how are invoices numbered")
    chat.clear()
    expect((await ask("and why?")).answer).not.toContain("Invoices")
  })

  test("the oldest exchanges are dropped when the history gets too long, and this is reported once", async () => {
    const { ask, asked } = await chatWith(
      (_, turn) => [{ text: `${"Port 8080 was taken by another test ".repeat(5)}${"so ".repeat(turn)}[1].` }],
      { historyTokens: 160 },
    )
    const forgot: (number | undefined)[] = []
    for (let i = 0; i < 6; i++) forgot.push((await ask(`${QUESTION} ${i}`)).forgot)
    expect(forgot.filter(Boolean)).toHaveLength(1)
    const last = says(asked.at(-1)!).join("\n")
    expect(last).toContain(`user: ${QUESTION} 4`)
    expect(last).not.toContain(`user: ${QUESTION} 0`)
  })

  test("after a clear the next question is independent, and the use case can change", async () => {
    const { chat, ask, asked } = await chatWith(answersInTurn([{ text: "Port 8080 was taken [1]." }]), {
      use_case: "CI",
    })
    await ask(QUESTION)
    chat.clear()
    chat.setUseCase("a talk")
    await ask(QUESTION)
    expect(asked[1]!.body.messages).toHaveLength(2)
    expect(asked[0]!.body.messages[1]!.content).toContain("Use case: CI")
    expect(asked[1]!.body.messages[1]!.content).toContain("Use case: a talk")
  })

  test("the caps apply to each question: a long chat is not stopped by what earlier questions cost", async () => {
    const { ask } = await chatWith(
      () => [{ text: "Port 8080 was taken [1]." }, { usage: { prompt_tokens: 4_000, completion_tokens: 10 } }],
      { caps: { calls: 10, tokens: 9_000, ms: 60_000 } },
    )
    for (let i = 0; i < 4; i++) {
      const turn = await ask(QUESTION)
      expect(turn.partial).toBeUndefined()
      expect(turn.used).toMatchObject({ input_tokens: 4_000 })
    }
  })
})

describe("the stored chat", () => {
  const chatsOf = (at: string) =>
    readdirSync(join(at, ".dex/chat-sessions")).map((id) => join(at, ".dex/chat-sessions", id))
  const linesOf = (folder: string) =>
    readFileSync(join(folder, "messages.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, unknown>)

  test("every line is stored at once, for its owner only, without secrets; nothing before the first question", async () => {
    const at = tempDir()
    const started = await startChat(open({}, at), {})
    expect(started.stored.folder()).toBeUndefined()
    started.stored.question("is password=hunter2hunter2 ours?")
    const folder = started.stored.folder()!
    expect(linesOf(folder).map(({ type }) => type)).toEqual(["chat", "question"])
    started.stored.answer(await started.chat.ask("is it our key"))
    expect(linesOf(folder).map(({ type }) => type)).toEqual(["chat", "question", "answer"])
    expect(readFileSync(join(folder, "messages.jsonl"), "utf8")).not.toContain("hunter2")
    const mode = (path: string) => statSync(path).mode & 0o777
    expect(mode(folder)).toBe(0o700)
    expect(mode(join(folder, ".."))).toBe(0o700)
    expect(readdirSync(folder).sort()).toEqual(["messages.jsonl", "metadata.json"])
    for (const file of readdirSync(folder)) expect(mode(join(folder, file))).toBe(0o600)
    expect(JSON.parse(readFileSync(join(folder, "metadata.json"), "utf8"))).toMatchObject({ questions: 1, cwd: at })
  })

  test("if nothing can be written, the chat continues and says why it is not stored", async () => {
    const at = tempDir()
    mkdirSync(join(at, ".dex"))
    writeFileSync(join(at, ".dex/chat-sessions"), "")
    const { chat, stored } = await startChat(open({}, at), {})
    stored.question("zebra")
    stored.answer(await chat.ask("zebra"))
    expect(stored.problem()).toMatch(/EEXIST|ENOTDIR/)
    expect(stored.folder()).toBeUndefined()
  })

  test("if it is killed while the model is silent, the question is stored, and the next chat is not disturbed", async () => {
    const at = tempDir()
    writeHistory(at)
    await syncHome(at)
    const reached = Promise.withResolvers<void>()
    const server = await modelServer(() => {
      reached.resolve()
      return { hang: true }
    })
    const child = startDex(at, ["chat", QUESTION], undefined, { DEX_LLM_PROVIDER: server.url })
    await reached.promise
    const gone = new Promise((resolve) => child.once("close", resolve))
    child.kill("SIGKILL")
    await gone
    expect(linesOf(chatsOf(at)[0]!).map(({ type }) => type)).toEqual(["chat", "question"])
    await syncHome(at)
    expect((await dex(at, ["list", "--source", "dex_chat", "--all", "--json"])).stdout).toContain(
      QUESTION.replace("why", "Why"),
    )
  })

  test("it becomes a conversation, no answer ever cites it, and forgetting it removes its folder too", async () => {
    const at = tempDir()
    writeHistory(at)
    await syncHome(at)
    const server = await modelServer((asked) =>
      JSON.stringify(asked.body.messages).includes("zeppelin")
        ? [{ text: "The zeppelin test was flaky as port 8080 was taken [1]." }]
        : answersInTurn([{ text: "NOT FOUND" }])(asked, 0),
    )
    const env = { DEX_LLM_PROVIDER: server.url }
    const first = await dex(at, ["chat", `${QUESTION}, zeppelin`], env)
    expect(first).toMatchObject({ code: 0, stdout: expect.stringContaining("The zeppelin test was flaky") })
    await syncHome(at)
    const found = JSON.parse((await dex(at, ["search", "zeppelin", "--json"])).stdout)
    expect(found.results).toMatchObject([{ kind: "dex" }])
    const shown = (await dex(at, ["show", found.results[0].id])).stdout
    expect(shown).toContain(`[1] ${PORT}#2`)
    const listed = JSON.parse((await dex(at, ["list", "--json"])).stdout)
    expect(JSON.stringify(listed.conversations ?? listed)).not.toContain('"dex_chat:')

    const opened = open({}, at)
    const again = await runAsk(opened, { query: `${QUESTION}, zeppelin`, in: "all", max_tokens: 600 })
    expect(again.sources.length).toBeGreaterThan(0)
    expect(JSON.stringify(again.sources)).not.toContain("dex_chat")
    const { openLibrary } = await import("../../src/answers/library.ts")
    const library = await openLibrary(opened, { among: "all" })
    await expect(library.read(found.results[0].id)).rejects.toThrow("outside the scope of this question")

    expect(await dex(at, ["forget", found.results[0].id, "--yes"])).toMatchObject({ code: 0 })
    expect(chatsOf(at)).toEqual([])
    expect(await dex(at, ["search", "zeppelin"])).toMatchObject({ code: 1 })
  })
})

describe("on the command line", () => {
  test("for one question, the answer and its sources are on stdout, steps and notes on stderr", async () => {
    const server = await modelServer(
      answersInTurn(
        [{ calls: [{ id: "c", name: "search", arguments: { query: "free \u001b[31mport" } }] }],
        [{ text: "Port 8080 \u001b]0;x\u0007was taken [1]. It is the moon." }],
      ),
    )
    const run = await dex(home, ["chat", QUESTION, "--verbose", "--temperature", "0.5", "--model", "other"], {
      DEX_LLM_PROVIDER: server.url,
    })
    expect(run.code).toBe(0)
    expect(run.stdout).toBe(
      `Port 8080 was taken [1].\n\n[1]  ${PORT}#2\n     2026-10-03 · said by: agent · CI is red again, why?\n`,
    )
    expect(run.stderr).toContain(`  search ${QUESTION} → `)
    expect(run.stderr).toContain("  search free port → ")
    expect(run.stderr).toMatch(/Confidence: \w+\. Written by a model from these sources\./)
    expect(run.stderr).toContain("1 sentence without a source was left out.")
    expect(run.stdout + run.stderr).not.toContain("\u001b")
    expect(server.requests[0]!.body).toMatchObject({ model: "other", temperature: 0.5 })
  })

  test("with --verbose it says when a request failed and is repeated", async () => {
    const server = await modelServer(
      answersInTurn({ status: 503, headers: { "retry-after": "0" }, body: "busy" }, [
        { text: "Port 8080 was taken [1]." },
      ]),
    )
    const run = await dex(home, ["chat", QUESTION, "--verbose", "--model", "m"], { DEX_LLM_PROVIDER: server.url })
    expect(run.stderr).toMatch(/ask the model again in .* → .*503/)
    expect(run.stdout).toContain("Port 8080 was taken [1].")
  })

  test("without a model it answers in quotes and says how to set one up", async () => {
    const run = await dex(home, ["chat", QUESTION])
    expect(run).toMatchObject({ code: 0, stdout: expect.stringContaining("The flaky hook test binds to port 8080") })
    expect(run.stdout).toMatch(/^Confidence: \w+\. Exact quotes\.\n/)
    expect(run.stderr).toContain("No model is set up, so these are quotes.")
    expect(run.stderr).toContain("dex config set llm.provider")
  })

  test("--json prints the same as ask; nothing found exits with 1; without a terminal a question is required", async () => {
    const run = await dex(home, ["chat", QUESTION, "--json"])
    expect(JSON.parse(run.stdout)).toMatchObject({ extractive: true, sources: [{ ref: `${PORT}#2` }] })
    expect(await dex(home, ["chat", "kubernetes ingress rotation"])).toMatchObject({ code: 1, stdout: "" })
    expect(await dex(home, ["chat"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("A chat needs a terminal"),
    })
    expect(await dex(home, ["chat", "-i", "x"])).toMatchObject({ code: 2, stderr: expect.stringContaining("terminal") })
    expect(await dex(home, ["chat", "x", "--temperature", "hot"])).toMatchObject({ code: 2 })
    expect(await dex(home, ["chat", "x", "--temperature", "7"])).toMatchObject({ code: 2 })
    expect(await dex(home, ["chat", "x", "-c", "none"])).toMatchObject({
      code: 2,
      stderr: expect.stringContaining("There is no collection"),
    })
  })
})
