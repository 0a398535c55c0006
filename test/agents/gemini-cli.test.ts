import { createHash } from "node:crypto"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { geminiCliConnector } from "../../src/agents/gemini-cli/connector.ts"
import { type Cursor, isUnreadable, type Unit } from "../../src/agents/kit/connector.ts"
import type { Conversation } from "../../src/core/conversation.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { conversationTitle } from "../../src/ingest/title.ts"
import { hostileCopies } from "../support/hostile.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/gemini_cli"
testConnector(geminiCliConnector, FIXTURES)

const SESSION = "10000000-0000-4000-8000-000000000001"
const FILE = "session-2026-10-01T09-00-10000000"
const id = (n: number) => `20000000-0000-4000-8000-${String(n).padStart(12, "0")}`
const header = (more: RawRecord = {}): RawRecord => ({ sessionId: SESSION, projectHash: "x", kind: "main", ...more })
const user = (n: number, content: unknown, more: RawRecord = {}): RawRecord => ({
  id: id(n),
  type: "user",
  content,
  ...more,
})
const gemini = (n: number, content: unknown, more: RawRecord = {}): RawRecord => ({
  id: id(n),
  type: "gemini",
  content,
  ...more,
})

function write(home: string, path: string, content: string): void {
  const file = join(home, ".gemini", path)
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, content)
}
function jsonl(records: unknown[]): string {
  return records.map((record) => `${JSON.stringify(record)}\n`).join("")
}
async function unitOf(records: unknown[], home = tempDir()): Promise<Unit> {
  write(home, `tmp/app/chats/${FILE}.jsonl`, jsonl(records))
  return (await unitsOf(geminiCliConnector, home))[0]!
}
/** Parses a log through `read`, so that `strip` is applied. */
async function parsed(records: unknown[]): Promise<Conversation> {
  const unit = await unitOf(records)
  return geminiCliConnector.parse(await recordsOf(geminiCliConnector, unit), unit).conversations[0]!
}
async function readOn(unit: Unit, after?: Cursor) {
  const reading = await geminiCliConnector.read(unit, after)
  const records = [...reading.records]
  return { mode: reading.mode, records, ...reading.end() }
}
const textsOf = ({ messages }: Conversation, origin: string) =>
  messages.flatMap(({ parts }) => parts.filter((part) => part.origin === origin).map((part) => part.text))
const abandoned = ({ messages }: Conversation) =>
  messages.flatMap((message) => (message.abandoned ? message.parts[0]!.text : []))

describe("discovery", () => {
  test("GEMINI_CLI_HOME replaces the home folder", () => {
    const machine = { home: "/home/dev", env: { GEMINI_CLI_HOME: "/elsewhere" }, platform: "linux" as const }
    expect(geminiCliConnector.roots(machine)).toEqual([join("/elsewhere", ".gemini")])
  })

  test("a project is named by its folder's own file, by the list of short names, or by the hash of its root", async () => {
    const home = tempDir()
    const hash = createHash("sha256").update("/home/dev/hashed").digest("hex")
    write(
      home,
      "projects.json",
      JSON.stringify({ projects: { "/home/dev/listed": "listed", "/home/dev/hashed": "h" } }),
    )
    write(home, "tmp/own/.project_root", "/home/dev/own\n")
    for (const folder of ["own", "listed", hash, "f".repeat(64)]) {
      const records = [header({ sessionId: folder }), user(1, "hello")]
      write(home, `tmp/${folder}/chats/${FILE}.jsonl`, jsonl(records))
    }
    const conversations = await conversationsOf(geminiCliConnector, home)
    expect([...conversations].map(([session, { cwds }]) => [session, cwds])).toEqual([
      [hash, ["/home/dev/hashed"]],
      ["f".repeat(64), []],
      ["listed", ["/home/dev/listed"]],
      ["own", ["/home/dev/own"]],
    ])
  })

  test("a project that is named later is read as one more record", async () => {
    const home = tempDir()
    const before = await unitOf([header(), user(1, "hello")], home)
    const first = await readOn(before)
    write(home, "tmp/app/.project_root", "/home/dev/app")
    const [unit] = await unitsOf(geminiCliConnector, home)
    expect(unit!.stamp).not.toBe(before.stamp)
    const second = await readOn(unit!, first.cursor)
    expect(second.records).toEqual([{ type: "dex-project", root: "/home/dev/app" }])
    expect((await readOn(unit!, second.cursor)).records).toEqual([])
    expect(geminiCliConnector.parse([...first.records, ...second.records], unit!).conversations[0]!.cwds).toEqual([
      "/home/dev/app",
    ])
  })

  test("links are not followed, and files that Gemini CLI set aside as unreadable are reported", async () => {
    const home = tempDir()
    await unitOf([header()], home)
    write(home, `tmp/app/chats/${FILE}.jsonl.unreadable-1`, "{")
    symlinkSync(join(home, "nowhere"), join(home, ".gemini/tmp/app/chats/session-link.jsonl"))
    const found = [...geminiCliConnector.discover(join(home, ".gemini"), () => false)]
    expect(found.filter(isUnreadable).map(({ path }) => basename(path))).toEqual([
      `${FILE}.jsonl.unreadable-1`,
      "session-link.jsonl",
    ])
  })
})

describe("the log of patches", () => {
  test("a rewritten message replaces its earlier version, in place", async () => {
    const call = {
      id: "c1",
      name: "read_file",
      args: { file_path: "a.ts" },
      status: "success",
      result: [{ text: "x" }],
    }
    const conversation = await parsed([
      header(),
      user(1, "q"),
      gemini(2, "look"),
      user(3, "r"),
      gemini(2, "look", { toolCalls: [call] }),
    ])
    expect(conversation.messages.map(({ key }) => key)).toEqual([id(1), id(2), id(3)])
    expect(conversation.messages[1]!.parts.map(({ type }) => type)).toEqual(["text", "tool_call", "tool_result"])
  })

  test("a rewind abandons a message and all after it, but no earlier or later ones", async () => {
    const conversation = await parsed([
      header(),
      user(1, "a"),
      user(2, "b"),
      user(3, "c"),
      { $rewindTo: id(2) },
      user(4, "d"),
    ])
    expect(abandoned(conversation)).toEqual(["b", "c"])
  })

  test("a rewind to an unknown message abandons everything before it", async () => {
    const conversation = await parsed([header(), user(1, "a"), user(2, "b"), { $rewindTo: "gone" }, user(3, "c")])
    expect(abandoned(conversation)).toEqual(["a", "b"])
    expect(conversationTitle(conversation)).toEqual({ text: "C", from: "first_prompt" })
  })

  test("a message that is repeated after a rewind moves to the end", async () => {
    const conversation = await parsed([
      header(),
      user(1, "a"),
      user(2, "b"),
      { $rewindTo: id(1) },
      user(3, "c"),
      user(1, "a"),
    ])
    expect(conversation.messages.map(({ key }) => key)).toEqual([id(2), id(3), id(1)])
    expect(abandoned(conversation)).toEqual(["b"])
  })

  test("a resume that sets a list without the first prompt does not remove it", async () => {
    const home = await homeOf(join(FIXTURES, "0.61-tools-mcp-hooks-resume"))
    const conversation = (await conversationsOf(geminiCliConnector, home)).get("44c7a8ee-31f6-48bb-afe9-dcf6de6c84a5")!
    expect(textsOf(conversation, "person")).toEqual(["scenario-second nokeys", "scenario-basic resumed"])
    expect(abandoned(conversation)).toEqual([])
  })

  test("a set list has incomplete copies: earlier text, thoughts and counts stay", async () => {
    const tokens = { input: 10, output: 1, cached: 0 }
    const full = gemini(1, "hi", { model: "m", tokens, thoughts: [{ subject: "s", description: "d" }] })
    const plain = await parsed([header(), full])
    const { messages } = await parsed([
      header(),
      full,
      { $set: { messages: [gemini(1, [{ text: "masked" }]), user(2, "new")] } },
    ])
    expect(messages[0]).toEqual(plain.messages[0])
    expect(messages.map(({ key }) => key)).toEqual([id(1), id(2)])
  })

  test("a compression's snapshot is a summary, not a prompt", async () => {
    const snapshot = "<state_snapshot>\nall done\n</state_snapshot>"
    const conversation = await parsed([header(), user(1, "q"), { $set: { messages: [user(9, [{ text: snapshot }])] } }])
    expect(conversation.messages[1]).toMatchObject({ role: "system", parts: [{ type: "summary", text: snapshot }] })
    expect(conversation.messages[0]!.abandoned).toBeUndefined()
  })

  test("an id that is a hash of the text is not a key across sessions", async () => {
    const conversation = await parsed([
      header(),
      { id: "d04923d38bb0f6017037e74183378ef4", type: "user", content: "x" },
    ])
    expect(conversation.messages[0]!.key).toBe(`${SESSION}:d04923d38bb0f6017037e74183378ef4`)
  })
})

describe("JSON files from before 0.40", () => {
  const whole = (messages: unknown[]) => JSON.stringify({ ...header(), messages })
  async function unit(content: string, home = tempDir()): Promise<Unit> {
    write(home, `tmp/app/chats/${FILE}.json`, content)
    return (await unitsOf(geminiCliConnector, home))[0]!
  }

  test("are read again only if they changed", async () => {
    const home = tempDir()
    const one = await unit(whole([user(1, "a")]), home)
    const first = await readOn(one)
    expect(first).toMatchObject({ mode: "replace", pending: false })
    expect(await readOn(one, first.cursor)).toMatchObject({ mode: "append", records: [], cursor: first.cursor })
    const two = await unit(whole([user(1, "a"), user(2, "b")]), home)
    expect((await readOn(two, first.cursor)).records).toHaveLength(3)
  })

  test("are not read while half written, and are counted as skipped if they stay that way", async () => {
    const torn = await unit(whole([user(1, "a")]).slice(0, -3))
    expect(await readOn(torn)).toMatchObject({ records: [], pending: true, skipped: [] })
    for (const at of [1, Date.now() / 1000 + 86_400]) {
      utimesSync(torn.path, at, at)
      expect(await readOn(torn)).toMatchObject({ pending: false, skipped: [{ reason: "not a complete JSON object" }] })
    }
  })

  test("name their session in every record, for records that a rewind removes", async () => {
    const records = await recordsOf(geminiCliConnector, await unit(whole([user(1, "a"), user(2, "b")])))
    const left = geminiCliConnector.parse(records.slice(-1), { key: `app/chats/${FILE}.json`, path: "" })
    expect(left.conversations[0]!.id).toBe(SESSION)
    const changed = records.map((record) => geminiCliConnector.identify!(record))
    expect(changed.slice(1)).toEqual([`user ${id(1)}`, `user ${id(2)}`])
  })

  test("are outranked by the log that continues them, with the same keys", async () => {
    const home = await homeOf(join(FIXTURES, "0.40-json-and-jsonl"))
    const [json, log] = await Promise.all(
      (await unitsOf(geminiCliConnector, home)).map(async (found) =>
        geminiCliConnector.parse(await recordsOf(geminiCliConnector, found), found),
      ),
    )
    const [older, newer] = [json!.conversations[0]!, log!.conversations[0]!]
    expect(newer.id).toBe(older.id)
    expect(newer.authority).toBeGreaterThan(older.authority)
    expect(newer.messages.slice(0, -1)).toEqual(older.messages)
  })

  test("a project's hashed folder is outranked by its copy with a short name", () => {
    const authority = (key: string) =>
      geminiCliConnector.parse([header(), user(1, "a")], { key, path: "" }).conversations[0]!.authority
    const keys = [`app/chats/${FILE}.jsonl`, `app/chats/${FILE}.json`]
    const hashed = keys.map((key) => key.replace("app", "a".repeat(64)))
    const ranks = [...keys, ...hashed].map(authority)
    expect(ranks).toEqual(ranks.toSorted((a, b) => b - a))
    expect(new Set(ranks).size).toBe(4)
  })
})

describe("origins", () => {
  test("the session's context and hooks' text are injected, and the prompt next to them is the person's", async () => {
    const conversation = await parsed([
      header(),
      user(1, [{ text: "<session_context>\n<loaded_context>x</loaded_context>\n</session_context>" }]),
      user(2, [{ text: "<hook_context>a</hook_context>\n\nfix it" }, { text: "<hook_context>b</hook_context>" }]),
    ])
    expect(textsOf(conversation, "person")).toEqual(["fix it"])
    expect(textsOf(conversation, "injected")).toHaveLength(3)
  })

  test("text that the agent displays as the person's is theirs; its expansion is not", async () => {
    const file = [{ text: "explain @a.ts" }, { text: "const a = 1" }]
    const conversation = await parsed([
      header(),
      user(1, file, { displayContent: "explain @a.ts" }),
      user(2, "the template of a command", { displayContent: [{ text: "/explain a" }] }),
    ])
    expect(textsOf(conversation, "person")).toEqual(["explain @a.ts", "/explain a"])
    expect(textsOf(conversation, "injected")).toEqual(["const a = 1", "the template of a command"])
  })

  test("a hook's text in a tool's result is not the tool's output", async () => {
    const output = "<untrusted_context>\nnote = 42\n</untrusted_context>\n\n<hook_context>mind the gap</hook_context>"
    const result = [{ functionResponse: { id: "c1", name: "mcp_demo_note", response: { output } } }]
    const { messages } = await parsed([
      header(),
      gemini(1, "", { toolCalls: [{ id: "c1", name: "mcp_demo_note", result }] }),
    ])
    expect(messages[0]!.parts.slice(1)).toMatchObject([
      { type: "tool_result", text: "note = 42", origin: "web" },
      { type: "text", text: "<hook_context>mind the gap</hook_context>", origin: "injected" },
    ])
  })

  test("an older MCP tool is recognised by its display name", async () => {
    const call = { id: "c1", name: "note", displayName: "note (demo MCP Server)", result: [{ text: "x" }] }
    const { messages } = await parsed([header(), gemini(1, "", { toolCalls: [call] })])
    expect(messages[0]!.parts[1]).toMatchObject({ type: "tool_result", origin: "web" })
  })

  test("a result that is in the call and in the next user message is shown once, even if no call has it", async () => {
    const answer = (call: string) => ({ functionResponse: { id: call, name: "ls", response: { output: call } } })
    const { messages } = await parsed([
      header(),
      gemini(1, "", { toolCalls: [{ id: "c1", name: "ls", args: {}, result: [answer("c1")] }] }),
      user(2, [answer("c1")]),
      user(3, [answer("c2")]),
    ])
    expect(messages.map(({ role }) => role)).toEqual(["assistant", "tool"])
    expect(messages[1]!.parts).toMatchObject([{ type: "tool_result", text: "c2", call_id: "c2" }])
  })
})

describe("effects and usage of calls", () => {
  const shell = (output: string, status = "success") => ({
    id: "c1",
    name: "run_shell_command",
    args: { command: "make" },
    status,
    result: [{ functionResponse: { id: "c1", name: "run_shell_command", response: { output } } }],
  })
  const effectsOf = async (call: unknown) =>
    (await parsed([header(), gemini(1, "", { toolCalls: [call] })])).messages[0]!.effects

  test("a failed command has the status success: its last exit code counts, not one in its output", async () => {
    expect(await effectsOf(shell("Output: x\nExit Code: 0\nno rule\nExit Code: 2\nSignal: 0"))).toMatchObject([
      { command: "make", exit_status: 2, failed: true },
    ])
    expect(await effectsOf(shell("Output: x"))).toEqual([
      { type: "command", command: "make", call_id: "c1", failed: false },
    ])
    expect(await effectsOf(shell("", "cancelled"))).toMatchObject([{ failed: true }])
  })

  test("the error line is the command's own, not one that Gemini CLI adds", async () => {
    const errorOf = async (output: string) => ((await effectsOf(shell(output)))![0] as { error?: string }).error
    expect(await errorOf("Output: cat: a.log: No such file\nExit Code: 1\nProcess Group PGID: 7")).toBe(
      "cat: a.log: No such file",
    )
    expect(await errorOf("Command: make\nDirectory: (root)\nOutput: gave up\nError: (none)\nExit Code: 1")).toBe(
      "gave up",
    )
    expect(await errorOf("Output: (empty)\nExit Code: 3\nProcess Group PGID: 7")).toBeUndefined()
  })

  test("a failed edit has no effect", async () => {
    const edit = { id: "c1", name: "replace", args: { file_path: "a.ts", old_string: "a\n", new_string: "b\nc\n" } }
    expect(await effectsOf({ ...edit, status: "error" })).toBeUndefined()
    expect(await effectsOf({ ...edit, status: "success" })).toMatchObject([{ path: "a.ts", added: 2, removed: 1 }])
  })

  test("the cached part is not input, and thoughts are output", async () => {
    const tokens = { input: 100, cached: 60, output: 10, thoughts: 5, tool: 3, total: 118 }
    const { messages } = await parsed([header(), gemini(1, "hi", { tokens })])
    expect(messages[0]!.usage).toEqual({ input: 43, output: 15, cache_read: 60, cache_write: 0, reasoning: 5 })
  })
})

test("drops bytes, signatures and copies of files before anything is stored", async () => {
  const image = { inlineData: { mimeType: "image/png", data: "SEFSTkVTUw==" } }
  const resultDisplay = { fileDiff: "@@ -1 +1 @@\n-a\n+b\n", originalContent: "WHOLE", newContent: "WHOLE" }
  const call = { id: "c", name: "replace", description: "WHOLE", resultDisplay, result: [image] }
  const message = gemini(1, [{ text: "hi", thoughtSignature: "WHOLE" }, image], { toolCalls: [call] })
  const unit = await unitOf([header(), message, { $set: { messages: [message] } }])
  const text = JSON.stringify(await recordsOf(geminiCliConnector, unit))
  expect(text).not.toContain("WHOLE")
  expect(text).not.toContain("SEFSTkVTUw")
  expect(text).toContain('"bytes":7')
})

test("never throws if any field has the wrong type", async () => {
  const home = await homeOf(join(FIXTURES, "0.60-patches"))
  for (const unit of await unitsOf(geminiCliConnector, home)) {
    const lines = readFileSync(unit.path, "utf8").trim().split("\n")
    writeFileSync(unit.path, jsonl(lines.flatMap((line) => [...hostileCopies(JSON.parse(line))])))
    const { records, skipped } = await readOn(unit)
    expect(skipped).toEqual([])
    expect(geminiCliConnector.parse(records, unit).conversations.length).toBe(1)
    for (const record of records) geminiCliConnector.parse([record], unit)
  }
})

const SHARED = fileURLToPath(new URL("../../../shared/samples", import.meta.url))
const SAMPLES = [join(SHARED, "gemini-cli"), join(SHARED, "mixed")].filter((path) => existsSync(path))
if (SAMPLES.length === 0) console.log("NOT RUN: gemini_cli over other people's samples, which are not on this machine")

/** Each was checked; the value explains why its text is not shown. */
const UNKNOWN_IN_SAMPLES = {
  model: "another project's invention for its tests: no release wrote this type of message",
  "(no type)": "a header without a session, in another project's test of a changed format",
}

test.skipIf(SAMPLES.length === 0)(
  "reads every one of other people's samples, and every unknown type is explained",
  async () => {
    const unknown: Record<string, number> = {}
    let messages = 0
    const entries = SAMPLES.flatMap((folder) => readdirSync(folder, { recursive: true, withFileTypes: true }))
    for (const entry of entries.filter((found) => found.isFile())) {
      const path = join(entry.parentPath, entry.name)
      const unit = {
        key: `x/chats/${entry.name}`,
        path,
        stamp: "",
        bytes: statSync(path).size,
        modifiedAt: 0,
        bornAt: 0,
      }
      const parsed = geminiCliConnector.parse(await recordsOf(geminiCliConnector, unit), unit)
      messages += parsed.conversations.flatMap((conversation) => conversation.messages).length
      if (path.includes("mixed") && !path.includes("gemini")) continue
      for (const [type, count] of Object.entries(parsed.unknown)) unknown[type] = (unknown[type] ?? 0) + count
    }
    expect(messages).toBeGreaterThan(40)
    expect(Object.keys(unknown).sort()).toEqual(Object.keys(UNKNOWN_IN_SAMPLES).sort())
  },
)
