import { mkdirSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { describe, expect, test } from "vitest"
import { sourceIds } from "../../src/agents/registry.ts"
import { totalUsage, type Usage } from "../../src/core/usage.ts"
import { openStore } from "../../src/store/history/sqlite-history.ts"
import { tempDir } from "../support/temp.ts"
import { warmDex as dex } from "../support/warm.ts"

async function synced(home: string): Promise<Usage[]> {
  const { code, stderr } = await dex(home, ["sync"])
  expect(code, stderr).toBe(0)
  const store = openStore(join(home, ".dex", "history.db"))
  try {
    const lists = await Promise.all(sourceIds.map((source) => store.list({ source, limit: 10_000, offset: 0 })))
    return lists.flatMap(({ rows }) => rows).flatMap(({ usage }) => usage ?? [])
  } finally {
    store.close()
  }
}

function writeLines(path: string, records: object[]): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, records.map((record) => `${JSON.stringify(record)}\n`).join(""))
}

describe("usage", () => {
  test("stores the fields that decide a price: cache writes by duration, tier, speed, searches and fetches", async () => {
    const home = tempDir()
    const record = (uuid: string, more: object) => ({
      uuid,
      parentUuid: null,
      isSidechain: false,
      sessionId: "11111111-0000-4000-8000-000000000000",
      cwd: "/code/api",
      version: "2.1.325",
      timestamp: "2026-11-03T10:00:00.000Z",
      ...more,
    })
    writeLines(join(home, ".claude", "projects", "-code-api", "11111111-0000-4000-8000-000000000000.jsonl"), [
      record("u1", { type: "user", message: { role: "user", content: "What is new?" } }),
      record("u2", {
        type: "assistant",
        message: {
          id: "msg_1",
          role: "assistant",
          model: "m",
          content: [{ type: "tool_use", id: "t1", name: "WebSearch", input: { query: "news" } }],
          usage: {
            input_tokens: 10,
            output_tokens: 20,
            cache_read_input_tokens: 0,
            cache_creation_input_tokens: 300,
            cache_creation: { ephemeral_5m_input_tokens: 100, ephemeral_1h_input_tokens: 200 },
            server_tool_use: { web_search_requests: 1, web_fetch_requests: 2 },
            service_tier: "priority",
            speed: "fast",
          },
        },
      }),
      record("u3", {
        type: "user",
        message: { role: "user", content: [{ type: "tool_result", tool_use_id: "t1", content: "found" }] },
        toolUseResult: { query: "news", results: ["found"], durationSeconds: 1, searchCount: 4 },
      }),
      record("u4", {
        type: "assistant",
        message: {
          id: "msg_2",
          role: "assistant",
          model: "m",
          content: [{ type: "text", text: "\n\n" }],
          usage: { input_tokens: 1, output_tokens: 1, cache_read_input_tokens: 50 },
        },
      }),
    ])
    expect(await synced(home)).toEqual([
      {
        input: 11,
        output: 21,
        cache_read: 50,
        cache_write: 300,
        cache_write_5m: 100,
        cache_write_1h: 200,
        web_searches: 5,
        web_fetches: 2,
      },
    ])
    const store = openStore(join(home, ".dex", "history.db"))
    const messages = await store.messages({ source: "claude_code", id: "11111111-0000-4000-8000-000000000000" })
    const raw = await store.rawLines("claude_code", "-code-api/11111111-0000-4000-8000-000000000000.jsonl", "live")
    store.close()
    expect(messages.map(({ usage }) => usage?.web_searches)).toEqual([undefined, 1, 4])
    expect(raw.find((line) => line.includes("msg_1"))).toContain('"service_tier":"priority","speed":"fast"')
  })

  test("counts four turns for a Codex fork with three copied turns and one of its own", async () => {
    const home = tempDir()
    const parent = "019d0000-0000-7000-8000-00000000000a"
    const fork = "019d0000-0000-7000-8000-00000000000b"
    const turn = (n: number) => [
      ["event_msg", { type: "task_started", turn_id: `019d1111-0000-7000-8000-00000000000${n}` }],
      ["response_item", { type: "message", role: "user", content: [{ type: "input_text", text: `question ${n}` }] }],
      [
        "response_item",
        { type: "message", role: "assistant", content: [{ type: "output_text", text: `answer ${n}` }] },
      ],
      [
        "event_msg",
        {
          type: "token_count",
          info: {
            last_token_usage: { input_tokens: 700, output_tokens: 300 },
            total_token_usage: { input_tokens: 700 * n, output_tokens: 300 * n },
          },
        },
      ],
    ]
    const rollout = (id: string, lines: unknown[][]) =>
      writeLines(
        join(home, ".codex", "sessions", "2026", "03", "01", `rollout-2026-03-01T10-00-00-${id}.jsonl`),
        lines.map(([type, payload], i) => ({
          timestamp: `2026-03-01T10:00:${String(i).padStart(2, "0")}.000Z`,
          type,
          payload,
        })),
      )
    const meta = (id: string, more = {}) => [
      "session_meta",
      { id, cwd: "/code/api", source: "cli", originator: "codex-tui", ...more },
    ]
    rollout(parent, [meta(parent), ...turn(1), ...turn(2), ...turn(3)])
    const first = await synced(home)
    expect(totalUsage(first)).toMatchObject({ input: 2100, output: 900 })
    rollout(fork, [
      meta(fork, { forked_from_id: parent }),
      meta(parent),
      ...turn(1),
      ...turn(2),
      ...turn(3),
      ...turn(4),
    ])
    const both = await synced(home)
    expect(both.map(({ input, output }) => input + output).sort()).toEqual([1000, 3000])
  })
})
