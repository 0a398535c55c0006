import { describe, expect, test } from "vitest"
import { copilotConnector } from "../../packages/more-agents/src/copilot.ts"
import { piConnector } from "../../packages/more-agents/src/pi.ts"
import { qwenCodeConnector } from "../../packages/more-agents/src/qwen-code/connector.ts"
import { claudeCodeConnector } from "../../src/agents/claude-code/connector.ts"
import { codexConnector } from "../../src/agents/codex/connector.ts"
import { geminiCliConnector } from "../../src/agents/gemini-cli/connector.ts"
import type { Connector } from "../../src/agents/kit/connector.ts"
import { splitAddedText } from "../../src/agents/kit/messages.ts"
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
const escaped = context.replaceAll("<", "&lt;").replaceAll(">", "&gt;")
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
  [
    "Qwen Code, in the prompt and below a result, escaped",
    qwenCodeConnector,
    [
      {
        uuid: "u1",
        sessionId: "s",
        timestamp: at,
        type: "user",
        provenance: "real_user",
        cwd: "/code/api",
        message: {
          role: "user",
          parts: [
            { text: "Fix it" },
            { text: `<qwen:user-prompt-submit-context>\n${escaped}\n</qwen:user-prompt-submit-context>` },
          ],
        },
      },
      {
        uuid: "u2",
        parentUuid: "u1",
        sessionId: "s",
        timestamp: at,
        type: "assistant",
        message: {
          role: "model",
          parts: [{ functionCall: { id: "c", name: "run_shell_command", args: { command: "npm test" } } }],
        },
      },
      {
        uuid: "u3",
        parentUuid: "u2",
        sessionId: "s",
        timestamp: at,
        type: "tool_result",
        provenance: "tool_result",
        message: {
          role: "user",
          parts: [
            {
              functionResponse: {
                id: "c",
                name: "run_shell_command",
                response: {
                  error: `Command: npm test\nDirectory: (root)\nOutput: Error: boom\nError: (none)\nExit Code: 3\n\n${escaped}`,
                },
              },
            },
          ],
        },
        toolCallResult: { callId: "c", status: "error", resultDisplay: { exitCode: 3 } },
      },
    ],
  ],
  [
    "Copilot CLI, below a result",
    copilotConnector,
    [
      { type: "session.start", id: "e0", timestamp: at, data: { sessionId: "s", context: { cwd: "/code/api" } } },
      { type: "user.message", id: "e1", timestamp: at, data: { content: "Fix it", transformedContent: context } },
      {
        type: "tool.execution_start",
        id: "e2",
        timestamp: at,
        data: { toolCallId: "c", toolName: "bash", arguments: { command: "npm test" } },
      },
      {
        type: "tool.execution_complete",
        id: "e3",
        timestamp: at,
        data: {
          toolCallId: "c",
          success: true,
          shellExecution: { exitCode: 3 },
          result: {
            content: `Error: boom\n<shellId: 0 completed with exit code 3>\n\nTool "bash" succeeded. Additional guidance from postToolUse hooks:\n${context}`,
          },
        },
      },
    ],
  ],
  [
    "Pi, a message of its own and below a result",
    piConnector,
    [
      { type: "session", version: 3, id: "s", timestamp: at, cwd: "/code/api" },
      {
        type: "message",
        id: "a",
        parentId: null,
        timestamp: at,
        message: { role: "user", content: [{ type: "text", text: "Fix it" }] },
      },
      {
        type: "custom_message",
        customType: "dex",
        content: context,
        display: false,
        id: "b",
        parentId: "a",
        timestamp: at,
      },
      {
        type: "message",
        id: "c",
        parentId: "b",
        timestamp: at,
        message: {
          role: "assistant",
          content: [{ type: "toolCall", id: "t", name: "bash", arguments: { command: "npm test" } }],
        },
      },
      {
        type: "message",
        id: "d",
        parentId: "c",
        timestamp: at,
        message: {
          role: "toolResult",
          toolCallId: "t",
          toolName: "bash",
          content: [
            { type: "text", text: "Error: boom\n\n\nCommand exited with code 3" },
            { type: "text", text: context },
          ],
          isError: true,
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

describe("text that hooks add to a tool's output", () => {
  const ours = (text: string) => `<dex-context>\n${text}\n</dex-context>`
  const escapedOurs = (text: string) => ours(text).replaceAll("<", "&lt;").replaceAll(">", "&gt;")

  test.each([
    ["no addition", "hello\n", "hello\n", []],
    ["one", `hello\n\n${ours("a")}`, "hello", [ours("a")]],
    ["one that was escaped", `hello\n\n\n${escapedOurs("a")}\n`, "hello\n", [escapedOurs("a")]],
    ["two", `hello\n\n${ours("a")}\n${ours("b")}`, "hello", [`${ours("a")}\n${ours("b")}`]],
    ["a quoted one in the middle", `see:\n${ours("a")}\nthat is all`, `see:\n${ours("a")}\nthat is all`, []],
    ["an end without a beginning", "x </dex-context>", "x </dex-context>", []],
    ["nothing else", ours("a"), ours("a"), []],
  ])("%s", (_, output, text, added) => {
    expect(splitAddedText(output)).toEqual({
      text,
      added: added.map((one) => ({ type: "text", text: one, origin: "injected" })),
    })
  })

  test("is found however often the marks are repeated", () => {
    expect(splitAddedText(`x${`\n${ours("a")}`.repeat(30_000)}`).text).toBe("x")
  })
})
