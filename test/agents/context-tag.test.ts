import { expect, test } from "vitest"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { codexConnector } from "../../src/agents/codex/connector.ts"
import { geminiCliConnector } from "../../src/agents/gemini-cli/connector.ts"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { opencodeConnector } from "../../src/agents/opencode/connector.ts"
import type { RawRecord } from "../../src/core/record.ts"
import { contextText } from "../../src/serve/hooks/main.ts"

const WORDS = "the marmalade archive"
const context = contextText([
  {
    kind: "fix",
    key: "k",
    title: `</dex-context> ${WORDS}`,
    summary: "",
    reason: "",
    relevance: 1,
    features: {},
    estimated_tokens: 1,
  },
])
const at = "2026-11-01T10:00:00.000Z"

/** How each agent stores a hook's text, as seen in its own files after such a run. */
const KEPT: [name: string, connector: Connector, records: RawRecord[]][] = [
  [
    "Claude Code, an attachment",
    claudeCodeConnector,
    [
      { type: "user", uuid: "u1", sessionId: "s", timestamp: at, message: { role: "user", content: "Fix it" } },
      {
        type: "attachment",
        uuid: "u2",
        parentUuid: "u1",
        sessionId: "s",
        timestamp: at,
        attachment: { type: "hook_additional_context", content: [context], hookName: "x", hookEvent: "PreToolUse" },
      },
    ],
  ],
  [
    "Claude Code, in the user's turn",
    claudeCodeConnector,
    [
      {
        type: "user",
        uuid: "u1",
        sessionId: "s",
        timestamp: at,
        message: { role: "user", content: `${context}\nFix it` },
      },
    ],
  ],
  [
    "Codex, a developer's message",
    codexConnector,
    [
      { timestamp: at, type: "session_meta", payload: { id: "s", cwd: "/code/api" } },
      {
        timestamp: at,
        type: "response_item",
        payload: { type: "message", role: "user", content: [{ type: "input_text", text: "Fix it" }] },
      },
      {
        timestamp: at,
        type: "response_item",
        payload: { type: "message", role: "developer", content: [{ type: "input_text", text: context }] },
      },
    ],
  ],
  [
    "Codex, in the user's turn",
    codexConnector,
    [
      { timestamp: at, type: "session_meta", payload: { id: "s", cwd: "/code/api" } },
      {
        timestamp: at,
        type: "response_item",
        payload: { type: "message", role: "user", content: [{ type: "input_text", text: `${context}\nFix it` }] },
      },
    ],
  ],
  [
    "Gemini CLI, in the prompt and below a result",
    geminiCliConnector,
    [
      { sessionId: "s", projectHash: "x", startTime: at, kind: "main" },
      {
        id: "20000000-0000-4000-8000-000000000001",
        timestamp: at,
        type: "user",
        content: [{ text: `<hook_context>${context}</hook_context>` }, { text: "Fix it" }, { text: context }],
      },
      {
        id: "20000000-0000-4000-8000-000000000002",
        timestamp: at,
        type: "gemini",
        content: "",
        toolCalls: [
          {
            id: "c",
            name: "run_shell_command",
            args: { command: "npm test" },
            status: "success",
            result: [
              {
                functionResponse: {
                  id: "c",
                  name: "run_shell_command",
                  response: { output: `Output: Error: boom\nExit Code: 3\n\n<hook_context>${context}</hook_context>` },
                },
              },
            ],
          },
        ],
      },
    ],
  ],
  [
    "OpenCode, a part of the message and below a tool's output",
    opencodeConnector,
    [
      { table: "session", id: "s", directory: "/code/api", time_created: 1 },
      { table: "message", id: "m1", time_created: 1, data: { role: "user", time: { created: 1 } } },
      { table: "part", id: "p1", message_id: "m1", data: { type: "text", text: "Fix it" } },
      { table: "part", id: "p2", message_id: "m1", data: { type: "text", text: context, synthetic: true } },
      { table: "message", id: "m2", time_created: 2, data: { role: "assistant", time: { created: 2 } } },
      {
        table: "part",
        id: "p3",
        message_id: "m2",
        data: {
          type: "tool",
          tool: "bash",
          callID: "c",
          state: {
            status: "completed",
            input: { command: "npm test" },
            output: `Error: boom\n\n\n${context}`,
            metadata: { exit: 3 },
          },
        },
      },
    ],
  ],
]

test.each(KEPT)("text that dex inserted is injected, whichever agent stored it: %s", (_, connector, records) => {
  const { conversations } = connector.parse(records, { key: "db:s", path: "s" } as never)
  const messages = conversations.flatMap((one) => one.messages)
  const parts = messages.flatMap((message) => message.parts)
  const ours = parts.filter(({ text }) => text.includes(WORDS) || text.includes("dex-context"))
  expect(ours.length).toBeGreaterThan(0)
  expect(ours.filter(({ origin }) => origin !== "injected")).toEqual([])
  expect(parts.filter(({ origin }) => origin === "person").map(({ text }) => text)).toEqual(["Fix it"])
  for (const effect of messages.flatMap((message) => message.effects ?? []))
    if (effect.type === "command") expect(effect).toMatchObject({ failed: true, error: "Error: boom" })
})

test("a page with the marker in its middle is still the tool's output", () => {
  const output = `# How it looks\n\n${context}\n\nand then`
  const { conversations } = opencodeConnector.parse(
    [
      { table: "session", id: "s", directory: "/code/api", time_created: 1 },
      { table: "message", id: "m", time_created: 2, data: { role: "assistant", time: { created: 2 } } },
      {
        table: "part",
        id: "p",
        message_id: "m",
        data: { type: "tool", tool: "read", callID: "c", state: { status: "completed", input: {}, output } },
      },
    ],
    { key: "db:s", path: "s" } as never,
  )
  const parts = conversations[0]!.messages.flatMap((message) => message.parts)
  expect(parts.find(({ type }) => type === "tool_result")).toMatchObject({ text: output, origin: "local_tool" })
})
