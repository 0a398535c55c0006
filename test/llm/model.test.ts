import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { inspect } from "node:util"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { estimateTokens } from "../../src/core/tokens.ts"
import {
  type LlmSettings,
  type ModelDeps,
  type ModelReply,
  type ModelRequest,
  type ModelTool,
  openModel,
  startSilenceTimer,
} from "../../src/llm/model.ts"
import { closedUrl } from "../support/embedding-server.ts"
import {
  type Answer,
  answersInTurn,
  type ModelServer,
  modelServer,
  type Script,
  type Step,
} from "../support/model-server.ts"

const KEY = "sk-test-0123456789abcdefghij"
const START = Date.parse("2026-03-01T12:00:00Z")

/** A clock that does not make tests wait. */
function clock() {
  const slept: number[] = []
  let now = START
  const sleep = async (ms: number, signal?: AbortSignal) => {
    signal?.throwIfAborted()
    slept.push(ms)
    now += ms
  }
  return { slept, sleep, now: () => now }
}

function opened(server: ModelServer, more: Partial<LlmSettings> = {}, deps: Partial<ModelDeps> = {}) {
  const time = clock()
  const settings = { provider: server.url, model: "test-model", temperature: 0, maxTokens: 1000, apiKey: KEY, ...more }
  return { ...openModel(settings, { ...time, ...deps }), slept: time.slept }
}

async function replyTo(script: Script, more: Partial<ModelRequest> = {}, deps: Partial<ModelDeps> = {}) {
  const server = await modelServer(script)
  const model = opened(server, {}, deps)
  const pieces: string[] = []
  const onText = (piece: string) => void pieces.push(piece)
  const onReset = () => void pieces.push("RESET")
  const outcome: { reply?: ModelReply; error?: Error } = await model
    .reply({ ...hello, onText, onReset, ...more })
    .then((reply) => ({ reply }))
    .catch((error: Error) => ({ error }))
  return { server, model, pieces, ...outcome }
}

const hello: ModelRequest = { system: "Be brief.", messages: [{ role: "user", content: "Hello" }] }
const ok: Step[] = [{ text: "fine" }]
const tool = (name: string): ModelTool => ({ name, description: `Does ${name}.`, input_schema: { type: "object" } })
const tools = [tool("search"), tool("read")]

describe("a reply", () => {
  test("is the text as it was streamed, piece by piece, with the tokens that the server counted", async () => {
    const { reply, pieces, server, model } = await replyTo(() => [
      { text: "Hello" },
      { text: ", you" },
      { usage: { prompt_tokens: 31, completion_tokens: 4 } },
    ])
    expect(reply).toEqual({
      text: "Hello, you",
      calls: [],
      finish: "stop",
      usage: { input: 31, output: 4, is_estimate: false },
    })
    expect(pieces).toEqual(["Hello", ", you"])
    expect(model.used()).toEqual({ input: 31, output: 4, requests: 1, is_estimate: false })
    expect(model.id).toBe(`${new URL(server.url).host}/test-model`)
  })

  test("is requested once, with what the caller gave and nothing else", async () => {
    const { server } = await replyTo(() => ok, { tools, max_tokens: 50, temperature: 0.5 })
    expect(server.requests).toHaveLength(1)
    const [{ path, headers, body }] = server.requests as [ModelServer["requests"][number]]
    expect(path).toBe("/v1/chat/completions")
    expect(headers).toMatchObject({ authorization: `Bearer ${KEY}`, "user-agent": "dex" })
    expect(body).toEqual({
      model: "test-model",
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 50,
      temperature: 0.5,
      messages: [
        { role: "system", content: "Be brief." },
        { role: "user", content: "Hello" },
      ],
      tools: ["search", "read"].map((name) => ({
        type: "function",
        function: { name, description: `Does ${name}.`, parameters: { type: "object" } },
      })),
    })
  })

  test("needs no key", async () => {
    const server = await modelServer(() => ok)
    expect(await opened(server, { apiKey: undefined }).reply(hello)).toMatchObject({ text: "fine" })
    expect(server.requests[0]!.headers.authorization).toBeUndefined()
  })

  test.each([1, 2, 3, 7, 64])("is assembled from pieces of %i bytes", async (bytes) => {
    const text = "naïve 🚀 日本語 “quoted”\n\n```json\n{}\n```"
    const steps: Step[] = [{ reasoning: "hm 🤔" }, { text }, { calls: [{ name: "search", arguments: '{"q":"日本"}' }] }]
    const { reply } = await replyTo(() => ({ steps, bytes }), { tools })
    expect(reply).toMatchObject({ text, calls: [{ name: "search", input: { q: "日本" } }], finish: "tool_calls" })
  })

  test("is passed on while it is still being generated", async () => {
    const first = Promise.withResolvers<void>()
    const script = () => [{ text: "first" }, { wait: first.promise }, { text: "second" }]
    // The second piece is only sent once the first has arrived here.
    const { reply } = await replyTo(script, { onText: () => first.resolve() })
    expect(reply).toMatchObject({ text: "firstsecond" })
  })

  test.each([
    [[{ text: "a" }, { finish: "length" }], "length"],
    [[{ text: "a" }, { finish: "content_filter" }], "content_filter"],
    [[{ refusal: "I will not." }], "content_filter"],
    [[{ text: "a" }, { finish: "insufficient_system_resource" }], "other"],
    [[{ calls: [{ name: "read", arguments: "{}" }] }, { finish: "stop" }], "tool_calls"],
    [[], "stop"],
  ] as [Step[], string][])("that ends with %j has finish %s", async (steps, finish) => {
    expect((await replyTo(() => steps, { tools })).reply).toMatchObject({ finish })
  })

  test("in parts has its text, without its thoughts", async () => {
    const content = [
      { type: "thinking", thinking: [{ type: "text", text: "hm" }] },
      { type: "text", text: "fine" },
    ]
    const chunk = { error: null, choices: [{ delta: { content, refusal: false } }] }
    expect((await replyTo(() => [{ chunk }])).reply).toMatchObject({ text: "fine", finish: "stop" })
  })

  test("of a server that does not stream is accepted too", async () => {
    const message = {
      role: "assistant",
      content: "whole",
      tool_calls: [{ id: "c1", type: "function", function: { name: "read", arguments: '{"ref":"x"}' } }],
    }
    const json = {
      choices: [{ index: 0, message, finish_reason: "tool_calls" }],
      usage: { prompt_tokens: 5, completion_tokens: 6 },
    }
    expect((await replyTo(() => ({ json }), { tools })).reply).toEqual({
      text: "whole",
      calls: [{ id: "c1", name: "read", input: { ref: "x" } }],
      finish: "tool_calls",
      usage: { input: 5, output: 6, is_estimate: false },
    })
  })

  test.each(["text/plain", "application/octet-stream", ""])("with the content type %j is accepted", async (type) => {
    expect((await replyTo(() => ({ steps: ok, type }))).reply).toMatchObject({ text: "fine" })
  })
})

describe("tool calls", () => {
  test("come in parallel, in order, and their results go back by id", async () => {
    const calls = [
      { id: "a", name: "search", arguments: '{"q":"token"}' },
      { id: "b", name: "read", arguments: '{"ref":"x#1"}' },
    ]
    const server = await modelServer(answersInTurn([{ text: "Let me look." }, { calls }], ok))
    const model = opened(server)
    const first = await model.reply({ ...hello, tools })
    expect(first.calls).toEqual([
      { id: "a", name: "search", input: { q: "token" } },
      { id: "b", name: "read", input: { ref: "x#1" } },
    ])
    await model.reply({
      system: "",
      messages: [
        { role: "user", content: "Hello" },
        { role: "assistant", content: first.text, calls: first.calls },
        {
          role: "tool",
          results: [
            { id: "a", name: "search", output: "one hit" },
            { id: "b", name: "read", output: "no such thing", is_error: true },
          ],
        },
      ],
      tools,
    })
    expect(server.requests[1]!.body.messages).toEqual([
      { role: "user", content: "Hello" },
      {
        role: "assistant",
        content: "Let me look.",
        tool_calls: calls.map(({ id, name, arguments: text }) => ({
          id,
          type: "function",
          function: { name, arguments: text },
        })),
      },
      { role: "tool", tool_call_id: "a", content: "one hit" },
      { role: "tool", tool_call_id: "b", content: "no such thing" },
    ])
  })

  const valid = { name: "search", arguments: '{"q":1}' }
  test.each([
    ["arguments that are not JSON", { name: "search", arguments: '{"q": tok' }, /not valid JSON/],
    ["arguments that are a list", { name: "search", arguments: "[1]" }, /must be a JSON object/],
    ["arguments that are a text", { name: "search", arguments: '"x"' }, /must be a JSON object/],
    [
      "a name that nobody has",
      { name: "rm_rf", arguments: "{}" },
      /no tool with that name. The tools are: search, read/,
    ],
    ["no name", { name: undefined, arguments: "{}" }, /names no tool/],
  ])("with %s are returned with a mark, next to those that are valid", async (_, bad, reason) => {
    const { reply } = await replyTo(() => [{ calls: [valid, bad] }], { tools })
    expect(reply).toMatchObject({
      finish: "tool_calls",
      calls: [
        { name: "search", input: { q: 1 } },
        { name: bad.name ?? "", invalid: { reason: expect.stringMatching(reason) } },
      ],
    })
    expect(reply!.calls[1]!.input).toBeUndefined()
  })

  test("with an empty name are not mistaken for the end of the work", async () => {
    const { reply } = await replyTo(() => [{ calls: [{ name: "  ", arguments: "{}" }] }], { tools })
    expect(reply).toMatchObject({
      finish: "tool_calls",
      calls: [{ invalid: { reason: expect.stringMatching(/no tool/) } }],
    })
  })

  test("without arguments have none", async () => {
    const { reply } = await replyTo(() => [{ calls: [{ name: "read" }, { name: "read", arguments: " " }] }], { tools })
    expect(reply).toMatchObject({
      calls: [
        { name: "read", input: {} },
        { name: "read", input: {} },
      ],
    })
  })

  test("whose arguments are already an object are accepted as they are", async () => {
    const { reply } = await replyTo(() => [{ calls: [{ name: "read", arguments: { ref: "x" } }] }], { tools })
    expect(reply).toMatchObject({ finish: "tool_calls", calls: [{ name: "read", input: { ref: "x" } }] })
  })

  test.each([
    ["missing", null, null],
    ["the same", "twin", "twin"],
  ])("whose ids are %s get their own ids", async (_, one, two) => {
    const script = () => [
      {
        calls: [
          { ...valid, id: one },
          { ...valid, id: two, name: "read" },
        ],
      },
    ]
    const { calls } = (await replyTo(script, { tools })).reply!
    expect(calls).toMatchObject([
      { name: "search", input: { q: 1 } },
      { name: "read", input: { q: 1 } },
    ])
    expect(new Set(calls.map(({ id }) => id)).size).toBe(2)
    expect(calls.every(({ id }) => id.length > 0)).toBe(true)
  })

  const streamed = (...deltas: object[]): Step[] => [
    ...deltas.map((delta) => ({ chunk: { choices: [{ delta: { tool_calls: [delta] } }] } })),
    { finish: "tool_calls" },
  ]
  const first = { name: "search", input: { q: 1 } }
  const second = { name: "search", input: { q: 2 } }
  test.each<[string, Step[], object[]]>([
    [
      "without numbers",
      streamed(
        { function: { name: "search", arguments: '{"q":' } },
        { function: { arguments: "1}" } },
        { function: { name: "search", arguments: '{"q":2}' } },
      ),
      [first, second],
    ],
    [
      "all with the number 0",
      streamed(
        { index: 0, id: "a", function: { name: "search", arguments: "" } },
        { index: 0, function: { arguments: '{"q":1}' } },
        { index: 0, id: "b", function: { name: "search", arguments: '{"q":2}' } },
        { index: 0, id: "c", function: { name: "read", arguments: "{}" } },
      ),
      [first, second, { name: "read", input: {} }],
    ],
    [
      "with the name again in every piece",
      streamed(
        { index: 0, id: "a", function: { name: "search", arguments: '{"q"' } },
        { index: 0, id: "a", function: { name: "search", arguments: ":1" } },
        { index: 0, id: "a", function: { name: "search", arguments: "}" } },
      ),
      [first],
    ],
    [
      "with the name after the arguments began",
      streamed(
        { index: 0, id: "a", function: { arguments: '{"q":' } },
        { index: 0, function: { name: "search", arguments: "1}" } },
      ),
      [first],
    ],
    [
      "with pieces that alternate",
      streamed(
        { index: 0, id: "a", function: { name: "search", arguments: '{"q":' } },
        { index: 1, id: "b", function: { name: "search", arguments: '{"q":' } },
        { index: 0, function: { arguments: "1}" } },
        { index: 1, function: { name: null, arguments: "2}" } },
      ),
      [first, second],
    ],
  ])("%s are distinguished", async (_, steps, calls) => {
    expect((await replyTo(() => steps, { tools })).reply).toMatchObject({ finish: "tool_calls", calls })
  })

  test("that were cut off by the token limit say so", async () => {
    const script = () => [{ calls: [{ name: "search", arguments: '{"q":"to' }] }, { finish: "length" }]
    expect((await replyTo(script, { tools })).reply).toMatchObject({
      finish: "length",
      calls: [{ invalid: { reason: expect.stringMatching(/cut off/), raw: '{"q":"to' } }],
    })
  })

  test("that were invalid go back in a form that a strict server accepts", async () => {
    const bad = { name: "no such/tool\u001b[31m", arguments: "{oops" }
    const server = await modelServer(answersInTurn([{ calls: [bad, { arguments: "{}" }] }], ok))
    const model = opened(server)
    const { calls } = await model.reply({ ...hello, tools })
    const results = calls.map(({ id, name, invalid }) => ({ id, name, output: invalid!.reason, is_error: true }))
    const more = [{ role: "assistant", content: "", calls } as const, { role: "tool", results } as const]
    await model.reply({ ...hello, messages: [...hello.messages, ...more], tools })
    const sent = server.requests[1]!.body.messages[2]!.tool_calls!
    expect(sent.map((call) => call.function)).toEqual([
      { name: "no_such_tool_31m", arguments: "{}" },
      { name: "invalid", arguments: "{}" },
    ])
  })

  test("return the extra data that a server sent with them", async () => {
    const extra = { google: { thought_signature: "c2ln" } }
    const server = await modelServer(answersInTurn([{ calls: [{ ...valid, extra }] }], ok))
    const model = opened(server)
    const { calls } = await model.reply({ ...hello, tools })
    await model.reply({ ...hello, messages: [...hello.messages, { role: "assistant", content: "", calls }], tools })
    expect(server.requests[1]!.body.messages[2]!.tool_calls![0]).toMatchObject({ extra_content: extra })
  })
})

describe("a server that is busy or failing", () => {
  test.each([429, 500, 502, 503, 529])("with %i is retried", async (status) => {
    const { reply, model, server } = await replyTo(answersInTurn({ status }, ok))
    expect(reply).toMatchObject({ text: "fine" })
    expect(model.slept).toEqual([1000])
    expect(server.requests[1]!.body).toEqual(server.requests[0]!.body)
    expect(model.used()).toEqual({ input: 100, output: 10, requests: 2, is_estimate: false })
  })

  test.each([
    [429, "llm_busy", /received too many requests \(429: slow down\), even after 3 retries/],
    [500, "llm_failed", /failed \(500: slow down\), even after 3 retries/],
  ])("with %i all the time is given up after 1, 2 and 4 seconds", async (status, code, message) => {
    const { error, model, server } = await replyTo(() => ({ status, json: { error: { message: "slow down" } } }))
    expect(error).toMatchObject({ name: "DexError", code, message: expect.stringMatching(message) })
    expect(model.slept).toEqual([1000, 2000, 4000])
    expect(server.requests).toHaveLength(4)
    expect(server.mostAtOnce()).toBe(1)
  })

  test.each([
    ["7", 7000],
    ["0", 0],
    ["30", 30_000],
    [new Date(START + 12_000).toUTCString(), 12_000],
    [new Date(START - 60_000).toUTCString(), 0],
    ["soon", 1000],
    ["-5", 1000],
  ])("that says Retry-After: %s is retried in %i ms", async (value, ms) => {
    const { reply, model } = await replyTo(answersInTurn({ status: 429, headers: { "retry-after": value } }, ok))
    expect(reply).toMatchObject({ text: "fine" })
    expect(model.slept).toEqual([ms])
  })

  test.each([
    ["31", /Try again in 31 s/],
    ["3600", /Try again in 60 minutes/],
    [new Date(START + 90_000).toUTCString(), /Try again in 90 s/],
  ])("that says Retry-After: %s is not waited for", async (value, message) => {
    const { error, model, server } = await replyTo(() => ({ status: 429, headers: { "retry-after": value } }))
    expect(error).toMatchObject({ code: "llm_busy", message: expect.stringMatching(message) })
    expect(model.slept).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  test("that requires payment is not retried", async () => {
    const json = { error: { message: "You exceeded your current quota", code: "insufficient_quota" } }
    const { error, server } = await replyTo(() => ({ status: 429, json }))
    expect(error).toMatchObject({ code: "llm_no_credit" })
    expect(server.requests).toHaveLength(1)
  })
})

describe("a connection", () => {
  test("that is reset before the first word is repeated", async () => {
    const { reply, model, pieces } = await replyTo(answersInTurn({ reset: true }, ok))
    expect(reply).toMatchObject({ text: "fine" })
    expect(model.slept).toEqual([1000])
    expect(pieces).toEqual(["fine"])
  })

  test.each<[string, Step]>([
    ["is reset", { reset: true }],
    ["ends", { end: true }],
    ["reports that the model behind it failed", { chunk: { error: { code: 502, message: "upstream" } } }],
    ["reports that it is overloaded", { chunk: { error: { type: "overloaded_error", message: "busy" } } }],
  ])("that %s in mid-stream is repeated, and the streamed text is declared void", async (_, end) => {
    const { reply, model, pieces } = await replyTo(answersInTurn([{ text: "half an ans" }, end], ok))
    expect(reply).toMatchObject({ text: "fine", usage: { input: 100, output: 10, is_estimate: false } })
    expect(pieces).toEqual(["half an ans", "RESET", "fine"])
    expect(model.slept).toEqual([1000])
    // The text before it broke counts.
    expect(model.used()).toMatchObject({ requests: 2, is_estimate: true, output: 10 + estimateTokens("half an ans") })
  })

  test("that always breaks is given up", async () => {
    const { error, server, model } = await replyTo(() => [{ text: "half" }, { reset: true }])
    expect(error).toMatchObject({ code: "llm_unreachable", message: expect.stringMatching(/broke \(ECONNRESET\)/) })
    expect(server.requests).toHaveLength(4)
    expect(server.mostAtOnce()).toBe(1)
    expect(model.slept).toEqual([1000, 2000, 4000])
  })

  test("to nobody is not retried, and the error says what to do", async () => {
    const { slept, sleep, now } = clock()
    const provider = `${await closedUrl()}/v1`
    const model = openModel({ provider, model: "m", temperature: 0, maxTokens: 100 }, { sleep, now })
    await expect(model.reply(hello)).rejects.toMatchObject({
      code: "llm_unreachable",
      message: expect.stringMatching(
        /Nothing answers at http.* \(ECONNREFUSED\)\. Start the server, or fix llm\.provider/,
      ),
    })
    expect(slept).toEqual([])
  })

  test("that is silent for too long is given up", async () => {
    let tooLong = async () => {}
    const silence: ModelDeps["silence"] = (onSilent) => {
      tooLong = async () => onSilent()
      return { touch: () => {}, end: () => {} }
    }
    for (const script of [
      async (): Promise<Answer> => {
        await tooLong()
        return { hang: true }
      },
      () => [{ text: "so" }, { wait: () => tooLong() }, { hang: true }] as Step[],
    ]) {
      const { error, server, model } = await replyTo(script, {}, { silence })
      expect(error).toMatchObject({ code: "llm_silent", message: expect.stringMatching(/nothing for 10 minutes/) })
      expect(model.slept).toEqual([])
      await server.left
    }
  })

  test("that shows a sign of life gets a new time limit, until it is over", async () => {
    const signs: string[] = []
    const silence: ModelDeps["silence"] = () => ({
      touch: () => void signs.push("touch"),
      end: () => void signs.push("end"),
    })
    await replyTo(() => [{ text: "a" }, { text: "b" }, { text: "c" }], {}, { silence })
    // When it is sent, when it is answered, and then for every piece; the network decides how many pieces there are.
    expect(signs.length).toBeGreaterThanOrEqual(4)
    expect(signs.indexOf("end")).toBe(signs.length - 1)
  })

  test("is given ten minutes from the last sign of life", () => {
    vi.useFakeTimers()
    onTestFinished(() => void vi.useRealTimers())
    const onSilent = vi.fn()
    const silence = startSilenceTimer(onSilent)
    silence.touch()
    for (let i = 0; i < 3; i++) {
      vi.advanceTimersByTime(599_000)
      silence.touch()
    }
    expect(onSilent).not.toHaveBeenCalled()
    vi.advanceTimersByTime(600_000)
    expect(onSilent).toHaveBeenCalledOnce()
    silence.end()
    silence.touch()
    expect(vi.getTimerCount()).toBe(0)
  })

  test("that stays open after an error is not waited for", async () => {
    const { error, server } = await replyTo(() => [{ chunk: { error: { message: "it broke" } } }, { hang: true }])
    expect(error).toMatchObject({ code: "llm_failed" })
    await server.left
  })
})

describe("a server that refuses", () => {
  test.each<[Answer, string, RegExp]>([
    [{ status: 401 }, "llm_refused", /refused the key \(401\)\. Set another one: dex config set llm\.api_key/],
    [{ status: 403, body: "forbidden" }, "llm_refused", /\(403: forbidden\)/],
    [{ status: 402 }, "llm_no_credit", /requires payment/],
    [{ status: 404 }, "llm_no_model", /has no model test-model, or the path in llm.provider is wrong/],
    [{ status: 400, json: { error: { message: "x is not a valid model ID" } } }, "llm_no_model", /Check llm\.model/],
    [
      { status: 400, json: { error: { message: "This model's maximum context length is 8 tokens" } } },
      "llm_too_long",
      /too long/,
    ],
    [{ status: 400, json: { error: "bad" } }, "llm_failed", /did not accept the request \(400: bad\)/],
    [{ json: { error: { message: "no provider", code: 404 } } }, "llm_no_model", /no provider/],
    [{ headers: { "content-type": "text/html" }, body: "<h1>Hi</h1>" }, "llm_wrong_answer", /a web page.*ends in \/v1/],
    [{ json: { hello: 1 } }, "llm_wrong_answer", /did not answer as a chat/],
    [[{ raw: "data: {oops\n\n" }], "llm_wrong_answer", /not JSON/],
    [[{ chunk: { choices: "none" } }], "llm_wrong_answer", /a different form/],
    [[{ chunk: { error: { message: "it broke" } } }], "llm_failed", /stopped in the middle of its answer \(it broke\)/],
  ])("by %j is not retried", async (answer, code, message) => {
    const { error, model, server } = await replyTo(() => answer)
    expect(error).toMatchObject({ name: "DexError", code, message: expect.stringMatching(message) })
    expect(model.slept).toEqual([])
    expect(server.requests).toHaveLength(1)
  })

  test("in hostile words is quoted briefly, on one line, without control characters", async () => {
    const message = `\u001b[2J\u202e${"A".repeat(5000)}\n\rrun: curl evil`
    const { error } = await replyTo(() => ({ status: 400, json: { error: { message } } }))
    expect(error!.message.length).toBeLessThan(400)
    expect(error!.message).toMatch(/^[ -~…]+$/)
  })

  test("with a redirect is not followed", async () => {
    const other = await modelServer(() => ok)
    for (const status of [301, 302, 307, 308]) {
      const location = `${other.url}/chat/completions`
      const { error } = await replyTo(() => ({ status, headers: { location } }))
      expect(error).toMatchObject({
        code: "llm_failed",
        message: expect.stringMatching(/redirects to another address/),
      })
    }
    expect(other.requests).toEqual([])
  })
})

describe("the caller's signal", () => {
  test("that is already aborted sends nothing", async () => {
    const { error, server } = await replyTo(() => ok, { signal: AbortSignal.abort() })
    expect(error).toMatchObject({ code: "llm_stopped" })
    expect(server.requests).toEqual([])
  })

  test.each<[string, (stop: () => void) => Step[]]>([
    ["before its first word", (stop) => [{ wait: async () => stop() }, { hang: true }]],
    ["in mid-stream", (stop) => [{ text: "so" }, { wait: async () => stop() }, { hang: true }]],
  ])("ends a request %s, and its connection", async (_, answer) => {
    const stop = new AbortController()
    const { error, server } = await replyTo(() => answer(() => stop.abort()), { signal: stop.signal })
    expect(error).toMatchObject({ code: "llm_stopped" })
    await server.left
    expect(server.requests).toHaveLength(1)
  })

  test("ends a request that is not answered at all", async () => {
    const stop = new AbortController()
    const script = async (): Promise<Answer> => {
      stop.abort()
      return { hang: true }
    }
    const { error, server } = await replyTo(script, { signal: stop.signal })
    expect(error).toMatchObject({ code: "llm_stopped" })
    await server.left
  })

  test("ends the wait for a retry", async () => {
    const stop = new AbortController()
    const script = answersInTurn([{ text: "half" }, { reset: true }], ok)
    const onReset = () => void setImmediate(() => stop.abort())
    const { error, server } = await replyTo(script, { signal: stop.signal, onReset }, { sleep: undefined })
    expect(error).toMatchObject({ code: "llm_stopped" })
    expect(server.requests).toHaveLength(1)
  })
})

describe("tokens", () => {
  test.each([null, {}, { prompt_tokens: 0, completion_tokens: 0 }, { prompt_tokens: -5, completion_tokens: 1.5 }])(
    "are estimated if the server says %j, and marked as an estimate",
    async (usage) => {
      const text = "a long answer ".repeat(50)
      const { reply, server, model } = await replyTo(() => [{ text }, { usage }])
      const sent = JSON.stringify([server.requests[0]!.body.messages, null])
      expect(reply).toMatchObject({
        usage: { input: estimateTokens(sent), output: estimateTokens(text), is_estimate: true },
      })
      expect(model.used()).toMatchObject({ is_estimate: true, requests: 1 })
    },
  )

  test("add up over requests", async () => {
    const server = await modelServer(() => ok)
    const model = opened(server)
    for (let i = 0; i < 3; i++) await model.reply(hello)
    expect(model.used()).toEqual({ input: 300, output: 30, requests: 3, is_estimate: false })
  })

  test.each<[string, Step]>([
    ["words", { text: "word ".repeat(100) }],
    ["thoughts", { reasoning: "hm, ".repeat(100) }],
    ["arguments", { calls: [{ id: "a", index: 0, name: "read", arguments: `{"a":"${"x".repeat(400)}` }] }],
    [
      "calls with numbers only",
      { chunk: { choices: [{ delta: { tool_calls: Array.from({ length: 600 }, (_, index) => ({ index })) } }] } },
    ],
  ])("beyond all limits are not waited for: a flood of %s is cut off", async (_, step) => {
    const { reply, server } = await replyTo(() => [...new Array<Step>(50).fill(step), { hang: true }], {
      tools,
      max_tokens: 100,
    })
    const { text, finish, usage } = reply!
    expect(finish).toBe("length")
    expect(text.length).toBeLessThan(2_500)
    expect(usage.output).toBeLessThan(700)
    await server.left
  })
})

describe("a server that accepts other parameters", () => {
  const refuses = (message: string) => ({ status: 400, json: { error: { message } } })
  const picky: Script = ({ body }) => {
    if (body.max_tokens !== undefined)
      return refuses("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")
    if (body.temperature !== undefined) return refuses("Unsupported value: 'temperature' does not support 0.")
    if (body.response_format !== undefined) return refuses("This response_format type is unavailable now")
    if (body.stream_options !== undefined) return refuses("Unknown field: stream_options")
    return ok
  }

  test("gets requests in the form that it accepts from then on", async () => {
    const server = await modelServer(picky)
    const model = opened(server)
    const request = { ...hello, json_schema: { type: "object" } }
    expect(await model.reply(request)).toMatchObject({ text: "fine" })
    expect(model.slept).toEqual([])
    expect(server.requests).toHaveLength(5)
    expect(Object.keys(server.requests[4]!.body).sort()).toEqual([
      "max_completion_tokens",
      "messages",
      "model",
      "stream",
    ])
    await model.reply(request)
    expect(server.requests).toHaveLength(6)
  })

  test("but refuses every request the same way is given up", async () => {
    const all = "max_completion_tokens temperature response_format stream_options"
    const { error, server } = await replyTo(() => refuses(all))
    expect(error).toMatchObject({ code: "llm_failed" })
    expect(server.requests).toHaveLength(5)
  })

  test("gets the schema of the answer", async () => {
    const schema = { type: "object", properties: { a: { type: "string" } } }
    const { server } = await replyTo(() => ok, { json_schema: schema })
    expect(server.requests[0]!.body.response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "response", schema, strict: false },
    })
  })
})

describe("the key", () => {
  test("is in no error, whatever a server does with it", async () => {
    const echoes: Answer[] = [
      { status: 401, json: { error: { message: `Incorrect API key provided: ${KEY}.` } } },
      {
        status: 401,
        json: { error: { message: `Incorrect API key provided: ${KEY.slice(0, 12)}***${KEY.slice(-4)}.` } },
      },
      { status: 401, body: `${"x".repeat(190)} ${KEY}` },
      { status: 500, body: `Bearer ${KEY.slice(4)}` },
      { status: 400, json: { error: { message: "no", code: KEY, param: KEY } } },
      { status: 302, headers: { location: `https://evil.example/?k=${KEY}` } },
      [{ chunk: { error: { message: `key=${KEY}` } } }],
      [{ raw: `data: ${KEY}\n\n` }],
      [{ chunk: { choices: KEY } }],
      { json: { choices: [{ message: { content: 5, key: KEY } }] } },
      { reset: true },
    ]
    for (const answer of echoes) {
      const { error } = await replyTo(() => answer)
      expect(error, JSON.stringify(answer)).toMatchObject({ name: "DexError" })
      const shown = inspect(error, { depth: 20, showHidden: true }) + JSON.stringify(error) + error!.stack
      for (let at = 0; at + 8 <= KEY.length; at++) expect(shown).not.toContain(KEY.slice(at, at + 8))
      // Neither is the prompt.
      expect(shown).not.toContain("Be brief.")
    }
  })

  test("does not leave this machine unless it is encrypted on the way", async () => {
    const settings = { provider: "http://models.example/v1", model: "m", temperature: 0, maxTokens: 100, apiKey: KEY }
    await expect(openModel(settings).reply(hello)).rejects.toMatchObject({
      code: "llm_settings",
      message: expect.stringMatching(/models\.example unencrypted/),
    })
  })

  test("and the text go to the provider's address only", async () => {
    const hosts: (string | undefined)[] = []
    const proxy = createServer((request, response) => {
      hosts.push(request.headers.host)
      response.end()
    })
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve))
    onTestFinished(() => void proxy.close())
    const elsewhere = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`
    for (const name of ["OPENAI_BASE_URL", "AI_GATEWAY_BASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"]) {
      process.env[name] = elsewhere
      onTestFinished(() => void delete process.env[name])
    }
    expect((await replyTo(() => ok)).reply).toMatchObject({ text: "fine" })
    expect(hosts).toEqual([])
  })
})
