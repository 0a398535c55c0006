import {
  appendFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { fileURLToPath } from "node:url"
import { describe, expect, test } from "vitest"
import { isUnreadable, type Unit } from "../../src/agents/kit/connector.ts"
import { opencodeConnector } from "../../src/agents/opencode/connector.ts"
import type { Conversation, Part } from "../../src/core/conversation.ts"
import { tempDir, treeHash } from "../support/temp.ts"
import { conversationsOf, homeOf, readAll, recordsOf, testConnector, unitsOf } from "./contract.ts"

const fixtures = fileURLToPath(new URL("../fixtures/opencode", import.meta.url))
const shared = fileURLToPath(new URL("../../../shared", import.meta.url))
const folderOf = (home: string) => join(home, ".local", "share", "opencode")

testConnector(opencodeConnector, fixtures)

async function traps(): Promise<Map<string, Conversation>> {
  const units = await readAll(opencodeConnector, await homeOf(join(fixtures, "1.18-traps")))
  const fromDatabase = units.filter((unit) => unit.unit.startsWith("db:"))
  return new Map(
    fromDatabase.flatMap((unit) => unit.conversations).map((conversation) => [conversation.id, conversation]),
  )
}

async function trap(id: string): Promise<Conversation> {
  return (await traps()).get(id)!
}

const texts = (conversation: Conversation) =>
  conversation.messages.flatMap((message) => message.parts.map((part) => part.text))
const partsOf = (conversation: Conversation) => conversation.messages.flatMap((message) => message.parts)
const resultOf = (conversation: Conversation, call: string) =>
  partsOf(conversation).find(
    (part): part is Part & { type: "tool_result" } => part.type === "tool_result" && part.call_id === call,
  )!

describe("roots", () => {
  const at = (env: Record<string, string>, platform: NodeJS.Platform = "darwin") =>
    opencodeConnector.roots({ home: "/home/dev", env, platform })

  test("the data folder is the XDG one on every platform", () => {
    for (const platform of ["darwin", "linux", "win32"] as const) {
      expect(at({}, platform)).toEqual([join("/home/dev", ".local", "share", "opencode")])
    }
    expect(at({ XDG_DATA_HOME: "/data" })).toEqual([join("/data", "opencode")])
  })

  test("$OPENCODE_DB adds a database, unless it is found anyway or in memory", () => {
    expect(at({ OPENCODE_DB: "/else/my.db" })).toEqual(["/home/dev/.local/share/opencode", "/else/my.db"])
    expect(at({ OPENCODE_DB: "sub/my.db" })[1]).toBe("/home/dev/.local/share/opencode/sub/my.db")
    expect(at({ OPENCODE_DB: "opencode-dev.db" })).toHaveLength(1)
    expect(at({ OPENCODE_DB: ":memory:" })).toHaveLength(1)
  })

  test("databases of every channel are read, and one that $OPENCODE_DB names", async () => {
    const home = await homeOf(join(fixtures, "1.18.33-tools-and-subagent"))
    const database = join(folderOf(home), "opencode.db")
    const units = (root: string) => [...opencodeConnector.discover(root, () => false)]
    const count = units(folderOf(home)).length
    cpSync(database, join(home, "elsewhere.db"))
    expect(units(join(home, "elsewhere.db"))).toHaveLength(count)
    cpSync(database, join(folderOf(home), "opencode-dev.db"))
    expect(units(folderOf(home))).toHaveLength(count * 2)
    expect(units(join(home, "nowhere"))).toEqual([])
  })
})

describe("databases", () => {
  test("a container that was seen in this state is not opened", async () => {
    const home = await homeOf(join(fixtures, "1.18.33-tools-and-subagent"))
    const checked: string[] = []
    const seen = (path: string, stamp: string) => checked.push(`${path} ${stamp}`) > 0
    expect([...opencodeConnector.discover(folderOf(home), seen)]).toEqual([])
    expect(checked).toHaveLength(1)
    expect(checked[0]).toContain(join(folderOf(home), "opencode.db"))
  })

  test("a part that is rewritten in place changes the stamp of its session only", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const stamps = async () => new Map((await unitsOf(opencodeConnector, home)).map((unit) => [unit.key, unit.stamp]))
    const before = await stamps()
    const db = new DatabaseSync(join(folderOf(home), "opencode.db"))
    db.exec(`update part set data = '{"type":"text","text":"Done, all of it."}', time_updated = time_updated + 1
      where session_id = 'ses_two_steps' and data like '%Done.%'`)
    db.close()
    const after = await stamps()
    const moved = [...after].filter(([key, stamp]) => before.get(key) !== stamp).map(([key]) => key)
    expect(moved).toEqual(["db:ses_two_steps"])
  })

  test("reading unchanged data again gives nothing", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const unit = (await unitsOf(opencodeConnector, home)).find((found) => found.key === "db:ses_tools")!
    const first = await opencodeConnector.read(unit)
    expect([...first.records].length).toBeGreaterThan(10)
    const again = await opencodeConnector.read(unit, first.end().cursor)
    expect(again.mode).toBe("append")
    expect([...again.records]).toEqual([])
  })

  test("reports a file that is not a database, another program's database and a link, and reads the rest", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    writeFileSync(join(folderOf(home), "opencode-a.db"), "no database".repeat(200))
    new DatabaseSync(join(folderOf(home), "opencode-b.db")).exec("create table other (x)")
    symlinkSync(join(home, "anything.db"), join(folderOf(home), "opencode-c.db"))
    const found = [...opencodeConnector.discover(folderOf(home), () => false)]
    expect(found.filter(isUnreadable).map(({ unreadable }) => unreadable)).toEqual([
      "not readable as a database: file is not a database",
      "there is no session table: this is not OpenCode's database, or dex does not know its format",
      "a symbolic link, not followed",
    ])
    expect(found.filter((unit) => !isUnreadable(unit)).length).toBeGreaterThan(5)
  })

  test("does not read credentials, share links, signatures, copies of files and image bytes", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const records = []
    for (const unit of await unitsOf(opencodeConnector, home))
      records.push(...(await recordsOf(opencodeConnector, unit)))
    const kept = JSON.stringify(records)
    expect(kept).not.toMatch(/MUST-NOT|WHOLE-FILE|secret-link|iVBORw0KGgo/)
  })

  test("a damaged row is counted, and the others of its session are read", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const unit = (await unitsOf(opencodeConnector, home)).find((found) => found.key === "db:ses_damaged")!
    const reading = await opencodeConnector.read(unit)
    expect([...reading.records]).toHaveLength(4)
    expect(reading.end().skipped).toEqual([{ reason: "damaged JSON", where: "part prt_bad" }])
  })

  test("handles a missing session and a row that is nested too deeply", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const unit = (await unitsOf(opencodeConnector, home)).find((found) => found.key === "db:ses_two_steps")!
    expect(await recordsOf(opencodeConnector, { ...unit, key: "db:ses_gone" })).toEqual([])
    const db = new DatabaseSync(unit.path)
    const deep = `${'{"a":'.repeat(5_000)}1${"}".repeat(5_000)}`
    db.prepare("insert into part values ('prt_deep', 'msg_04', 'ses_two_steps', 1, 1, ?)").run(deep)
    db.close()
    const reading = await opencodeConnector.read(unit)
    expect([...reading.records].length).toBeGreaterThan(3)
    expect(reading.end().skipped[0]?.reason).toContain("nested deeper")
  })
})

describe("JSON trees", () => {
  test("a session that 0.6 copied from the older tree is found once", async () => {
    const units = await unitsOf(opencodeConnector, await homeOf(join(fixtures, "0.5-oldest-trees")))
    expect(units.map((unit) => unit.key)).toEqual(["json:ses_inline", "json:ses_split"])
    expect(units[1]?.path).toContain(join("storage", "session", "0123abcd"))
  })

  test("reads a database and the tree it was made from; the database wins", async () => {
    const units = await readAll(opencodeConnector, await homeOf(join(fixtures, "1.18-traps")))
    const both = units
      .flatMap((unit) => unit.conversations)
      .filter((conversation) => conversation.id === "ses_two_steps")
    expect(both.map((conversation) => conversation.authority)).toEqual([10, 8])
  })

  test("a part that is rewritten in place changes the stamp, although no folder's time changes", async () => {
    const home = await homeOf(join(fixtures, "1.1.65-json-files"))
    const [before] = await unitsOf(opencodeConnector, home)
    const part = join(
      folderOf(home),
      "storage",
      "part",
      "msg_1dc53671d001DaHqb1nLkghgcs",
      "prt_1dc53673a002eArBT1KCHfPaLX.json",
    )
    const text = readFileSync(part, "utf8")
    writeFileSync(part, text.replace("tiny", "TINY"))
    utimesSync(part, 1_800_000_000, 1_800_000_000)
    expect((await unitsOf(opencodeConnector, home))[0]?.stamp).not.toBe(before?.stamp)
  })

  test("a torn file is counted, and the rest of its session is read", async () => {
    const home = await homeOf(join(fixtures, "1.1.65-json-files"))
    const [unit] = await unitsOf(opencodeConnector, home)
    const all = await recordsOf(opencodeConnector, unit!)
    appendFileSync(
      join(folderOf(home), "storage", "part", "msg_1dc536581001MEC47cmENTDNHg", "prt_9.json"),
      '{"type":"te',
    )
    const reading = await opencodeConnector.read(unit!)
    expect([...reading.records]).toEqual(all)
    expect(reading.end().skipped).toHaveLength(1)
  })

  test("a message id that is a path cannot lead out of the tree", async () => {
    const home = await homeOf(join(fixtures, "1.1.65-json-files"))
    const messages = join(folderOf(home), "storage", "message", "ses_e23ac9a92ffe58CWFFBzYQLefx")
    writeFileSync(
      join(messages, "msg_zz.json"),
      JSON.stringify({ id: "../../../../../outside", role: "user", time: {} }),
    )
    mkdirSync(join(home, "outside"))
    writeFileSync(join(home, "outside", "p.json"), JSON.stringify({ type: "text", text: "outside" }))
    const [unit] = await unitsOf(opencodeConnector, home)
    expect(JSON.stringify(await recordsOf(opencodeConnector, unit!))).not.toContain('"text":"outside"')
  })
})

describe("the content of a session", () => {
  test("a prompt of `opencode run` loses its quotes; quotes inside a prompt stay", async () => {
    const conversations = await traps()
    expect(texts(conversations.get("ses_tools")!)[0]).toBe('Fix the "flaky" date test')
    expect(texts(conversations.get("ses_two_steps")!)[0]).toBe('He said "yes" and "no"')
  })

  test("synthetic and ignored text in the user's turn is injected, not the person's", async () => {
    const [first] = (await trap("ses_tools")).messages
    const origins = first!.parts.filter((part) => part.type === "text").map((part) => part.origin)
    expect(origins).toEqual(["person", "injected", "injected"])
  })

  test("an image is stored as a digest, another file as a mention", async () => {
    const [first] = (await trap("ses_tools")).messages
    const image = first!.parts.find((part) => part.type === "image")
    expect(image).toMatchObject({ text: "screen.png", mime: "image/png", bytes: 70, origin: "person" })
    expect(first!.effects).toEqual([{ type: "file", path: "/home/dev/app/notes one.txt", action: "mentioned" }])
  })

  test("a completed command has failed if its exit status says so", async () => {
    const conversation = await trap("ses_tools")
    expect(resultOf(conversation, "call_bash").is_error).toBe(true)
    expect(conversation.messages[1]!.effects).toContainEqual({
      type: "command",
      command: "npm test",
      call_id: "call_bash",
      exit_status: 1,
      failed: true,
      error: "1 failed",
    })
  })

  test("edits have their hunks; a refused edit has no effect", async () => {
    const conversation = await trap("ses_tools")
    expect(resultOf(conversation, "call_edit").hunks?.[0]?.lines).toEqual(["-new Date()", "+new Date(0)", "+// pinned"])
    expect(resultOf(conversation, "call_patch").hunks?.[0]).toMatchObject({
      path: "/home/dev/app/new.ts",
      lines: ["+    indented"],
    })
    expect(resultOf(conversation, "call_write").hunks?.[0]).toMatchObject({
      path: "/home/dev/app/fresh.md",
      new_lines: 2,
    })
    expect(resultOf(conversation, "call_refused")).toMatchObject({ is_error: true, text: "Error: oldString not found" })
    const edited = conversation.messages[1]!.effects!.flatMap((effect) =>
      effect.type === "file" && effect.action === "edited" ? [[effect.path, effect.call_id, effect.added]] : [],
    )
    expect(edited).toEqual([
      ["/home/dev/app/src/date.test.ts", "call_edit", 2],
      ["/home/dev/app/new.ts", "call_patch", 1],
      ["/home/dev/app/fresh.md", "call_write", 2],
      ["/home/dev/app/made-by-a-command.txt", undefined, undefined],
    ])
  })

  test("an MCP tool's result is remote, although its name has no mark", async () => {
    const conversation = await trap("ses_tools")
    expect(resultOf(conversation, "call_mcp").origin).toBe("web")
    expect(resultOf(conversation, "call_bash").origin).toBe("local_tool")
  })

  test("a call that is still running has no result yet", async () => {
    const conversation = await trap("ses_tools")
    expect(resultOf(conversation, "call_pending")).toBeUndefined()
    expect(partsOf(conversation).some((part) => part.type === "tool_call" && part.call_id === "call_pending")).toBe(
      true,
    )
  })

  test("an error becomes a notice, and a part of an unknown type is counted", async () => {
    const units = await readAll(opencodeConnector, await homeOf(join(fixtures, "1.18-traps")))
    const unit = units.find((one) => one.unit === "db:ses_tools")!
    expect(unit.unknown).toEqual({ "part hologram": 1 })
    expect(unit.conversations[0]!.messages.at(-1)).toMatchObject({
      role: "system",
      parts: [{ text: "ProviderAuthError: key expired" }],
    })
  })

  test("adds up the tokens of a message with several steps, without cached ones", async () => {
    const usage = (await trap("ses_two_steps")).messages[1]!.usage
    expect(usage).toMatchObject({ input: 30, output: 3, cache_read: 16, cache_write: 0, cost: 0.05 })
    expect((await trap("ses_tools")).messages[2]!.usage).toBeUndefined()
  })

  test("a compaction is a summary; a default title is ignored", async () => {
    const conversation = await trap("ses_compacted")
    expect(conversation.title).toBeUndefined()
    expect(partsOf(conversation).map((part) => [part.type, part.origin])).toEqual([
      ["text", "person"],
      ["summary", "agent"],
      ["text", "injected"],
    ])
  })

  test("reverted messages stay readable and are marked as abandoned", async () => {
    const conversations = await traps()
    const abandoned = (id: string) => conversations.get(id)!.messages.map((message) => message.abandoned ?? false)
    expect(abandoned("ses_reverted")).toEqual([false, false, true, true])
    expect(abandoned("ses_part_reverted")).toEqual([false, false, true])
  })

  test("a child session is a subagent, and its parent's prompt is not a person's", async () => {
    const child = await trap("ses_child")
    expect(child).toMatchObject({ kind: "subagent", parent: { id: "ses_tools" } })
    expect(child.title).toBeUndefined()
    expect(child.messages[0]!.parts[0]!.origin).toBe("agent")
  })

  test("uses the worktree if a session has no directory; skips a session without messages", async () => {
    const conversations = await traps()
    expect(conversations.get("ses_no_directory")!.cwds).toEqual(["/home/dev/worktree"])
    expect(conversations.get("ses_tools")!.cwds).toEqual(["/home/dev/app"])
    expect(conversations.has("ses_empty")).toBe(false)
  })

  test("reads a session that is only in the tables of version 2", async () => {
    const conversation = await trap("ses_v2")
    expect(
      conversation.messages.map((message) => [message.role, message.parts.map((part) => part.type).join()]),
    ).toEqual([
      ["user", "text,image"],
      ["assistant", "thinking,tool_call,tool_result,text"],
      ["user", "text,tool_result"],
      ["user", "text"],
      ["user", "text"],
      ["system", "summary"],
    ])
    expect(resultOf(conversation, "call_v2")).toMatchObject({ text: "a.ts", tool: "bash" })
    expect(conversation.messages[2]!.effects).toEqual([
      { type: "command", command: "false", call_id: "sh_1", exit_status: 1, failed: true, error: "failed badly" },
    ])
  })

  test("orders messages by time, then id, whatever the order of the rows", async () => {
    const home = await homeOf(join(fixtures, "1.18-traps"))
    const unit = (await unitsOf(opencodeConnector, home)).find((found) => found.key === "db:ses_tools")!
    const records = await recordsOf(opencodeConnector, unit)
    expect(opencodeConnector.parse(records.toReversed(), unit)).toEqual(opencodeConnector.parse(records, unit))
  })
})

describe("version 2", () => {
  const fresh = () => homeOf(join(fixtures, "2.0-fresh")).then((home) => conversationsOf(opencodeConnector, home))
  const upgraded = () => homeOf(join(fixtures, "2.0-upgraded")).then((home) => conversationsOf(opencodeConnector, home))
  const upgradedSession = async (id: string) => (await upgraded()).get(id)!
  const textsOf = (conversation: Conversation) =>
    conversation.messages.map((message) => message.parts.map((part) => part.text).join(" | "))

  test("reads a database with only the newer tables, and one of another channel", async () => {
    const conversations = await fresh()
    expect([...conversations.keys()].sort()).toEqual(["ses_branch", "ses_fork", "ses_fresh", "ses_reverted"])
    const first = conversations.get("ses_fresh")!
    expect(first).toMatchObject({ title: { text: "Why the queue stalls" }, agent_version: "2.0.3" })
    expect(first.messages.map(({ role, parts }) => `${role} ${parts.map(({ type }) => type).join()}`)).toEqual([
      "user text,text,image",
      "assistant thinking,tool_call,tool_result,text",
      "system summary",
      "user text",
      "assistant tool_call",
    ])
    expect(first.messages[0]!.parts.map(({ origin }) => origin)).toEqual(["person", "injected", "person"])
    expect(first.messages[0]!.effects).toEqual([
      { type: "file", path: "/home/dev/queue/worker.ts", action: "mentioned" },
    ])
  })

  test("a fork names its original, and has only the usage of its own answers", async () => {
    const fork = (await fresh()).get("ses_fork")!
    expect(fork.fork_of).toBe("ses_fresh")
    expect(fork.messages.map(({ usage }) => usage?.input)).toEqual([undefined, undefined, undefined, 10])
  })

  test("reverted messages are marked as abandoned", async () => {
    const messages = (await fresh()).get("ses_reverted")!.messages
    expect(messages.map((message) => message.abandoned ?? false)).toEqual([false, false, true, true])
  })

  test("a session that was not used since the upgrade has the same content as before", async () => {
    const conversation = await upgradedSession("ses_upgraded")
    expect(textsOf(conversation)).toEqual([
      "Why is the disk full? | [Attachment unavailable after migration: notes.md (text/plain)]",
      '{"command":"df -h"} | /dev/sda1 97% | Old logs.',
      "Delete old logs",
      "The disk was full of logs.",
    ])
    const [prompt, answer] = conversation.messages
    expect(prompt!.parts.map(({ origin }) => origin)).toEqual(["person", "injected"])
    expect(prompt!.effects).toEqual([{ type: "file", path: "/home/dev/queue/notes.md", action: "mentioned" }])
    expect(answer!.usage).toMatchObject({ input: 310, output: 22 })
    expect(conversation.messages.at(-1)).toMatchObject({ key: "msg_u5", usage: { input: 10 } })
    expect(conversation.messages.some(({ abandoned }) => abandoned)).toBe(false)
  })

  test("a session that continued after the upgrade is read from the newer table, each message once", async () => {
    const conversation = await upgradedSession("ses_continued")
    expect(conversation.title?.text).toBe("New title")
    expect(conversation.messages.map(({ key }) => key)).toEqual([
      ...["msg_c1", "msg_c2", "msg_c2:error", "msg_c3", "msg_c4", "msg_c4:error"],
    ])
    expect(textsOf(conversation).slice(1)).toEqual([
      "None. Add one on created_at.",
      "APIError: overloaded",
      "Asked in the new program: is it faster now?",
      "Ten times.",
      "stopped by the user",
    ])
  })

  test("messages that an older program wrote after the upgrade are also read, in order of time", async () => {
    const conversation = await upgradedSession("ses_rolled_back")
    expect(textsOf(conversation)).toEqual([
      "Before the upgrade",
      "Back in the old program",
      "The old program answers",
      "And in the new program again",
    ])
    expect(conversation.messages.some(({ abandoned }) => abandoned)).toBe(false)
    expect(textsOf(await upgradedSession("ses_old_again"))).toEqual(["The old program is back and asks something new"])
  })

  test("a session without rows in the newer table is read from the older ones", async () => {
    expect(textsOf(await upgradedSession("ses_empty_v2"))).toEqual(["The upgrade was interrupted before this one"])
  })

  test("turns reverted in 2.x that the older tables still have are marked as abandoned", async () => {
    const { messages } = await upgradedSession("ses_taken_back")
    expect(messages.map(({ key, abandoned }) => [key, abandoned ?? false])).toEqual([
      ["msg_t1", false],
      ["msg_t2", true],
      ["msg_t3", false],
    ])
  })

  test("sessions deleted in 2.x do not reappear from the older tables or the beta's database", async () => {
    const conversations = await upgraded()
    expect(conversations.has("ses_deleted")).toBe(false)
    expect(conversations.has("ses_beta_deleted")).toBe(false)
    expect(conversations.has("ses_beta")).toBe(true)
    expect(conversations.has("ses_beta_later")).toBe(true)
  })

  test("if the upgrade was not recorded as completed, nothing counts as deleted", async () => {
    const home = await homeOf(join(fixtures, "2.0-upgraded"))
    const db = new DatabaseSync(join(folderOf(home), "opencode.db"))
    db.exec(`update kv set value = '{"phase":"sessions","cursor":"ses_new"}'`)
    db.close()
    const conversations = await conversationsOf(opencodeConnector, home)
    expect(conversations.has("ses_deleted")).toBe(true)
    expect(conversations.has("ses_beta_deleted")).toBe(true)
    expect(conversations.get("ses_taken_back")!.messages.some(({ abandoned }) => abandoned)).toBe(false)
  })

  test("a beta's database that the upgrade could not import keeps its sessions", async () => {
    const home = await homeOf(join(fixtures, "2.0-upgraded"))
    const db = new DatabaseSync(join(folderOf(home), "opencode-next.db"))
    db.exec("alter table session rename to session_v2")
    db.close()
    expect((await conversationsOf(opencodeConnector, home)).has("ses_beta_deleted")).toBe(true)
  })

  test("a row of the newer table that is rewritten in place changes the stamp of its session only", async () => {
    const home = await homeOf(join(fixtures, "2.0-upgraded"))
    const stamps = async () => new Map((await unitsOf(opencodeConnector, home)).map((unit) => [unit.key, unit.stamp]))
    const before = await stamps()
    const db = new DatabaseSync(join(folderOf(home), "opencode.db"))
    db.exec("update session_message set time_updated = time_updated + 1 where id = 'msg_c4'")
    db.close()
    const moved = [...(await stamps())].filter(([key, stamp]) => before.get(key) !== stamp).map(([key]) => key)
    expect(moved).toEqual(["db:ses_continued"])
  })

  test("does not store signatures, share links, image bytes and the copy of recent messages", async () => {
    for (const fixture of ["2.0-fresh", "2.0-upgraded"]) {
      const home = await homeOf(join(fixtures, fixture))
      const records = []
      for (const unit of await unitsOf(opencodeConnector, home))
        records.push(...(await recordsOf(opencodeConnector, unit)))
      expect(JSON.stringify(records)).not.toMatch(/MUST-NOT|RECENT-COPY|secret-link|iVBORw0KGgo/)
    }
  })
})

test("reads the recorded OpenCode databases without an exception or an unknown type", async () => {
  const home = await homeOf(join(fixtures, "1.18.33-tools-and-subagent"))
  const conversations = await conversationsOf(opencodeConnector, home)
  expect(conversations.size).toBe(4)
  expect((await readAll(opencodeConnector, home)).map((unit) => unit.unknown)).toEqual([{}, {}, {}, {}])
})

const samples = [
  ["samples/opencode/synthetic/opencode.db", 1],
  ["samples/kilo/kilo.db", 1],
  ["real-sessions/opencode/opencode.db", 13],
] as const
for (const [path, expected] of samples) {
  const there = existsSync(join(shared, path))
  if (!there) console.log(`NOT RUN: ${path} is not on this machine`)
  test.skipIf(!there)(`reads ${path}`, async () => {
    const dir = tempDir()
    cpSync(join(shared, path), join(dir, "opencode.db"))
    const before = treeHash(dir)
    const { conversations, unknown } = await everything(dir)
    expect(conversations).toHaveLength(expected)
    expect(unknown).toEqual({})
    expect(treeHash(dir)).toEqual(before)
  })
}

const there = existsSync(join(shared, "samples/opencode"))
if (!there) console.log("NOT RUN: samples/opencode is not on this machine")
test.skipIf(!there)("reads the JSON samples", async () => {
  const dir = tempDir()
  cpSync(join(shared, "samples/opencode/storage_v2"), join(dir, "storage"), { recursive: true })
  const { conversations, unknown } = await everything(dir)
  expect(conversations.map((conversation) => conversation.messages.length).sort()).toEqual([2, 5])
  expect(unknown).toEqual({})
  rmSync(join(dir, "storage"), { recursive: true })
})

async function everything(root: string) {
  const units = [...opencodeConnector.discover(root, () => false)].filter((unit): unit is Unit => !isUnreadable(unit))
  const unknown: Record<string, number> = {}
  const conversations: Conversation[] = []
  for (const unit of units) {
    const parsed = opencodeConnector.parse(await recordsOf(opencodeConnector, unit), unit)
    conversations.push(...parsed.conversations)
    for (const [type, count] of Object.entries(parsed.unknown)) unknown[type] = (unknown[type] ?? 0) + count
  }
  return { conversations, unknown }
}
