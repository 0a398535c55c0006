import { join } from "node:path"
import { expect, onTestFinished, test } from "vitest"
import { learn } from "../../src/learn/learn.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import type { ConversationWrite, MessageWrite } from "../../src/store/history/store.ts"
import { type Knowledge, openKnowledge } from "../../src/store/knowledge/knowledge.ts"
import { conversation, textMessage, unit } from "../support/conversations.ts"
import { tempDir } from "../support/temp.ts"

const SECRET = "/code/secret"

function open() {
  const dir = tempDir()
  const store = openStore(join(dir, "history.db"))
  const opened = [store] as { close(): void }[]
  onTestFinished(() => {
    for (const one of opened) one.close()
  })
  const knowing = (name: string) => {
    const knowledge = openKnowledge(join(dir, `${name}.db`))
    opened.push(knowledge)
    return knowledge
  }
  const knowledge = knowing("knowledge")
  const rebuilt = async () => {
    const anew = knowing(`anew-${opened.length}`)
    await learn(store, anew)
    return fixes(anew)
  }
  const put = (id: string, messages: MessageWrite[], more: Partial<ConversationWrite> = {}) =>
    store.writeUnit(unit(id, [conversation(id, messages, more)]))
  return { dir, store, knowledge, rebuilt, put }
}

const fixes = (knowledge: Knowledge) => knowledge.fixes.fixesWithWords(["quokkaword"], { limit: 10 })

function ran(key: string, failed: boolean): MessageWrite {
  const error = failed ? "TypeError: quokkaword is not a function" : ""
  return textMessage(key, "", {
    role: "assistant",
    parts: [],
    effects: [{ type: "command", command: "npm test", failed, error }],
  })
}

function edited(key: string, path: string): MessageWrite {
  const text = JSON.stringify({ old_string: "a", new_string: "zebrafishword" })
  return textMessage(key, "", {
    role: "assistant",
    parts: [{ type: "tool_call", tool: "Edit", text, call_id: key, origin: "agent" }],
    effects: [{ type: "file", action: "edited", path, added: 1, removed: 1, call_id: key }],
  })
}

const delegated = (key: string, call_id: string): MessageWrite =>
  textMessage(key, "", {
    role: "assistant",
    parts: [{ type: "tool_call", tool: "Task", text: "{}", call_id, origin: "agent" }],
  })

const parentMessages = () => [
  textMessage("p1", "make it pass"),
  ran("p2", true),
  delegated("p3", "x1"),
  ran("p4", false),
]
const subagent = (project: string): Partial<ConversationWrite> => ({
  kind: "subagent",
  parent: { id: "P", call_id: "x1" },
  project,
  cwds: [project],
})

test("a forgotten subagent's work is no longer part of its parent's facts", async () => {
  const { store, knowledge, rebuilt, put } = open()
  await put("P", parentMessages())
  await put("S", [textMessage("s1", "mend it"), edited("s2", "/code/api/src/token.ts")], subagent("/code/api"))
  await learn(store, knowledge)
  expect(fixes(knowledge)).toMatchObject([{ id: "P", files: [{ path: "src/token.ts" }] }])
  await store.forget([{ source: "claude_code", id: "S" }])
  await learn(store, knowledge)
  expect(fixes(knowledge)).toEqual([])
  expect(await rebuilt()).toEqual([])
})

test("a conversation that replaces a forgotten one in the feed does not hide that it was forgotten", async () => {
  const { store, knowledge, put } = open()
  await put("P", parentMessages())
  await put("S", [textMessage("s1", "mend it"), edited("s2", "/code/api/src/token.ts")], subagent("/code/api"))
  await learn(store, knowledge)
  const before = (await store.changes(undefined, 9)).changes.map((change) => change.conversation)
  await store.forget([{ source: "claude_code", id: "S" }])
  await put("N", [textMessage("n1", "hello")])
  expect((await store.changes(undefined, 9)).changes).toContainEqual({
    conversation: before.at(-1),
    change: expect.any(Number),
    deleted: false,
    ref: { source: "claude_code", id: "N" },
  })
  await learn(store, knowledge)
  expect(fixes(knowledge)).toEqual([])
})

test("a subagent's work in another project is never part of its parent's facts, private or not", async () => {
  const { store, knowledge, rebuilt, put } = open()
  await put("P", [...parentMessages(), ran("p5", true), edited("p6", "/code/api/src/own.ts"), ran("p7", false)])
  await put("S", [textMessage("s1", "mend it"), edited("s2", `${SECRET}/src/plan.ts`)], subagent(SECRET))
  for (const isPrivate of [false, true, false]) {
    await store.setPrivate(SECRET, isPrivate)
    await learn(store, knowledge)
    expect(fixes(knowledge)).toMatchObject([{ id: "P", files: [{ path: "src/own.ts" }] }])
    expect(JSON.stringify(fixes(knowledge))).not.toContain("plan.ts")
    expect(await rebuilt()).toEqual(fixes(knowledge))
  }
})
