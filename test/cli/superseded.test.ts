import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, test } from "vitest"
import { connect } from "../mcp/client.ts"
import { put } from "../support/claude-code.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex, syncHome } from "../support/warm.ts"

const idOf = (n: number) => `7111111${n}-1111-4111-8111-111111111111`

test("a conversation that its agent's file no longer contains is listed with what dex kept, and marked", async () => {
  const home = tempDir()
  const lines = [1, 1, 1, 2].map((n, i) => ({
    display: `Feed the pangolin ${i} before it gets dark outside`,
    pastedContents: {},
    timestamp: 1_760_000_000_000 + i * 60_000,
    project: "/home/dev/p",
    sessionId: idOf(n),
  }))
  put(home, ".claude/history.jsonl", lines)
  await syncHome(home)
  const log = join(home, ".claude/history.jsonl")
  const before = JSON.parse((await dex(home, ["list", "--json"])).stdout).conversations
  writeFileSync(log, readFileSync(log, "utf8").split("\n").slice(3).join("\n"))
  await syncHome(home)

  const { conversations } = JSON.parse((await dex(home, ["list", "--json"])).stdout)
  const kept = conversations.find(({ id }: { id: string }) => id === `claude_code:${idOf(1)}`)
  const was = before.find(({ id }: { id: string }) => id === kept.id)
  expect(kept).toEqual({ ...was, superseded: true })
  expect(kept).toMatchObject({ message_count: 3, date: was.date })
  expect(conversations.find(({ id }: { id: string }) => id === `claude_code:${idOf(2)}`)).not.toHaveProperty(
    "superseded",
  )
  const shown = await dex(home, ["list"])
  expect(shown.stdout).toMatch(/Feed the pangolin 0.*\(superseded\).*3 msg, \d+ tok/)
  expect(shown.stderr).toMatch(/superseded: no longer in the agent's file; dex has a copy/)
  const found = await dex(home, ["search", "pangolin dark"])
  expect(found.stdout).toMatch(/\(superseded\)/)
  expect(found.stdout).not.toMatch(/0 messages/)
  const show = JSON.parse((await dex(home, ["show", idOf(1), "--json"])).stdout).conversations[0]
  expect(show.messages).toHaveLength(3)
  expect(show.messages.every(({ state }: { state: string }) => state === "superseded")).toBe(true)
  const client = await connect(home)
  const listed = (await client.call("dex_list", { all: true })).content[0]!.text
  expect(listed).toMatch(/superseded\n {2}3 messages, ~\d+ tokens/)
  // They are not counted among the messages that the agents' files still have.
  const stats = JSON.parse((await dex(home, ["stats", "--json"])).stdout)
  expect(stats.total_messages).toBe(1)
})
