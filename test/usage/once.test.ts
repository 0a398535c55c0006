import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { SPENDING_FILE } from "../../src/core/formats.ts"
import { call, text, writer } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex } from "../support/warm.ts"

// For every agent: a session, what continues or copies it, and its subagents. The tokens of each answer are a power of two, so a
// sum shows which answers are in it, and how often.

const id = (n: number) => `0000000${n}-0000-7000-8000-000000000000`
const time = (minute: number) => new Date(Date.UTC(2026, 10, 3, 10, minute)).toISOString()
const ms = (minute: number) => Date.UTC(2026, 10, 3, 10, minute)

function put(home: string, path: string, content: unknown): void {
  mkdirSync(dirname(join(home, path)), { recursive: true })
  const lines = Array.isArray(content)
    ? content.map((one) => `${JSON.stringify(one)}\n`).join("")
    : JSON.stringify(content)
  writeFileSync(join(home, path), lines)
}

async function sums(home: string): Promise<{ rolled: object; separate: object; total: number; subagents: number }> {
  expect((await warmDex(home, ["sync"])).code).toBe(0)
  const rows = async (...more: string[]) => {
    const run = await warmDex(home, ["usage", "conversation", "--json", ...more])
    expect(run.code, run.stderr).toBe(0)
    return JSON.parse(run.stdout)
  }
  const short = ({ rows }: { rows: { key: string; tokens: number }[] }) =>
    Object.fromEntries(
      rows.map(({ key, tokens }) => [key.replace(/^\w+:/, "").replace(/^0000000(\d).*/, "$1"), tokens]),
    )
  const rolled = await rows()
  // Counted from the history alone, it equals what the syncs stored.
  rmSync(join(home, ".dex", SPENDING_FILE))
  expect(await rows()).toEqual(rolled)
  const { tokens, subagent_tokens } = rolled.total
  return {
    rolled: short(rolled),
    separate: short(await rows("--subagents")),
    total: tokens,
    subagents: subagent_tokens,
  }
}

test("Claude Code: counts tokens once in a resumed file, a fork's file, a subagent's file, and one that exists only in progress records", async () => {
  const home = tempDir()
  const answer = (file: ReturnType<typeof writer>, tokens: number, minute: number, more: object = {}) =>
    file.add({
      type: "assistant",
      message: message(tokens),
      requestId: `r${tokens}`,
      timestamp: time(minute),
      ...more,
    })
  const message = (tokens: number) => ({
    ...{ id: `m${tokens}`, type: "message", role: "assistant", model: "claude-opus-4-5" },
    content: [text(`answer ${tokens}`)],
    usage: { input_tokens: tokens, output_tokens: 0 },
  })
  const main = writer({ sessionId: id(1) }, "a")
  main.prompt("Begin", { timestamp: time(0) })
  answer(main, 1, 1)
  answer(main, 1, 1) // each block of an answer is a separate record, with the same count
  main.add({
    type: "assistant",
    message: {
      ...message(2),
      content: [call("t1", "Task", { prompt: "Look" }), call("t2", "Task", { prompt: "Look on" })],
    },
    timestamp: time(2),
  })
  const shared = [...main.records]
  const inside = [
    { type: "user", message: { role: "user", content: [text("Look")] }, uuid: "p1", timestamp: time(3) },
    { type: "assistant", message: message(8), uuid: "p2", timestamp: time(4) },
  ]
  for (const one of inside)
    main.add({
      type: "progress",
      data: { type: "agent_progress", agentId: "a1", prompt: "Look", message: one, normalizedMessages: [] },
      parentToolUseID: "t1",
      timestamp: time(5),
    })
  main.prompt("Go on", { timestamp: time(6) })
  answer(main, 4, 7)
  put(home, `.claude/projects/-home-dev-proj/${id(1)}.jsonl`, main.records)
  const own = writer({ sessionId: id(1), agentId: "b2", isSidechain: true }, "b")
  own.prompt("Look on", { timestamp: time(3) })
  answer(own, 16, 4)
  put(home, `.claude/projects/-home-dev-proj/${id(1)}/subagents/agent-b2.jsonl`, own.records)
  for (const [n, tokens] of [
    [2, 32],
    [3, 64],
  ] as const) {
    const copy = writer({ sessionId: id(n) }, `c${n}`)
    for (const record of shared) copy.plain({ ...record, sessionId: id(n) })
    copy.goTo(String(shared.at(-1)!.uuid))
    copy.prompt(`Otherwise ${n}`, { timestamp: time(10 * n) })
    answer(copy, tokens, 10 * n + 1)
    put(home, `.claude/projects/-home-dev-proj/${id(n)}.jsonl`, copy.records)
  }
  const { rolled, separate, total, subagents } = await sums(home)
  expect([total, subagents]).toEqual([127, 24])
  expect(rolled).toEqual({ 1: 1 + 2 + 4 + 8 + 16, 2: 32, 3: 64 })
  expect(Object.values(separate).sort((a, b) => a - b)).toEqual([7, 8, 16, 32, 64])

  // The same if the forks are read before their original, each by its own sync.
  const late = tempDir()
  const fileOf = (at: string, n: number) => join(at, `.claude/projects/-home-dev-proj/${id(n)}.jsonl`)
  for (const n of [3, 2, 1]) {
    mkdirSync(dirname(fileOf(late, n)), { recursive: true })
    writeFileSync(fileOf(late, n), readFileSync(fileOf(home, n)))
    expect((await sums(late)).total).toBe({ 3: 3 + 64, 2: 3 + 64 + 32, 1: 127 - 16 }[n])
  }
  renameSync(
    join(home, `.claude/projects/-home-dev-proj/${id(1)}`),
    join(late, `.claude/projects/-home-dev-proj/${id(1)}`),
  )
  expect((await sums(late)).total).toBe(127)
})

test("Codex: counts tokens once with repeated counts, a resumed file, a fork, and a subagent that replays its parent", async () => {
  const home = tempDir()
  const says = (role: string, words: string) => [
    "response_item",
    { type: "message", role, content: [{ type: role === "user" ? "input_text" : "output_text", text: words }] },
  ]
  /** Ids begin with the time: a thread copies only turns that are older than itself. */
  const thread = (n: number) => `019d${n}000-0000-7000-8000-000000000000`
  let spent = 0
  const turn = (n: string, tokens: number) => {
    spent += tokens
    const count = [
      "event_msg",
      {
        type: "token_count",
        info: {
          last_token_usage: { input_tokens: tokens, output_tokens: 0 },
          total_token_usage: { input_tokens: spent, output_tokens: 0 },
        },
      },
    ]
    return [
      ["turn_context", { turn_id: `019d${n}-0000-7000-8000-000000000000`, model: "gpt-5-codex" }],
      says("user", `question ${n}`),
      says("assistant", `answer ${n}`),
      count,
      count, // again when the limits were refreshed
    ]
  }
  const meta = (n: number, more: object = {}) => [
    "session_meta",
    { id: thread(n), cwd: "/code/api", source: "cli", ...more },
  ]
  const rollout = (n: number, lines: unknown[][]) =>
    put(
      home,
      `.codex/sessions/2026/11/03/rollout-2026-11-03T10-00-0${n}-${thread(n)}.jsonl`,
      lines.map(([type, payload], i) => ({ timestamp: time(n * 10 + i / 60), type, payload })),
    )
  const first = [...turn("1001", 1), ...turn("1002", 2)]
  rollout(1, [meta(1), ...first, ...turn("5001", 4)])
  spent = 3
  rollout(2, [meta(2, { forked_from_id: thread(1) }), meta(1), ...first, ...turn("2001", 8)])
  spent = 3
  const spawned = { source: { subagent: { thread_spawn: { parent_thread_id: thread(1), depth: 1 } } } }
  rollout(3, [meta(3, spawned), meta(1), ...first, ...turn("3001", 16)])
  const { rolled, separate, total, subagents } = await sums(home)
  expect([total, subagents]).toEqual([31, 16])
  expect(rolled).toEqual({ [thread(1)]: 1 + 2 + 4 + 16, [thread(2)]: 8 })
  expect(separate).toEqual({ [thread(1)]: 7, [thread(2)]: 8, [thread(3)]: 16 })
})

test("OpenCode: counts tokens once with several steps of one message, a fork that copies under new names, and a subagent", async () => {
  const home = tempDir()
  const root = ".local/share/opencode/storage"
  const session = (n: number, began: number, more: object = {}) =>
    put(home, `${root}/session/global/ses_${id(n)}.json`, {
      ...{ id: `ses_${id(n)}`, version: "1.1.65", projectID: "global", directory: "/code/api", title: `Session ${n}` },
      time: { created: ms(began), updated: ms(began + 5) },
      ...more,
    })
  const say = (n: number, name: string, minute: number, about: object, parts: object[]) => {
    const message = `msg_${n}${name}`
    put(home, `${root}/message/ses_${id(n)}/${message}.json`, {
      ...{ id: message, sessionID: `ses_${id(n)}`, time: { created: ms(minute), completed: ms(minute) } },
      ...about,
    })
    for (const [i, part] of parts.entries())
      put(home, `${root}/part/${message}/prt_${n}${name}${i}.json`, {
        ...{ id: `prt_${n}${name}${i}`, messageID: message, sessionID: `ses_${id(n)}` },
        ...part,
      })
  }
  const ask = (n: number, name: string, minute: number) => say(n, name, minute, { role: "user" }, [text("do it")])
  const counts = (input: number) => ({ input, output: 0, reasoning: 0, cache: { read: 0, write: 0 } })
  const answer = (n: number, name: string, minute: number, steps: number[]) =>
    say(
      n,
      name,
      minute,
      { role: "assistant", modelID: "claude-opus-4-5", providerID: "anthropic", tokens: counts(steps.at(-1)!) },
      [
        text("done"),
        ...steps.map((tokens) => ({ type: "step-finish", reason: "stop", cost: 0, tokens: counts(tokens) })),
      ],
    )
  session(1, 0)
  ask(1, "a", 1)
  answer(1, "b", 2, [1, 2])
  answer(1, "c", 30, [4])
  session(2, 10)
  ask(2, "d", 1)
  answer(2, "e", 2, [1, 2])
  ask(2, "f", 11)
  answer(2, "g", 12, [8])
  session(3, 3, { parentID: `ses_${id(1)}` })
  ask(3, "h", 3)
  answer(3, "i", 4, [16])
  const { rolled, total, subagents } = await sums(home)
  expect([total, subagents]).toEqual([31, 16])
  expect(rolled).toEqual({ [`ses_${id(1)}`]: 1 + 2 + 4 + 16, [`ses_${id(2)}`]: 8 })
})

test("Gemini CLI: counts tokens once in a resumed session and its subagent", async () => {
  const home = tempDir()
  const folder = ".gemini/tmp/proj/chats"
  const uuid = (n: number) => `e0000000-0000-4000-8000-00000000000${n}`
  const answer = (n: number, tokens: number, minute: number) => ({
    ...{ id: uuid(n), timestamp: time(minute), type: "gemini", content: `answer ${n}`, model: "gemini-2.5-pro" },
    tokens: { input: tokens, output: 0, cached: 0, thoughts: 0, tool: 0, total: tokens },
  })
  const ask = (n: number, minute: number) => ({
    id: uuid(n),
    timestamp: time(minute),
    type: "user",
    content: [{ text: `question ${n}` }],
  })
  const header = { sessionId: id(1), projectHash: "proj", startTime: time(0), lastUpdated: time(9), kind: "main" }
  put(home, `${folder}/session-2026-11-03T10-00-00000001.jsonl`, [
    header,
    ask(1, 1),
    answer(2, 1, 2),
    answer(2, 1, 2), // written again when its tools were done
    { $set: { lastUpdated: time(5) } },
    ask(3, 6),
    answer(4, 2, 7),
  ])
  const inner = { ...header, sessionId: id(2), kind: "subagent" }
  put(home, `${folder}/${id(1)}/${id(2)}.jsonl`, [inner, ask(5, 3), answer(6, 4, 4)])
  const { rolled, total, subagents } = await sums(home)
  expect([rolled, total, subagents]).toEqual([{ 1: 7 }, 7, 4])
})

test("Pi: counts tokens once in a session, an abandoned branch in it, and a fork of it", async () => {
  const home = tempDir()
  const usage = (input: number) => ({ input, output: 0, cacheRead: 0, cacheWrite: 0, totalTokens: input })
  const entry = (n: number, parent: number | null, message: object) => ({
    ...{
      type: "message",
      id: `0000000${n}`,
      parentId: parent === null ? null : `0000000${parent}`,
      timestamp: time(n),
    },
    message: { timestamp: ms(n), ...message },
  })
  const ask = (n: number, parent: number | null) => entry(n, parent, { role: "user", content: `question ${n}` })
  const answer = (n: number, parent: number, tokens: number) =>
    entry(n, parent, {
      role: "assistant",
      content: [text(`answer ${n}`)],
      model: "claude-opus-4-5",
      usage: usage(tokens),
      stopReason: "stop",
    })
  const file = (n: number) => `.pi/agent/sessions/--code-api--/2026-11-03T10-0${n}-00-000Z_${id(n)}.jsonl`
  const header = (n: number, more: object = {}) => ({
    type: "session",
    version: 3,
    id: id(n),
    timestamp: time(n),
    cwd: "/code/api",
    ...more,
  })
  const shared = [ask(1, null), answer(2, 1, 1)]
  put(home, file(1), [header(1), ...shared, answer(3, 1, 2), ask(4, 3), answer(5, 4, 4)])
  put(home, file(2), [header(2, { parentSession: join(home, file(1)) }), ...shared, ask(6, 2), answer(7, 6, 8)])
  const { rolled, total } = await sums(home)
  expect([rolled, total]).toEqual([{ 1: 7, 2: 8 }, 15])
})
