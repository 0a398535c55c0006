import { createHash } from "node:crypto"
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { zstdCompressSync } from "node:zlib"
import { describe, expect, onTestFinished, test, vi } from "vitest"
import { codexConnector } from "../../src/agents/codex/connector.ts"
import { splitPrompt } from "../../src/agents/codex/items.ts"
import { stripHistoryRow } from "../../src/agents/codex/strip.ts"
import { isUnreadable, type Unit } from "../../src/agents/kit/connector.ts"
import { parsePatch, patchIn } from "../../src/agents/kit/effects.ts"
import type { Conversation, Message } from "../../src/core/conversation.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { conversationTitle } from "../../src/ingest/title.ts"
import { hostileCopies } from "../support/hostile.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/codex"
testConnector(codexConnector, FIXTURES)

describe("a thread that has no rollout", () => {
  const HISTORY = "test/fixtures/codex/0.169-history-only"
  const itemsOf = (...items: RawRecord[]) => {
    const rows = items.map((item, rollout_ordinal) => ({
      ...{ table: "thread_items", turn_id: "t", rollout_ordinal, created_at_ms: 1795122505004, item_json: item },
    }))
    const header = { type: "dex-history", id: "thread", cwd: "/p" }
    return codexConnector.parse([header, ...rows], { key: "history:thread", path: "thread_history_1.sqlite" })
  }

  test("is read from the database of items, and one with a rollout is not", async () => {
    const keys = (await unitsOf(codexConnector, await homeOf(HISTORY))).map(({ key }) => key.slice(0, 8))
    expect(keys).toEqual(["history:", "rollout-"])
  })

  test("is not read if the database is older than its items, or damaged", async () => {
    const home = await homeOf(HISTORY)
    const path = join(home, ".codex/thread_history_1.sqlite")
    const db = new DatabaseSync(path)
    db.exec("drop table thread_items")
    db.close()
    expect(await unitsOf(codexConnector, home)).toHaveLength(1)
    writeFileSync(path, "not a database")
    const found = [...codexConnector.discover(join(home, ".codex"), () => false)]
    expect(found).toMatchObject([{}, { path, unreadable: expect.stringContaining("not readable as a database") }])
  })

  test("keeps the calls of servers as remote, plans, thoughts and deleted files", () => {
    const { conversations, unknown } = itemsOf(
      {
        type: "mcpToolCall",
        id: "call_1",
        server: "s",
        tool: "find",
        arguments: { q: 1 },
        result: { content: [{ text: "quoll" }] },
      },
      { type: "reasoning", id: "rs_1", summary: ["Think."], content: [] },
      { type: "plan", id: "plan_1", text: "First this." },
      {
        type: "fileChange",
        id: "call_2",
        changes: [{ path: "/a", kind: { type: "delete" }, diff: "" }],
        status: "completed",
      },
      { type: "contextCompaction", id: "x" },
      { type: "newKind", id: "y" },
    )
    const parts = conversations[0]!.messages.flatMap((message) => message.parts)
    expect(parts.map(({ type, origin, text }) => `${type} ${origin} ${text}`)).toEqual([
      'tool_call agent {"q":1}',
      "tool_result web quoll",
      "thinking agent Think.",
      "text agent First this.",
      'tool_call agent {"files":["/a"]}',
      "tool_result local_tool ",
    ])
    expect(conversations[0]!.messages.flatMap(({ effects = [] }) => effects)).toMatchObject([
      { type: "file", path: "/a" },
    ])
    expect(unknown).toEqual({ "event_msg/item_completed/NewKind": 1 })
  })

  test("hostile items are counted, not thrown, and no bytes of images are kept", () => {
    const odd = [
      null,
      7,
      [],
      {},
      { type: "fileChange", changes: [{ path: "__proto__", kind: "x" }] },
      { type: "userMessage", content: 5 },
    ]
    expect(() => itemsOf(...(odd as RawRecord[]))).not.toThrow()
    const image = { type: "image", url: `data:image/png;base64,${"QUJD".repeat(20)}` }
    const row = { item_json: { type: "userMessage", content: [image] } }
    const generated = { item_json: { type: "imageGeneration", result: "QUJDQUJD" } }
    expect(JSON.stringify([stripHistoryRow(row), stripHistoryRow(generated)])).not.toContain("QUJD")
  })
})

const THREAD = "019d0000-0000-7000-8000-00000000000a"
const STEM = `rollout-2026-03-01T10-00-00-${THREAD}`

/** Lines of a rollout, from their types and payloads, one second apart. */
function rollout(...lines: [type: string, payload: RawRecord, more?: RawRecord][]): RawRecord[] {
  return lines.map(([type, payload, more], i) => ({
    timestamp: `2026-03-01T10:00:${String(i).padStart(2, "0")}.000Z`,
    ...more,
    type,
    payload,
  }))
}
const meta = (more: RawRecord = {}): [string, RawRecord] => [
  "session_meta",
  { id: THREAD, cwd: "/home/dev/app", source: "cli", originator: "codex-tui", ...more },
]
const says = (role: string, text: string, more: RawRecord = {}): [string, RawRecord] => [
  "response_item",
  { type: "message", role, content: [{ type: "input_text", text }], ...more },
]
const event = (type: string, more: RawRecord = {}): [string, RawRecord] => ["event_msg", { type, ...more }]
const item = (type: string, more: RawRecord = {}): [string, RawRecord] => ["response_item", { type, ...more }]

/** Parses a file of these lines through `read`, so that `strip` is applied. */
async function parsed(records: RawRecord[]): Promise<Conversation> {
  const { conversations } = codexConnector.parse(await kept(records), { key: STEM, path: "" })
  return conversations[0]!
}
async function kept(records: RawRecord[]): Promise<RawRecord[]> {
  const home = tempDir()
  return recordsOf(codexConnector, (await write(home, `${STEM}.jsonl`, jsonl(records)))[0]!)
}
async function write(home: string, name: string, content: string | Buffer, folder = "sessions/2026/03/01") {
  const path = join(home, ".codex", folder, name)
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, content)
  return unitsOf(codexConnector, home)
}
function jsonl(records: unknown[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("")
}
async function readOn(unit: Unit, after?: Parameters<typeof codexConnector.read>[1]) {
  const reading = await codexConnector.read(unit, after, join(tempDir(), "scratch"))
  const records = [...reading.records]
  return { mode: reading.mode, records, ...reading.end() }
}
const textsOf = (message: Message | undefined, origin: string) =>
  message?.parts.filter((part) => part.origin === origin).map((part) => part.text)
const allTexts = (conversation: Conversation) => conversation.messages.flatMap(({ parts }) => parts.map((p) => p.text))

describe("discovery", () => {
  test("archiving or compressing a rollout creates no new unit, and reading continues with nothing new", async () => {
    const home = tempDir()
    const content = jsonl(rollout(meta(), says("user", "hello")))
    const [plain] = await write(home, `${STEM}.jsonl`, content)
    const first = await readOn(plain!)
    expect(first.records).toHaveLength(2)

    mkdirSync(join(home, ".codex/archived_sessions"))
    renameSync(plain!.path, join(home, ".codex/archived_sessions", basename(plain!.path)))
    const [archived] = await unitsOf(codexConnector, home)
    expect(archived!.key).toBe(plain!.key)
    expect(await readOn(archived!, first.cursor)).toMatchObject({ mode: "append", records: [] })

    rmSync(archived!.path)
    const [packed] = await write(home, `${STEM}.jsonl.zst`, zstdCompressSync(content))
    expect(packed!.key).toBe(plain!.key)
    const again = await readOn(packed!, first.cursor)
    expect(again).toMatchObject({ mode: "append", records: [], skipped: [] })
    expect(again.cursor).toEqual(first.cursor)
  })

  test("reads a plain file instead of its compressed copy", async () => {
    const home = tempDir()
    await write(home, `${STEM}.jsonl.zst`, zstdCompressSync(jsonl(rollout(meta(), says("user", "old")))))
    const units = await write(home, `${STEM}.jsonl`, jsonl(rollout(meta(), says("user", "new"))))
    expect(units.map(({ path }) => basename(path))).toEqual([`${STEM}.jsonl`])
  })

  test("locks, temporary files and other programs' files are not rollouts", async () => {
    const home = tempDir()
    for (const name of ["rollout-compression.lock", `${STEM}.jsonl.zst.tmp`, "history.jsonl", "notes.txt"]) {
      await write(home, name, "{}\n")
    }
    expect(await unitsOf(codexConnector, home)).toEqual([])
  })

  test("a symbolic link to a transcript is not followed, and reported", async () => {
    const home = tempDir()
    await write(home, `${STEM}.jsonl`, "{}\n")
    const elsewhere = join(home, "elsewhere.jsonl")
    writeFileSync(elsewhere, "{}\n")
    symlinkSync(elsewhere, join(home, ".codex/sessions/rollout-2026-link.jsonl"))
    const found = [...codexConnector.discover(join(home, ".codex"), () => false)]
    expect(found.filter(isUnreadable)).toEqual([
      { unreadable: "a symbolic link, not followed", path: join(home, ".codex/sessions/rollout-2026-link.jsonl") },
    ])
    expect(found).toHaveLength(2)
  })

  test("CODEX_HOME moves the root, and a missing root is not an error", () => {
    const machine = { home: "/home/dev", env: { CODEX_HOME: "/elsewhere" }, platform: "linux" as const }
    expect(codexConnector.roots(machine)).toEqual(["/elsewhere"])
    expect([...codexConnector.discover(join(tempDir(), "missing"), () => false)]).toEqual([])
  })
})

describe("names and lineage outside the rollout", () => {
  const named = (home: string, name: string) => {
    const path = join(home, ".codex/state_5.sqlite")
    const db = new DatabaseSync(path)
    db.exec("create table if not exists threads (id text primary key, title text, first_user_message text, name text)")
    db.prepare("insert or replace into threads values (?, 'hello', 'hello', ?)").run(THREAD, name)
    db.close()
  }

  test("a new name changes the stamp, and is read as one more record", async () => {
    const home = tempDir()
    const [bare] = await write(home, `${STEM}.jsonl`, jsonl(rollout(meta(), says("user", "hello"))))
    const first = await readOn(bare!)
    named(home, "Greetings")
    const [unit] = await unitsOf(codexConnector, home)
    expect(unit!.stamp).not.toBe(bare!.stamp)
    const second = await readOn(unit!, first.cursor)
    expect(second.records).toEqual([{ type: "dex-thread", name: "Greetings" }])
    expect((await readOn(unit!, second.cursor)).records).toEqual([])
    named(home, "Farewells")
    const [renamed] = await unitsOf(codexConnector, home)
    const third = await readOn(renamed!, second.cursor)
    const all = [...first.records, ...second.records, ...third.records]
    expect(codexConnector.parse(all, unit!).conversations[0]!.title).toEqual({ text: "Farewells", from: "person" })
  })

  test("a title that repeats the first prompt is ignored", async () => {
    const home = tempDir()
    await write(home, `${STEM}.jsonl`, jsonl(rollout(meta(), says("user", "hello"))))
    named(home, "")
    expect((await conversationsOf(codexConnector, home)).get(THREAD)!.title).toBeUndefined()
  })

  test("an unreadable database is reported, and the rollouts are still read", async () => {
    const home = tempDir()
    await write(home, `${STEM}.jsonl`, jsonl(rollout(meta(), says("user", "hello"))))
    writeFileSync(join(home, ".codex/state_5.sqlite"), "this is no database, however long it may be ".repeat(50))
    const found = [...codexConnector.discover(join(home, ".codex"), () => false)]
    expect(found.filter(isUnreadable).map(({ path }) => basename(path))).toEqual(["state_5.sqlite"])
    expect(found).toHaveLength(2)
  })

  test("a fork does not get its parent's name", async () => {
    const conversation = await parsed(
      rollout(
        meta({ forked_from_id: "019d0000-0000-7000-8000-00000000000b" }),
        event("thread_name_updated", { thread_id: "019d0000-0000-7000-8000-00000000000b", thread_name: "Parent" }),
        says("user", "hello"),
      ),
    )
    expect(conversation.title).toBeUndefined()
  })
})

describe("compressed rollouts", () => {
  test("a file that decompresses without end is abandoned and reported", async () => {
    const home = tempDir()
    const bomb = zstdCompressSync(Buffer.alloc(65 << 20, 32))
    const [unit] = await write(home, `${STEM}.jsonl.zst`, bomb)
    const { records, skipped } = await readOn(unit!)
    expect(records).toEqual([])
    expect(skipped[0]!.reason).toMatch(/decompresses to more than/)
  })

  test("the readable part of a damaged file is read, and the damage is reported", async () => {
    const home = tempDir()
    const lines = jsonl(rollout(meta(), ...Array.from({ length: 3000 }, (_, i) => says("user", `line ${i * 7919}`))))
    const [unit] = await write(home, `${STEM}.jsonl.zst`, zstdCompressSync(lines))
    truncateSync(unit!.path, Math.floor(statSync(unit!.path).size * 0.9))
    const { records, skipped } = await readOn(unit!)
    expect(skipped[0]!.reason).toMatch(/not readable as zstd/)
    expect(records.length).toBeLessThan(3001)
    expect(records.length).toBeGreaterThan(1000)
  })

  test("reports its decompressed size, which determines the memory for reading it", async () => {
    const messages = Array.from({ length: 3000 }, (_, i) =>
      says("user", createHash("sha256").update(`${i}`).digest("hex").repeat(2)),
    )
    const lines = jsonl(rollout(meta(), ...messages))
    const [unit] = await write(tempDir(), `${STEM}.jsonl.zst`, zstdCompressSync(lines))
    expect(statSync(unit!.path).size).toBeLessThan(lines.length / 2)
    expect(unit!.bytes).toBeGreaterThan(lines.length / 2)
  })

  test("nothing is left in any temporary folder, read or not", async () => {
    const temp = tempDir()
    vi.stubEnv("TMPDIR", temp)
    onTestFinished(() => void vi.unstubAllEnvs())
    const [home, scratch] = [tempDir(), join(tempDir(), "scratch")]
    const [unit] = await write(home, `${STEM}.jsonl.zst`, zstdCompressSync(jsonl(rollout(meta()))))
    for (const _ of (await codexConnector.read(unit!, undefined, scratch)).records);
    ;(await codexConnector.read(unit!, undefined, scratch)).end()
    for (const _ of (await codexConnector.read(unit!, undefined, scratch)).records) break
    expect(readdirSync(scratch)).toEqual([])
    expect(readdirSync(temp).filter((name) => name.startsWith("dex-zstd"))).toEqual([])
  })
})

describe("origins", () => {
  test.each([
    ["<environment_context>\n<cwd>/x</cwd>\n</environment_context>", []],
    ["<user_instructions>\nUse tabs.\n</user_instructions>\n\nfix the bug", ["fix the bug"]],
    ["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\na\n</INSTRUCTIONS>", []],
    ["# AGENTS.md instructions for /x\n\n<INSTRUCTIONS>\na\n</INSTRUCTIONS>\n\nfix it", ["fix it"]],
    ["# AGENTS.md\nno end in sight", []],
    ['<codex_internal_context source="goal">\ngo\n</codex_internal_context>', []],
    ["<goal_context>go</goal_context>", []],
    ["<turn_aborted>\nstopped\n</turn_aborted>", []],
    ['<skill name="x">\nhow to\n</skill>\nuse it', ["use it"]],
    ["# Context from my IDE setup:\n\n## Open tabs:\n- a.ts\n\n## My request for Codex:\nrename it", ["rename it"]],
    ["why does <environment_context> appear in my prompt?", ["why does <environment_context> appear in my prompt?"]],
    ["# A heading of my own\nand text", ["# A heading of my own\nand text"]],
  ])("the prompt is the text without the envelopes: %j", (text, typed) => {
    expect(splitPrompt(text).flatMap((run) => (run.injected ? [] : run.text))).toEqual(typed)
  })

  test("Codex's own kinds of pieces win over what the text looks like", async () => {
    const about = { content_item_kinds: ["hooks.additional_context", "user.text"] }
    const content = [
      { type: "input_text", text: "from a hook" },
      { type: "input_text", text: "<goal_context>typed, for once</goal_context>" },
    ]
    const message = { type: "message", role: "user", content, internal_chat_message_metadata_passthrough: about }
    const { messages } = await parsed(rollout(meta(), ["response_item", message]))
    expect(textsOf(messages[0], "injected")).toEqual(["from a hook"])
    expect(textsOf(messages[0], "person")).toEqual(["<goal_context>typed, for once</goal_context>"])
  })

  test("developer messages are never the person's", async () => {
    const { messages } = await parsed(rollout(meta(), says("developer", "be brief"), says("user", "hello")))
    expect(messages.map(({ role }) => role)).toEqual(["system", "user"])
    expect(textsOf(messages[0], "injected")).toEqual(["be brief"])
  })

  test("a subagent's prompt is its parent's, except in copies from an older turn", async () => {
    const spawn = { parent_thread_id: "019c0000-0000-7000-8000-00000000000b", depth: 1 }
    const conversation = await parsed(
      rollout(
        meta({ source: { subagent: { thread_spawn: spawn } } }),
        ["turn_context", { turn_id: "019c0000-0000-7000-8000-00000000000c" }],
        says("user", "the person's"),
        ["turn_context", { turn_id: "019d0001-0000-7000-8000-00000000000c" }],
        says("user", "the parent's"),
      ),
    )
    expect(conversation).toMatchObject({ kind: "subagent", parent: { id: spawn.parent_thread_id } })
    expect(conversation.messages.map(({ parts }) => parts[0]!.origin)).toEqual(["person", "agent"])
    expect(conversationTitle(conversation)).toEqual({ text: "The parent's", from: "first_prompt" })
  })

  test.each([
    [{ source: "exec" }, "automation"],
    [{ source: "vscode", originator: "codex_sdk_ts" }, "automation"],
    [{ source: "cli", thread_source: "memory_consolidation" }, "automation"],
    [{ source: { subagent: "review" } }, "subagent"],
    [{ source: "vscode", originator: "codex_vscode" }, "person"],
  ])("a thread of %j has the kind %s", async (more, kind) => {
    expect((await parsed(rollout(meta(more), says("user", "x")))).kind).toBe(kind)
  })
})

describe("duplicates", () => {
  test("events repeat response items: each message is shown once", async () => {
    const { messages } = await parsed(
      rollout(
        meta(),
        says("user", "hello", { id: "msg_0123456789abcdef01" }),
        event("user_message", { message: "hello" }),
        event("item_completed", {
          item: { type: "UserMessage", id: "i1", content: [{ type: "text", text: "hello" }] },
        }),
        event("agent_message", { message: "hi" }),
        says("assistant", "hi", { id: "msg_0123456789abcdef02" }),
        event("item_completed", {
          item: { type: "AgentMessage", id: "msg_0123456789abcdef02", content: [{ type: "Text", text: "hi" }] },
        }),
      ),
    )
    expect(messages.map(({ key }) => key)).toEqual(["msg_0123456789abcdef01", "msg_0123456789abcdef02"])
  })

  test("in a file without response items, the events are the conversation", async () => {
    const conversation = await parsed(
      rollout(
        meta(),
        event("user_message", { message: "<environment_context>x</environment_context>\n\nhello" }),
        event("agent_reasoning", { text: "greet" }),
        event("agent_message", { message: "hi" }),
      ),
    )
    expect(allTexts(conversation)).toEqual(["<environment_context>x</environment_context>", "hello", "greet", "hi"])
  })

  test("a plan that the reply contains is not shown again", async () => {
    const plan = (text: string) => event("item_completed", { item: { type: "Plan", id: text, text } })
    const conversation = await parsed(
      rollout(meta(), says("assistant", "<proposed_plan>one, two</proposed_plan>"), plan("one, two"), plan("three")),
    )
    expect(allTexts(conversation)).toEqual(["<proposed_plan>one, two</proposed_plan>", "three"])
  })

  test("a record written twice is one message; other text under its id is another message", async () => {
    const id = "msg_0123456789abcdef01"
    const { messages } = await parsed(
      rollout(meta(), says("user", "a", { id }), says("user", "a", { id }), says("user", "b", { id })),
    )
    expect(messages).toHaveLength(2)
    expect(new Set(messages.map(({ key }) => key)).size).toBe(2)
  })
})

describe("forks", () => {
  test("a fork's copied messages have the parent's keys, and later messages have their own", async () => {
    const conversations = await conversationsOf(codexConnector, await homeOf(join(FIXTURES, "0.98-fork")))
    const [parent, fork] = [...conversations.values()].map(({ messages }) => messages)
    const keys = parent!.map(({ key }) => key)
    expect(fork!.slice(0, 5).map(({ key }) => key)).toEqual(keys.slice(0, 5))
    expect(parent!.slice(0, 5)).not.toEqual(fork!.slice(0, 5)) // the copies have new timestamps
    for (const { key } of fork!.slice(5)) expect(keys).not.toContain(key)
  })

  test("copies also match if their turns have no ids, or only numbers", async () => {
    const parent = "019d0000-0000-7000-8000-00000000000b"
    const lines = [
      says("user", "yes"),
      event("task_started", { turn_id: "1" }),
      item("function_call", { name: "shell", arguments: "{}", call_id: "call_0" }),
      says("user", "yes"),
      says("user", "yes"),
    ]
    const one = await parsed(rollout(["session_meta", { id: parent }], ...lines))
    const two = await parsed(rollout(meta(), ["session_meta", { id: parent }], ...lines))
    const other = await parsed(rollout(meta(), ...lines))
    const keys = one.messages.map(({ key }) => key)
    expect(new Set(keys).size).toBe(4)
    expect(two.messages.map(({ key }) => key)).toEqual(keys)
    for (const { key } of other.messages) expect(keys).not.toContain(key)
  })

  test("the first session_meta belongs to the file", async () => {
    const parent = { id: "019d0000-0000-7000-8000-00000000000b", cwd: "/home/dev/other", cli_version: "0.1.0" }
    const conversation = await parsed(
      rollout(meta({ forked_from_id: parent.id }), ["session_meta", parent], says("user", "x")),
    )
    expect(conversation).toMatchObject({ id: THREAD, fork_of: parent.id, cwds: ["/home/dev/app"] })
    expect(conversation.agent_version).toBeUndefined()
  })
})

describe("rollbacks", () => {
  const turns = (n: number) => Array.from({ length: n }, (_, i) => [says("user", `q${i}`), says("assistant", `a${i}`)])
  const abandoned = (conversation: Conversation) =>
    conversation.messages.flatMap((message) => (message.abandoned ? message.parts[0]!.text : []))

  test("a rollback abandons the last turns, counted from their prompts", async () => {
    const lines = [...turns(3).flat(), event("thread_rolled_back", { num_turns: 2 }), says("user", "q3")]
    expect(abandoned(await parsed(rollout(meta(), ...lines)))).toEqual(["q1", "a1", "q2", "a2"])
  })

  test("a second rollback counts only the remaining turns", async () => {
    const back = event("thread_rolled_back", { num_turns: 1 })
    const lines = [...turns(3).flat(), back, back, says("user", "q3")]
    expect(abandoned(await parsed(rollout(meta(), ...lines)))).toEqual(["q1", "a1", "q2", "a2"])
  })

  test("rolling back more turns than there are keeps everything before the first prompt", async () => {
    const lines = [says("developer", "be brief"), ...turns(2).flat(), event("thread_rolled_back", { num_turns: 9 })]
    expect(abandoned(await parsed(rollout(meta(), ...lines)))).toEqual(["q0", "a0", "q1", "a1"])
  })

  test("events that repeat prompts do not count as turns", async () => {
    const lines = [
      ...[0, 1].flatMap((i) => [says("user", `q${i}`), event("user_message", { message: `q${i}` })]),
      event("thread_rolled_back", { num_turns: 1 }),
    ]
    expect(abandoned(await parsed(rollout(meta(), ...lines)))).toEqual(["q1"])
  })
})

describe("calls and their effects", () => {
  const shell = (id: string, args: unknown) =>
    item("function_call", { name: "exec_command", arguments: JSON.stringify(args), call_id: id })
  const output = (id: string, text: unknown) => item("function_call_output", { call_id: id, output: text })
  const effects = ({ messages }: Conversation) => messages.flatMap((message) => message.effects ?? [])

  test("reads an exit code above the output, never inside it", async () => {
    const text =
      "Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 1\nOutput:\nProcess exited with code 0\n"
    const conversation = await parsed(rollout(meta(), shell("c1", { cmd: "make" }), output("c1", text)))
    expect(effects(conversation)).toMatchObject([{ command: "make", exit_status: 1, failed: true }])
    const quiet = await parsed(rollout(meta(), shell("c1", { cmd: "make" }), output("c1", "Exit code: 3\nhello")))
    expect(effects(quiet)).toEqual([{ type: "command", command: "make", call_id: "c1" }])
  })

  test("uses an event's exit code if the output has none, in either order", async () => {
    const done = { type: "CommandExecution", id: "c1", command: ["bash", "-lc", "make"], exit_code: 2 }
    for (const order of [
      [0, 1],
      [1, 0],
    ]) {
      const later = [event("item_completed", { item: done }), output("c1", "error: no rule")]
      const conversation = await parsed(rollout(meta(), shell("c1", { cmd: "make" }), ...order.map((i) => later[i]!)))
      expect(effects(conversation)).toMatchObject([{ exit_status: 2, error: "error: no rule" }])
    }
  })

  test("a commit is an effect of the command that made it", async () => {
    const lines = [shell("c1", { cmd: "git commit -m fix" }), output("c1", "[main 1a2b3c4] fix\n 1 file changed\n")]
    expect(effects(await parsed(rollout(meta(), ...lines)))).toContainEqual({
      type: "commit",
      hash: "1a2b3c4",
      subject: "fix",
      branch: "main",
      call_id: "c1",
    })
  })

  test("an MCP tool's result is from the web, by its namespace or by the event", async () => {
    const byName = item("function_call", { name: "note", namespace: "mcp__demo", arguments: "{}", call_id: "c1" })
    const byEvent = item("function_call", { name: "demo__note", arguments: "{}", call_id: "c2" })
    const end = event("mcp_tool_call_end", { call_id: "c2", result: { Err: "no" } })
    const { messages } = await parsed(rollout(meta(), byName, output("c1", "x"), byEvent, output("c2", "y"), end))
    expect(messages.filter(({ role }) => role === "tool").map(({ parts }) => parts[0])).toMatchObject([
      { tool: "mcp__demo__note", origin: "web", is_error: false },
      { tool: "demo__note", origin: "web", is_error: true },
    ])
  })

  test("a web search's results are only in its event", async () => {
    const search = item("web_search_call", { id: "ws_0123456789abcdef01", action: { type: "search", query: "x" } })
    const results = [{ title: "X", url: "https://x.example", snippet: "about x" }]
    const end = event("web_search_end", { call_id: "ws_0123456789abcdef01", results })
    const { messages } = await parsed(rollout(meta(), search, end))
    expect(messages[1]!.parts).toMatchObject([
      { type: "tool_result", text: "X\nhttps://x.example\nabout x", origin: "web", call_id: "ws_0123456789abcdef01" },
    ])
  })

  test("a patch without an outcome has no effect", async () => {
    const patch = "*** Begin Patch\n*** Update File: a.ts\n@@\n-a\n+b\n*** End Patch"
    const call = item("custom_tool_call", { name: "apply_patch", input: patch, call_id: "c1" })
    expect(effects(await parsed(rollout(meta(), call)))).toEqual([])
    const changed = item("custom_tool_call_output", { call_id: "c1", output: "Success. Updated the following files:" })
    expect(effects(await parsed(rollout(meta(), call, changed)))).toMatchObject([
      { path: "a.ts", added: 1, removed: 1 },
    ])
    const refused = event("patch_apply_end", { call_id: "c1", success: false, changes: {} })
    expect(effects(await parsed(rollout(meta(), call, changed, refused)))).toEqual([])
  })

  test("parses a patch with several hunks, a move, an addition and a deletion", () => {
    const text = [
      "cat <<EOF | apply_patch",
      "*** Begin Patch",
      "*** Update File: a.ts",
      "*** Move to: b.ts",
      "@@ class A",
      " keep",
      "-old",
      "+new",
      "@@",
      "+more",
      "*** End of File",
      "*** Add File: c.ts",
      "+one",
      "*** Delete File: d.ts",
      "*** End Patch",
      "EOF",
    ].join("\n")
    const { hunks, deleted } = parsePatch(patchIn(text)!)
    expect(hunks).toEqual([
      { path: "b.ts", old_start: 0, old_lines: 2, new_start: 0, new_lines: 2, lines: [" keep", "-old", "+new"] },
      { path: "b.ts", old_start: 0, old_lines: 0, new_start: 0, new_lines: 1, lines: ["+more"] },
      { path: "c.ts", old_start: 0, old_lines: 0, new_start: 1, new_lines: 1, lines: ["+one"] },
    ])
    expect(deleted).toEqual(["d.ts"])
  })
})

describe("tokens", () => {
  const usage = (input: number, cached: number) => ({
    input_tokens: input,
    cached_input_tokens: cached,
    output_tokens: 10,
    reasoning_output_tokens: 4,
  })
  const count = (last: number, total: number) =>
    event("token_count", { info: { last_token_usage: usage(last, 60), total_token_usage: usage(total, 60) } })

  test("a repeated count counts once, and cached tokens are not input", async () => {
    const lines = [says("assistant", "a"), count(100, 100), count(100, 100), event("token_count", { info: null })]
    const { messages } = await parsed(rollout(meta(), ...lines))
    expect(messages[0]!.usage).toEqual({ input: 40, output: 10, cache_read: 60, cache_write: 0, reasoning: 4 })
  })

  test("two calls with equal counts count twice", async () => {
    const { messages } = await parsed(rollout(meta(), says("assistant", "a"), count(100, 100), count(100, 200)))
    expect(messages[0]!.usage).toMatchObject({ input: 80, output: 20 })
  })

  test("usage records repeat the events: they count only if there are no events", async () => {
    const again: [string, RawRecord] = ["token_usage_record", { usage: usage(100, 60) }]
    const both = await parsed(rollout(meta(), says("assistant", "a"), again, count(100, 100)))
    const alone = await parsed(rollout(meta(), says("assistant", "a"), again))
    expect(both.messages[0]!.usage).toEqual(alone.messages[0]!.usage)
    expect(alone.messages[0]!.usage).toMatchObject({ input: 40 })
  })
})

describe("content that is not stored", () => {
  test("drops the harness's prompts, encrypted text, bytes and copies before anything is stored", async () => {
    const records = await kept(
      rollout(
        meta({ base_instructions: { text: "HARNESS" }, instructions: "HARNESS", dynamic_tools: [{ d: "HARNESS" }] }),
        ["world_state", { state: { host_skills: "HARNESS" } }],
        ["turn_context", { turn_id: "t", user_instructions: "HARNESS", model: "m" }],
        item("reasoning", { summary: [], encrypted_content: "HARNESS" }),
        item("agent_message", { author: "a", content: [{ type: "encrypted_content", encrypted_content: "HARNESS" }] }),
        item("image_generation_call", { id: "ig_1", result: Buffer.from("HARNESS").toString("base64") }),
        item("message", {
          role: "user",
          content: [{ type: "input_image", image_url: "data:image/png;base64,SEFSTkVTUw==" }],
        }),
        event("exec_command_end", { call_id: "c", exit_code: 0, aggregated_output: "HARNESS", stdout: "HARNESS" }),
        event("mcp_tool_call_end", {
          call_id: "c",
          invocation: { arguments: "HARNESS" },
          result: { Ok: { content: "HARNESS" } },
        }),
        event("user_message", { message: "x", images: ["data:image/png;base64,SEFSTkVTUw=="] }),
        ["compacted", { message: "short", replacement_history: [{ type: "message", content: "HARNESS" }] }],
      ),
    )
    const text = JSON.stringify(records)
    expect(text).not.toContain("HARNESS")
    expect(text).not.toContain("SEFSTkVTUw")
    expect(text).toContain('"bytes":7')
  })

  test("a text over a megabyte is cut, with a note", async () => {
    const { messages } = await parsed(rollout(meta(), says("user", "x".repeat(1_200_000))))
    expect(messages[0]!.parts[0]!.text).toMatch(/\[dex: 200000 characters not kept, sha256 [0-9a-f]{64}\]$/)
  })

  test("finds a compaction's summary that is only in the history", async () => {
    const history = [
      { type: "message", role: "user", content: [{ type: "input_text", text: "What was done so far: all." }] },
    ]
    const { messages } = await parsed(
      rollout(meta(), says("user", "go"), ["compacted", { message: "", replacement_history: history }]),
    )
    expect(messages[1]).toMatchObject({
      role: "system",
      parts: [{ type: "summary", text: "What was done so far: all." }],
    })
  })
})

test("never throws if any field has the wrong type", async () => {
  const home = await homeOf(join(FIXTURES, "0.98-legacy-events"))
  const [unit] = await unitsOf(codexConnector, home)
  const whole = await homeOf(join(FIXTURES, "0.166-exec-resumed"))
  const lines = [unit!, (await unitsOf(codexConnector, whole))[0]!].flatMap(({ path }) =>
    readFileSync(path, "utf8").trim().split("\n"),
  )
  const hostile = lines.flatMap((line) => [...hostileCopies(JSON.parse(line))])
  writeFileSync(unit!.path, jsonl(hostile))
  const { records, skipped } = await readOn(unit!)
  expect(skipped).toEqual([])
  expect(codexConnector.parse(records, unit!).conversations[0]!.messages.length).toBeGreaterThan(1000)
})

const SHARED = fileURLToPath(new URL("../../../shared", import.meta.url))
const SAMPLES = [join(SHARED, "samples/codex"), join(SHARED, "samples/mixed")].filter((path) => existsSync(path))
if (SAMPLES.length === 0) console.log("NOT RUN: codex over other people's samples, which are not on this machine")

/** Each was checked; the value explains why its text is not shown. */
const UNKNOWN_IN_SAMPLES = {
  "response_item/tool_call": "another project's invention for its tests: no release wrote it",
  "response_item/tool_result": "the same",
  "event_msg/turn.completed": "the stream of `codex exec --json`, not a rollout's event",
  "event_msg/codex/event/raw_item": "the same, with no text in it",
  "event_msg/account/rateLimits/updated": "a notification of the app server; no text",
  "(no type)": "history.jsonl, the prompts alone: not a rollout",
}

describe("other people's samples", () => {
  test.skipIf(SAMPLES.length === 0)(
    "reads every file without an exception, and every unknown type is explained",
    async () => {
      const unknown: Record<string, number> = {}
      let messages = 0
      for (const path of SAMPLES.flatMap(filesBelow)) {
        const stat = statSync(path)
        const unit = { key: basename(path), path, stamp: "", bytes: stat.size, modifiedAt: 0, bornAt: 0 }
        const parsed = codexConnector.parse(await recordsOf(codexConnector, unit), unit)
        for (const conversation of parsed.conversations) {
          const keys = conversation.messages.map(({ key }) => key)
          expect(new Set(keys).size).toBe(keys.length)
          messages += keys.length
        }
        if (!path.includes("mixed") || path.includes("codex")) {
          for (const [type, count] of Object.entries(parsed.unknown)) unknown[type] = (unknown[type] ?? 0) + count
        }
      }
      expect(messages).toBeGreaterThan(50)
      expect(Object.keys(unknown).sort()).toEqual(Object.keys(UNKNOWN_IN_SAMPLES).sort())
    },
  )

  const RECORDED = join(SHARED, "real-sessions/codex/CODEX_HOME")
  test.skipIf(!existsSync(RECORDED))("reads recorded sessions with their database, without unknown types", async () => {
    const home = tempDir()
    const root = join(home, ".codex")
    for (const path of filesBelow(RECORDED)) {
      const to = join(root, path.slice(RECORDED.length))
      mkdirSync(dirname(to), { recursive: true })
      copyFileSync(path, to)
    }
    const units = await unitsOf(codexConnector, home)
    expect(units).toHaveLength(7)
    for (const unit of units)
      expect(codexConnector.parse(await recordsOf(codexConnector, unit), unit).unknown).toEqual({})
    const child = units.find(({ key }) => key.includes("T23-01-21"))!
    expect((await recordsOf(codexConnector, child))[0]).toEqual({
      type: "dex-thread",
      parent: "01a1dc4b-3c94-79c3-827e-21a3705f52ee",
    })
    expect(readdirSync(root).filter((name) => /-(wal|shm)$/.test(name))).toEqual([])
    expect(readFileSync(join(root, "state_5.sqlite")).equals(readFileSync(join(RECORDED, "state_5.sqlite")))).toBe(true)
  })
})

function filesBelow(folder: string): string[] {
  const entries = readdirSync(folder, { recursive: true, withFileTypes: true })
  return entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
}
