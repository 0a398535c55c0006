import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { put } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { syncHome } from "../support/warm.ts"

const SESSION = "11111111-1111-4111-8111-111111111111"
const FILE = `.claude/projects/-code-api/${SESSION}.jsonl`

/** A transcript in which each message comes a minute after the previous one. */
const transcript = (messages: [string, number][]) =>
  messages.map(([text, minute], i) => ({
    ...{ type: "user", uuid: `${String(minute).padStart(8, "0")}-0000-4000-8000-000000000000`, isSidechain: false },
    parentUuid: i === 0 ? null : `${String(messages[i - 1]![1]).padStart(8, "0")}-0000-4000-8000-000000000000`,
    ...{ sessionId: SESSION, cwd: "/code/api", version: "2.1.197", message: { role: "user", content: text } },
    timestamp: new Date(Date.UTC(2026, 10, 3, 10, minute)).toISOString(),
  }))

async function stored(home: string) {
  const store = openStore(join(home, ".dex", "history.db"))
  try {
    const ref = { source: "claude_code" as const, id: SESSION }
    const messages = await store.messages(ref)
    const words = messages.map(({ parts, superseded }) => (superseded ? `(${parts[0]!.text})` : parts[0]!.text))
    return words
  } finally {
    store.close()
  }
}

test("messages that an agent's shortened file no longer has keep their position", async () => {
  const home = tempDir()
  const messages: [string, number][] = [
    ["Feed the pangolin at dusk", 1],
    ["Water the orchids", 2],
    ["Count the lanterns", 3],
  ]
  put(home, FILE, transcript(messages))
  await syncHome(home)
  const before = await stored(home)
  expect(before).toEqual(messages.map(([text]) => text))

  const lines = transcript([messages[1]!, ["Polish the brass", 4]])
  writeFileSync(join(home, FILE), lines.map((line) => `${JSON.stringify(line)}\n`).join(""))
  await syncHome(home)
  const after = await stored(home)
  expect(after).toEqual([
    "(Feed the pangolin at dusk)",
    "Water the orchids",
    "(Count the lanterns)",
    "Polish the brass",
  ])
  await syncHome(home)
  expect(await stored(home)).toEqual(after)
})
