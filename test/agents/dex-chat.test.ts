import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, test } from "vitest"
import { chatFolderOf, dexChatConnector } from "../../src/agents/dex-chat/connector.ts"
import { hostileCopies } from "../support/hostile.ts"
import { tempDir } from "../support/temp.ts"
import { conversationsOf, homeOf, recordsOf, testConnector, unitsOf } from "./contract.ts"

const FIXTURES = "test/fixtures/dex_chat"
testConnector(dexChatConnector, FIXTURES)

function write(home: string, id: string, ...lines: unknown[]): string {
  const file = join(home, ".dex/chat-sessions", id, "messages.jsonl")
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  return file
}

test("a question is the person's; an answer is dex's, with the refs of its numbers", async () => {
  const home = tempDir()
  write(
    home,
    "2026-11-15T08-00-00-000Z",
    { type: "chat", cwd: "/code/api", dex_version: "0.1.0" },
    { type: "question", n: 1, text: "which port?" },
    { type: "answer", n: 1, text: "Port 0 [2].", sources: [{ n: 2, ref: "claude_code:a#7" }], used: { model: "h/m" } },
    { type: "question", n: 2, text: "and then?" },
    { type: "answer", n: 2, text: "", stopped: true },
  )
  const [conversation] = (await conversationsOf(dexChatConnector, home)).values()
  expect(conversation!.id).toMatch(/^[0-9a-f]{8}-2026-11-15T08-00-00-000Z$/)
  expect(chatFolderOf(conversation!.id)).toBe("2026-11-15T08-00-00-000Z")
  expect(conversation).toMatchObject({ kind: "dex", cwds: ["/code/api"] })
  expect(conversation!.messages).toMatchObject([
    { role: "user", parts: [{ text: "which port?", origin: "person" }] },
    { role: "assistant", model: "h/m", parts: [{ text: "Port 0 [2].\n\n[2] claude_code:a#7", origin: "agent" }] },
    { role: "user", parts: [{ text: "and then?", origin: "person" }] },
  ])
})

test("DEX_HOME moves the folder; links are not followed, and other files are not chats", async () => {
  const home = tempDir()
  const file = write(home, "a", { type: "question", n: 1, text: "x" })
  expect(dexChatConnector.roots({ home: "/u", env: { DEX_HOME: "/elsewhere" }, platform: "linux" })).toEqual([
    "/elsewhere/chat-sessions",
  ])
  const root = join(home, ".dex/chat-sessions")
  symlinkSync(join(root, "a"), join(root, "b"))
  mkdirSync(join(root, "c"))
  symlinkSync(file, join(root, "c/messages.jsonl"))
  mkdirSync(join(root, "d/opencode"), { recursive: true })
  writeFileSync(join(root, "stray"), "")
  expect((await unitsOf(dexChatConnector, home)).map(({ key }) => key)).toEqual(["a"])
})

test("never throws if any field has the wrong type", async () => {
  const home = await homeOf(join(FIXTURES, "0.1-quotes-answers-stopped"))
  for (const unit of await unitsOf(dexChatConnector, home)) {
    const lines = readFileSync(unit.path, "utf8").trim().split("\n")
    writeFileSync(
      unit.path,
      lines.flatMap((line) => [...hostileCopies(JSON.parse(line))].map((one) => `${JSON.stringify(one)}\n`)).join(""),
    )
    const records = await recordsOf(dexChatConnector, unit)
    expect(dexChatConnector.parse(records, unit).conversations.length).toBe(1)
    for (const record of records) dexChatConnector.parse([record], unit)
  }
})
