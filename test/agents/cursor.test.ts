import { createHash } from "node:crypto"
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { decodeFolder } from "../../src/agents/cursor/cli.ts"
import { cursorConnector } from "../../src/agents/cursor/connector.ts"
import { isUnreadable, type Unit } from "../../src/agents/kit/connector.ts"
import type { Conversation, Part } from "../../src/core/conversation.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { conversationsOf, homeOf, readAll, recordsOf, testConnector, unitsOf } from "./contract.ts"

const fixtures = fileURLToPath(new URL("../fixtures/cursor", import.meta.url))
const shared = fileURLToPath(new URL("../../../shared", import.meta.url))
const EDITOR = join(fixtures, "3.12-editor")
const MAIN = "11111111-2222-4333-8444-555555555555"
const TRANSCRIPT = "aaaaaaaa-0000-4000-8000-000000000001"
const T = 1_780_000_000_000

testConnector(cursorConnector, fixtures)

const databaseOf = (home: string) => join(home, ".config", "Cursor", "User", "globalStorage", "state.vscdb")
const partsOf = (conversation: Conversation) => conversation.messages.flatMap((message) => message.parts)
const effectsOf = (conversation: Conversation) => conversation.messages.flatMap((message) => message.effects ?? [])
const resultOf = (conversation: Conversation, call: string) =>
  partsOf(conversation).find(
    (part): part is Part & { type: "tool_result" } => part.type === "tool_result" && part.call_id === call,
  )!

async function conversation(fixture: string, id: string): Promise<Conversation> {
  return (await conversationsOf(cursorConnector, await homeOf(join(fixtures, fixture)))).get(id)!
}

describe("roots", () => {
  test("the editor's folder differs by platform; ~/.cursor is everywhere", () => {
    const at = (platform: NodeJS.Platform, env = {}) => cursorConnector.roots({ home: "/h", env, platform })
    expect(at("linux")).toEqual(["/h/.config/Cursor/User", "/h/.cursor", "/h/.config/cursor"])
    expect(at("linux", { XDG_CONFIG_HOME: "/c" })).toEqual(["/c/Cursor/User", "/h/.cursor", "/c/cursor"])
    expect(at("darwin")).toEqual(["/h/Library/Application Support/Cursor/User", "/h/.cursor"])
    expect(at("win32", { APPDATA: "/r" })).toEqual(["/r/Cursor/User", "/h/.cursor"])
    expect([...cursorConnector.discover("/nowhere/at/all", () => false)]).toEqual([])
  })
})

describe("the editor", () => {
  test("bubbles are in the order of the headers; an orphan bubble is not shown", async () => {
    const { messages } = await conversation("3.12-editor", MAIN)
    expect(messages.map((message) => message.key)).toEqual([
      "b-user",
      "b-think",
      "b-edit",
      "b-run",
      "b-mcp",
      "b-say",
      "b-cancel",
      "b-last",
    ])
  })

  test("values may be text, bytes, NULL or invalid JSON: damage is counted, and the rest is read", async () => {
    const home = await homeOf(EDITOR)
    const units = await unitsOf(cursorConnector, home)
    expect(units.map((unit) => unit.key)).toEqual([
      "ide:11111111-2222-4333-8444-555555555555",
      "ide:array",
      "ide:child",
      "ide:childish",
      "ide:linked",
      "ide:torn",
    ])
    const skipped = async (key: string) => {
      const reading = await cursorConnector.read(units.find((unit) => unit.key === key)!)
      void [...reading.records]
      return reading.end().skipped
    }
    expect(await skipped(`ide:${MAIN}`)).toEqual([{ reason: "damaged JSON", where: `bubbleId:${MAIN}:b-torn` }])
    expect(await skipped("ide:torn")).toHaveLength(1)
    expect(await skipped("ide:array")).toHaveLength(1)
    expect(await skipped("ide:linked")).toEqual([])
  })

  test("a composer does not get the bubbles of one whose id has the same beginning", async () => {
    const home = await homeOf(EDITOR)
    const unit = (await unitsOf(cursorConnector, home)).find((found) => found.key === "ide:child")!
    expect((await recordsOf(cursorConnector, unit)).map((record) => record.id)).toEqual([
      undefined,
      "child",
      "c-1",
      "c-2",
      "c-3",
    ])
  })

  test("does not read tokens, signatures and copies of files", async () => {
    const home = await homeOf(EDITOR)
    const records = []
    for (const unit of await unitsOf(cursorConnector, home)) records.push(...(await recordsOf(cursorConnector, unit)))
    expect(JSON.stringify(records)).not.toMatch(/MUST-NOT|SIGNATURE|WHOLE-FILE/)
  })

  test("does not open an unchanged container, or a workspace only for other containers' data", async () => {
    const home = await homeOf(EDITOR)
    const checked: string[] = []
    const root = dirname(dirname(databaseOf(home)))
    const seen = (path: string) => checked.push(relative(root, path)) > 0
    expect([...cursorConnector.discover(root, seen)]).toEqual([])
    expect(checked).toEqual([join("globalStorage", "state.vscdb"), join("workspaceStorage", "0a1b2c3d", "state.vscdb")])
  })

  test("only the composer that was updated gets a new stamp", async () => {
    const home = await homeOf(EDITOR)
    const stamps = async () => new Map((await unitsOf(cursorConnector, home)).map((unit) => [unit.key, unit.stamp]))
    const before = await stamps()
    const db = new DatabaseSync(databaseOf(home))
    db.exec(
      "update cursorDiskKV set value = json_set(value, '$.lastUpdatedAt', 1780000099999) where key = 'composerData:child'",
    )
    db.close()
    const moved = [...(await stamps())].filter(([key, stamp]) => before.get(key) !== stamp).map(([key]) => key)
    expect(moved).toEqual(["ide:child"])
  })

  test("the query for composers uses the index and does not scan all rows", async () => {
    const home = await homeOf(EDITOR)
    const db = new DatabaseSync(databaseOf(home))
    const source = readFileSync(new URL("../../src/agents/cursor/ide.ts", import.meta.url), "utf8")
    const query = /const COMPOSERS_QUERY = `([^`]+)`/.exec(source)![1]!
    const plan = db
      .prepare(`explain query plan ${query}`)
      .all()
      .map((row) => String(row.detail))
    db.close()
    expect(plan.join("\n")).toMatch(/SEARCH cursorDiskKV USING INDEX .*key>\? AND key<\?/)
    expect(plan.join("\n")).not.toMatch(/SCAN cursorDiskKV/)
    expect(source).not.toMatch(/\blike\b/i)
  })

  test("the folder comes from the composer, otherwise from the workspace that lists it", async () => {
    const conversations = await conversationsOf(cursorConnector, await homeOf(EDITOR))
    expect(conversations.get(MAIN)!.cwds).toEqual(["/home/dev/app"])
    expect(conversations.get("linked")!.cwds).toEqual(["/home/dev/other app"])
    expect(conversations.get("child")!.cwds).toEqual([])
  })

  test("reads a prompt that is only rich text", async () => {
    const { messages } = await conversation("3.12-editor", "linked")
    expect(messages[0]!.parts).toEqual([{ type: "text", text: "Explain @build.ts", origin: "person" }])
  })

  test("reads a tool's effects from arguments and results that are JSON inside JSON", async () => {
    const parsed = await conversation("3.12-editor", MAIN)
    expect(resultOf(parsed, "call_edit").hunks).toEqual([
      {
        path: "src/date.test.ts",
        old_start: 3,
        old_lines: 1,
        new_start: 3,
        new_lines: 1,
        lines: ["-new Date()", "+new Date(0)"],
      },
    ])
    expect(resultOf(parsed, "call_edit").text).toBe("-new Date()\n+new Date(0)")
    expect(resultOf(parsed, "call_run")).toMatchObject({
      text: "Error: 1 failed\n",
      is_error: true,
      origin: "local_tool",
    })
    expect(resultOf(parsed, "call_mcp")).toMatchObject({ text: "Remote text", origin: "web" })
    expect(resultOf(parsed, "call_cancel")).toMatchObject({ text: "Cancelled", is_error: true })
    expect(effectsOf(parsed)).toEqual([
      { type: "file", path: "/home/dev/app/src/date.test.ts", action: "mentioned" },
      { type: "file", path: "src/date.test.ts", action: "edited", call_id: "call_edit", added: 1, removed: 1 },
      {
        type: "command",
        command: "npm test",
        call_id: "call_run",
        exit_status: 1,
        failed: true,
        error: "Error: 1 failed",
      },
    ])
  })

  test("interpolates times between two known ones, but not before the first or after the last", async () => {
    const { messages } = await conversation("3.12-editor", MAIN)
    expect(messages.map((message) => message.at && message.at - T)).toEqual([
      1_000,
      3_000,
      5_000,
      7_000,
      9_000,
      11_000,
      undefined,
      undefined,
    ])
    const { messages: untimed, started_at } = await conversation("3.12-editor", "linked")
    expect(untimed.map((message) => message.at)).toEqual([undefined, undefined])
    expect(started_at).toBe(T)
  })

  test("ignores token counts of zero", async () => {
    const { messages } = await conversation("3.12-editor", MAIN)
    expect(messages.map((message) => message.usage?.input)).toEqual([
      undefined,
      undefined,
      undefined,
      undefined,
      undefined,
      900,
      undefined,
      undefined,
    ])
  })

  test("a subagent names its parent and the call, and a bubble of an unknown kind is counted", async () => {
    const units = await readAll(cursorConnector, await homeOf(EDITOR))
    const child = units.find((unit) => unit.unit === "ide:child")!
    expect(child.unknown).toEqual({ "bubble 9": 1 })
    expect(child.conversations[0]).toMatchObject({ kind: "subagent", parent: { id: MAIN, call_id: "call_task" } })
    expect(child.conversations[0]!.messages[0]!.parts[0]!.origin).toBe("agent")
  })

  test("reads the first version, with the conversation inside the composer and separate tool data", async () => {
    const { messages } = await conversation("0.4x-editor-old", "first")
    expect(messages.map((message) => message.key)).toEqual(["v1-user", "v1-tool", "first:2"])
    expect(messages[1]!.parts.map((part) => part.text)).toEqual(['{"target_file":"a.ts"}', "const a = 1"])
  })

  test("tabs of the old chat panel are in the workspace's database", async () => {
    const parsed = await conversation("0.4x-editor-old", "tab-1")
    expect(parsed).toMatchObject({ title: { text: "Ask about the parser", from: "agent" }, cwds: ["/home/dev/all"] })
    expect(parsed.messages.map((message) => [message.key, message.role, message.model])).toEqual([
      ["t-1", "user", undefined],
      ["tab-1:1", "assistant", "gpt-4"],
    ])
  })

  test("an unreadable database is reported, and the other stores are read", async () => {
    const home = await homeOf(EDITOR)
    writeFileSync(databaseOf(home), "no database".repeat(500))
    const found = [...cursorConnector.discover(dirname(dirname(databaseOf(home))), () => false)]
    expect(found).toEqual([
      { unreadable: "not readable as a database: file is not a database", path: databaseOf(home) },
    ])
  })

  test("reading unchanged data again gives nothing", async () => {
    const home = await homeOf(EDITOR)
    const unit = (await unitsOf(cursorConnector, home)).find((found) => found.key === `ide:${MAIN}`)!
    const first = await cursorConnector.read(unit)
    expect([...first.records].length).toBeGreaterThan(5)
    const again = await cursorConnector.read(unit, first.end().cursor)
    expect([again.mode, [...again.records]]).toEqual(["append", []])
  })
})

describe("transcripts", () => {
  test("the person's text is in <user_query>; the rest was inserted", async () => {
    const { messages, title } = await conversation("2026.06-transcripts", TRANSCRIPT)
    expect(messages[0]!.parts).toEqual([
      { type: "text", text: "<user_info>\nOS: linux\n</user_info>", origin: "injected" },
      { type: "text", text: "Run the tests & fix <b>them</b>", origin: "person" },
    ])
    const origins = messages
      .filter((message) => message.role === "user")
      .flatMap((message) => message.parts.map((part) => part.origin))
    expect(origins).toEqual(["injected", "person", "injected", "person"])
    expect(title).toBeUndefined()
  })

  test("results without a known call are matched to the calls in order", async () => {
    const parsed = await conversation("2026.06-transcripts", TRANSCRIPT)
    expect(parsed.messages[2]).toMatchObject({
      role: "tool",
      parts: [
        { text: "1 failed", tool: "Shell", call_id: `${TRANSCRIPT}:2:2` },
        { text: "const a = 1", tool: "Read", call_id: `${TRANSCRIPT}:2:3` },
      ],
    })
    expect(resultOf(parsed, "toolu_9")).toMatchObject({ is_error: true })
    expect(effectsOf(parsed).map((effect) => effect.type === "file" && [effect.action, effect.path])).toEqual([
      false,
      ["read", "/home/dev/gone/app/a.ts"],
    ])
  })

  test("lines without times have none; lines with times have theirs", async () => {
    const conversations = await conversationsOf(cursorConnector, await homeOf(join(fixtures, "2026.06-transcripts")))
    const untimed = conversations.get(TRANSCRIPT)!
    expect([untimed.started_at, untimed.messages[0]!.at]).toEqual([undefined, undefined])
    const timed = conversations.get("cccccccc-0000-4000-8000-000000000003")!
    expect([timed.started_at, timed.ended_at]).toEqual([Date.UTC(2026, 5, 24, 12), Date.UTC(2026, 5, 24, 12, 0, 3)])
    expect(timed.messages[1]!.model).toBe("gpt-5")
  })

  test("errors become notices, placeholders are skipped, and an unknown block is counted and keeps its text", async () => {
    const parsed = (await readAll(cursorConnector, await homeOf(join(fixtures, "2026.06-transcripts")))).find(
      (unit) => unit.unit === `transcript:${TRANSCRIPT}`,
    )!
    expect(parsed.unknown).toEqual({ "block hologram": 1 })
    const texts = partsOf(parsed.conversations[0]!).map((part) => part.text)
    expect(texts).toContain("Provider Error: upstream timeout")
    expect(texts).toContain("Visible text of an unknown kind.")
    expect(texts).not.toContain("[REDACTED]")
  })

  test("a transcript below subagents/ is a subagent of the session above", async () => {
    const parsed = await conversation("2026.06-transcripts", "bbbbbbbb-0000-4000-8000-000000000002")
    expect(parsed).toMatchObject({ kind: "subagent", parent: { id: TRANSCRIPT } })
    expect(parsed.messages[0]!.parts[0]).toMatchObject({ text: "List the files", origin: "agent" })
  })

  test("the oldest form is plain text", async () => {
    const parsed = await conversation("2026.06-transcripts", "dddddddd-0000-4000-8000-000000000004")
    expect(partsOf(parsed).map((part) => [part.type, part.text])).toEqual([
      ["text", "Where is the config?"],
      ["thinking", "Look around.\nThen answer."],
      ["tool_call", "command: ls -a"],
      ["tool_result", ".config.json"],
      ["text", "In .config.json."],
    ])
    expect(effectsOf(parsed)).toMatchObject([{ type: "command", command: "ls -a" }])
  })

  test("a session's JSON lines win over its text file; a link is not followed", async () => {
    const home = await homeOf(join(fixtures, "2026.06-transcripts"))
    const folder = join(home, ".cursor", "projects", "home-dev-gone-app", "agent-transcripts")
    writeFileSync(join(folder, "cccccccc-0000-4000-8000-000000000003.txt"), "user:\nolder\n")
    symlinkSync(join(folder, "dddddddd-0000-4000-8000-000000000004.txt"), join(folder, "link.txt"))
    const units = await unitsOf(cursorConnector, home)
    expect(units).toHaveLength(4)
    expect(units.find((unit) => unit.key.startsWith("transcript:cccc"))!.path).toMatch(/\.jsonl$/)
  })

  test("the editor's version of a conversation outranks the command line's, which outranks a transcript", async () => {
    const authority = async (fixture: string, id: string) => (await conversation(fixture, id)).authority
    expect(await authority("3.12-editor", MAIN)).toBe(10)
    expect(await authority("2026.06-command-line", "eeeeeeee-0000-4000-8000-000000000005")).toBe(9)
    expect(await authority("2026.06-transcripts", TRANSCRIPT)).toBe(8)
  })
})

describe("folders named by Cursor", () => {
  const named = (top: string, name: string) => decodeFolder(name, "linux", top)

  test("are decoded by checking which folders exist", () => {
    const top = tempDir()
    mkdirSync(join(top, "home", "dev", "my.big-app", "core_x"), { recursive: true })
    mkdirSync(join(top, "home", "dev", "my"), { recursive: true })
    expect(named(top, "home-dev-my-big-app")).toBe(join(top, "home", "dev", "my.big-app"))
    expect(named(top, "home-dev-my-big-app-core-x")).toBe(join(top, "home", "dev", "my.big-app", "core_x"))
    expect(named(top, "home-dev-gone")).toBeUndefined()
    expect(named(top, "")).toBeUndefined()
  })

  test("are not guessed if two match", () => {
    const top = tempDir()
    mkdirSync(join(top, "dev", "my-app"), { recursive: true })
    mkdirSync(join(top, "dev", "my", "app"), { recursive: true })
    expect(named(top, "dev-my-app")).toBeUndefined()
  })

  test("are one if a link and its target both match", () => {
    const top = tempDir()
    mkdirSync(join(top, "dev-x", "app"), { recursive: true })
    symlinkSync(join(top, "dev-x"), join(top, "dev.x"))
    expect(named(top, "dev-x-app")).toBe(join(top, "dev-x", "app"))
  })

  test("a transcript whose folder still exists names it", async () => {
    const home = await homeOf(join(fixtures, "2026.06-transcripts"))
    const project = join(home, "code", "my.app")
    mkdirSync(project, { recursive: true })
    const encoded = project.slice(1).replace(/[^A-Za-z0-9]/g, "-")
    cpSync(join(home, ".cursor", "projects", "home-dev-gone-app"), join(home, ".cursor", "projects", encoded), {
      recursive: true,
    })
    const units = (await unitsOf(cursorConnector, home)).filter((unit) => unit.path.includes(encoded))
    const records = units.length > 0 ? await recordsOf(cursorConnector, units[0]!) : []
    expect(records[0]).toEqual({ type: "dex-file", folder: project })
  })
})

describe("the command line", () => {
  const ID = "eeeeeeee-0000-4000-8000-000000000005"

  test("walks messages from the newest state without duplicates, lost repetitions or orphans", async () => {
    const parsed = await conversation("2026.06-command-line", ID)
    expect(
      parsed.messages.map((message) => [message.role, message.parts.map((part) => part.text).join(" | ")]),
    ).toEqual([
      ["user", "<user_info>\nOS: linux\n</user_info>"],
      ["user", "Commit it"],
      ["assistant", `Commit. | {"command":"git commit -m 'Done'"}`],
      ["tool", "[main 1a2b3c4] Done"],
      ["user", "again"],
      ["assistant", "Done."],
      ["user", "again"],
      ["assistant", "Done."],
      ["assistant", "Anything else?"],
    ])
    expect(parsed.messages[0]!.parts[0]!.origin).toBe("injected")
  })

  test("a call's effects are on the message with the call", async () => {
    const parsed = await conversation("2026.06-command-line", ID)
    expect(parsed.messages[2]!.effects).toEqual([
      { type: "command", command: "git commit -m 'Done'", call_id: "call_1", exit_status: 0, failed: false },
      { type: "commit", hash: "1a2b3c4", subject: "Done", branch: "main", call_id: "call_1" },
    ])
    expect(parsed).toMatchObject({
      cwds: ["/home/dev/cli-app"],
      started_at: 1_783_000_000_000,
      ended_at: 1_783_000_009_000,
    })
    expect(parsed.title).toBeUndefined()
  })

  test("finds the folder of an md5 among those that the other stores name", async () => {
    const home = await homeOf(join(fixtures, "2026.06-command-line"))
    const [unit] = await unitsOf(cursorConnector, home)
    const hash = createHash("md5").update("/home/dev/hashed").digest("hex")
    const moved = join(home, ".cursor", "chats", hash, ID)
    mkdirSync(moved, { recursive: true })
    cpSync(unit!.path, join(moved, "store.db"))
    const workspace = join(home, ".config", "Cursor", "User", "workspaceStorage", "w")
    mkdirSync(workspace, { recursive: true })
    writeFileSync(join(workspace, "workspace.json"), JSON.stringify({ folder: "file:///home/dev/hashed" }))
    const records = await recordsOf(cursorConnector, { ...unit!, path: join(moved, "store.db") })
    expect(records[0]).toMatchObject({ type: "dex-file", folder: "/home/dev/hashed" })
  })

  test("reports a store whose newest state is missing, and does not hang on hostile nodes", async () => {
    const home = await homeOf(join(fixtures, "2026.06-command-line"))
    const [unit] = await unitsOf(cursorConnector, home)
    const db = new DatabaseSync(unit!.path)
    const point = (root: string) =>
      db
        .prepare("update meta set value = ?")
        .run(Buffer.from(JSON.stringify({ latestRootBlobId: root })).toString("hex"))
    point("deadbeef")
    const missing = await cursorConnector.read(unit!)
    expect([...missing.records]).toEqual([])
    expect(missing.end().skipped).toEqual([
      { reason: "the store does not contain its newest state", where: "blob deadbeef" },
    ])
    const self = "ab".repeat(32)
    const child = Buffer.concat([Buffer.from([0x0a, 0x20]), Buffer.from(self, "hex")])
    const bytes = Buffer.concat([child, child, Buffer.from([0x12, 0xff, 0xff, 0xff, 0xff, 0xff])])
    db.prepare("insert into blobs values (?, ?)").run(self, bytes)
    point(self)
    db.close()
    expect([...(await cursorConnector.read(unit!)).records]).toEqual([])
  })
})

const there = existsSync(join(shared, "samples", "cursor"))
if (!there) console.log("NOT RUN: samples/cursor is not on this machine")
describe.skipIf(!there)("samples", () => {
  const samples = join(shared, "samples", "cursor")

  test("reads the samples' editor database", async () => {
    const dir = tempDir()
    cpSync(join(samples, "synthetic", "User"), dir, { recursive: true })
    const before = treeHash(dir)
    const parsed = await everything(dir)
    expect(parsed.conversations.map(({ id, messages }) => [id, messages.length])).toEqual([[MAIN, 4]])
    expect(parsed.unknown).toEqual({})
    expect(treeHash(dir)).toEqual(before)
  })

  test("reads every transcript of the samples", async () => {
    const dir = tempDir()
    const into = join(dir, "projects", "home-dev-x", "agent-transcripts")
    mkdirSync(into, { recursive: true })
    const files = readdirSync(samples, { recursive: true, withFileTypes: true }).filter((entry) =>
      entry.name.endsWith(".jsonl"),
    )
    for (const file of files) {
      const path = relative(samples, join(file.parentPath, file.name)).replaceAll("/", "+")
      cpSync(join(file.parentPath, file.name), join(into, path))
    }
    const parsed = await everything(dir)
    expect(parsed.units).toBe(files.length)
    expect(parsed.conversations.length).toBe(files.length - 1) // one file is empty
    expect(parsed.unknown).toEqual({ "block custom_block": 1 }) // a made-up block of the drift sample
  })

  test("reads the samples' command line stores", async () => {
    const dir = tempDir()
    mkdirSync(join(dir, "chats", "0123", "session"), { recursive: true })
    cpSync(
      join(samples, "cli-store-and-transcripts", "test-store.db"),
      join(dir, "chats", "0123", "session", "store.db"),
    )
    const parsed = await everything(dir)
    expect(parsed).toMatchObject({ units: 1, conversations: [], unknown: {} }) // its state points to nothing
  })
})

async function everything(root: string) {
  const units = [...cursorConnector.discover(root, () => false)].filter((unit): unit is Unit => !isUnreadable(unit))
  const unknown: Record<string, number> = {}
  const conversations: Conversation[] = []
  for (const unit of units) {
    const parsed = cursorConnector.parse(await recordsOf(cursorConnector, unit), unit)
    conversations.push(...parsed.conversations)
    for (const [type, count] of Object.entries(parsed.unknown)) unknown[type] = (unknown[type] ?? 0) + count
  }
  return { units: units.length, conversations, unknown }
}
