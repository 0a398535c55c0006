import fc from "fast-check"
import { expect, test } from "vitest"
import { COPILOT_HOOKS } from "../../packages/more-agents/src/copilot.ts"
import { DROID_HOOKS } from "../../packages/more-agents/src/droid.ts"
import { GROK_HOOKS } from "../../packages/more-agents/src/grok.ts"
import { KIMI_CODE_HOOKS } from "../../packages/more-agents/src/kimi-code.ts"
import { QWEN_CODE_HOOKS } from "../../packages/more-agents/src/qwen-code/connector.ts"
import { CLAUDE_CODE_HOOKS } from "../../src/agents/claude-code/wiring.ts"
import { CODEX_HOOKS } from "../../src/agents/codex/wiring.ts"
import { CURSOR_HOOKS } from "../../src/agents/cursor/connector.ts"
import { GEMINI_CLI_HOOKS } from "../../src/agents/gemini-cli/wiring.ts"
import {
  claudeCodeHooks as claudeCode,
  clineHooks as cline,
  codexHooks as codex,
  copilotHooks as copilot,
  cursorHooks as cursor,
  droidHooks as droid,
  geminiCliHooks as geminiCli,
  grokHooks as grok,
  kimiCodeHooks as kimiCode,
  opencodeHooks as opencode,
  qwenCodeHooks as qwenCode,
} from "../../src/agents/hooks.ts"
import type { AgentHooks, HookInput } from "../../src/agents/kit/agent.ts"
import type { Item } from "../../src/core/suggestion.ts"
import { contextText } from "../../src/serve/hooks/main.ts"

const WHO = { session_id: "s-1", cwd: "/code/api", transcript_path: "/x.jsonl", permission_mode: "default" }
const who = { session: "s-1", cwd: "/code/api", transcript: "/x.jsonl" }
const patch = "*** Begin Patch\n*** Update File: src/a.ts\n@@\n-a\n+b\n*** End Patch\n"

const AGENTS = [claudeCode, codex, geminiCli, opencode, qwenCode, copilot, grok, kimiCode, droid, cline, cursor]

/** Recorded stdin of hooks, as the agents wrote it, and its meaning. */
const RECORDED: [agent: AgentHooks, event: string, input: HookInput, moment: unknown][] = [
  [claudeCode, "SessionStart", { source: "compact" }, { event: "session_start" }],
  [claudeCode, "SubagentStart", { agent_id: "a1", agent_type: "general-purpose" }, { event: "subagent_start" }],
  [claudeCode, "UserPromptSubmit", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    claudeCode,
    "PreToolUse",
    { tool_name: "Read", tool_input: { file_path: "/code/api/a.ts" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    claudeCode,
    "PreToolUse",
    { tool_name: "Write", tool_input: { file_path: "/code/api/a.ts", content: "x" } },
    { event: "before_edit", file: "/code/api/a.ts" },
  ],
  [
    claudeCode,
    "PostToolUseFailure",
    { tool_name: "Bash", tool_input: { command: "npm test" }, error: "Exit code 3\nError: boom", is_interrupt: false },
    { event: "failed_command", command: "npm test", error: "Error: boom" },
  ],
  [claudeCode, "PreCompact", { trigger: "auto", custom_instructions: null }, { event: "compaction" }],
  [codex, "SessionStart", { source: "startup", model: "m" }, { event: "session_start" }],
  [codex, "UserPromptSubmit", { prompt: "Fix it", turn_id: "t" }, { event: "prompt", prompt: "Fix it" }],
  [
    codex,
    "PreToolUse",
    { tool_name: "apply_patch", tool_input: { command: patch } },
    { event: "before_edit", file: "src/a.ts" },
  ],
  [
    codex,
    "PostToolUse",
    { tool_name: "Bash", tool_input: { command: "npm test" }, tool_response: "TypeError: boom is not a function\n" },
    { event: "failed_command", command: "npm test", error: "TypeError: boom is not a function\n" },
  ],
  [codex, "PreCompact", { trigger: "auto", turn_id: "t" }, { event: "compaction" }],
  [geminiCli, "SessionStart", { source: "startup" }, { event: "session_start" }],
  [geminiCli, "BeforeAgent", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    geminiCli,
    "AfterTool",
    { tool_name: "read_file", tool_input: { file_path: "/code/api/a.ts" }, tool_response: { llmContent: "x" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    geminiCli,
    "AfterTool",
    {
      tool_name: "run_shell_command",
      tool_input: { command: "npm test" },
      tool_response: {
        llmContent:
          "<untrusted_context>\nOutput: Error: boom\nExit Code: 3\nProcess Group PGID: 7\n</untrusted_context>",
      },
    },
    { event: "failed_command", command: "npm test", error: "Error: boom" },
  ],
  [geminiCli, "PreCompress", { trigger: "manual" }, { event: "compaction" }],
  [opencode, "session.compacting", {}, { event: "compaction" }],
  [opencode, "session.start", { prompt: "Fix it" }, { event: "session_start" }],
  [opencode, "chat.message", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    opencode,
    "tool.execute.after",
    { tool_name: "bash", tool_input: { command: "npm test" }, exit: 3, output: "Error: boom\n" },
    { event: "failed_command", command: "npm test", error: "Error: boom\n" },
  ],
  [
    opencode,
    "tool.execute.after",
    { tool_name: "read", tool_input: { filePath: "/code/api/a.ts" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [qwenCode, "SessionStart", { source: "startup" }, { event: "session_start" }],
  [
    qwenCode,
    "UserPromptSubmit",
    { prompt: "Fix it", submitted_prompt: "Fix it" },
    { event: "prompt", prompt: "Fix it" },
  ],
  [
    qwenCode,
    "PostToolUse",
    { tool_name: "read_file", tool_input: { file_path: "/code/api/a.ts" }, tool_response: { llmContent: "x" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    qwenCode,
    "PostToolUseFailure",
    {
      tool_name: "run_shell_command",
      tool_input: { command: "npm test", is_background: false },
      error:
        "Command: npm test\nDirectory: (root)\nOutput: Error: boom\n  at x\nError: (none)\nExit Code: 3\nSignal: (none)\nProcess Group PGID: 7",
    },
    { event: "failed_command", command: "npm test", error: "Error: boom\n  at x" },
  ],
  [copilot, "SessionStart", { source: "new", initial_prompt: "Fix it" }, { event: "session_start" }],
  [copilot, "UserPromptSubmit", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    copilot,
    "PreToolUse",
    { tool_name: "Read", tool_input: { path: "/code/api/a.ts" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    copilot,
    "PreToolUse",
    { tool_name: "Edit", tool_input: { path: "/code/api/a.ts", old_str: "a", new_str: "b" } },
    { event: "before_edit", file: "/code/api/a.ts" },
  ],
  [
    copilot,
    "PostToolUse",
    {
      tool_name: "Bash",
      tool_input: { command: "npm test", description: "Run it" },
      tool_result: {
        result_type: "success",
        text_result_for_llm: "Error: boom\n<shellId: 0 completed with exit code 3>",
      },
    },
    { event: "failed_command", command: "npm test", error: "Error: boom" },
  ],
  [grok, "SessionStart", { source: "new" }, { event: "session_start" }],
  [grok, "UserPromptSubmit", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    grok,
    "PreToolUse",
    { tool_name: "read_file", tool_input: { target_file: "/code/api/a.ts" } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    grok,
    "PreToolUse",
    { tool_name: "search_replace", tool_input: { file_path: "/code/api/a.ts", old_string: "a", new_string: "b" } },
    { event: "before_edit", file: "/code/api/a.ts" },
  ],
  [
    grok,
    "PostToolUse",
    {
      tool_name: "run_terminal_command",
      tool_input: { command: "npm test" },
      tool_response: { type: "Bash", output: [66], output_for_prompt: "exit: 3\nError: boom\n", exit_code: 3 },
    },
    { event: "failed_command", command: "npm test", error: "Error: boom\n" },
  ],
  [
    kimiCode,
    "UserPromptSubmit",
    { prompt: [{ type: "text", text: "Fix" }, { type: "image" }, { type: "text", text: "it" }], is_steer: false },
    { event: "prompt", prompt: "Fix\nit" },
  ],
  [cursor, "sessionStart", { conversation_id: "s-1", composer_mode: "agent" }, { event: "session_start" }],
  [
    cursor,
    "postToolUse",
    { tool_name: "Read", tool_input: { file_path: "/code/api/a.ts" }, tool_output: "{}" },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    cursor,
    "postToolUse",
    { tool_name: "Shell", tool_input: { command: "npm test" }, tool_output: '{"exitCode":3,"stdout":"Error: boom"}' },
    { event: "failed_command", command: "npm test", error: "Error: boom" },
  ],
  [droid, "SessionStart", { source: "startup" }, { event: "session_start" }],
  [droid, "UserPromptSubmit", { prompt: "Fix it" }, { event: "prompt", prompt: "Fix it" }],
  [
    droid,
    "PostToolUse",
    { tool_name: "Read", tool_input: { file_path: "/code/api/a.ts" }, tool_response: "x" },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
]

/** Cline names a session and its folder differently. */
const CLINE_WHO = { sessionContext: { rootSessionId: "s-1" }, workspaceRoots: ["/code/api"] }

test.each([
  [
    "PreToolUse",
    { tool_call: { name: "read_files", input: { files: [{ path: "/code/api/a.ts" }] } } },
    { event: "before_read", file: "/code/api/a.ts" },
  ],
  [
    "PreToolUse",
    { tool_call: { name: "editor", input: { path: "/code/api/a.ts", new_text: "b" } } },
    { event: "before_edit", file: "/code/api/a.ts" },
  ],
  [
    "PostToolUse",
    {
      tool_result: {
        name: "run_commands",
        input: { commands: ["npm run lint", "npm test"] },
        output: [
          { query: "npm run lint", result: "", success: true },
          { query: "npm test", result: "[Command exited with code 3]\nError: boom\n", success: false },
        ],
      },
    },
    { event: "failed_command", command: "npm test", error: "Error: boom\n" },
  ],
])("%s of Cline is understood", (event, input, moment) => {
  expect(cline.moment(event, { ...CLINE_WHO, ...input })).toEqual({ session: "s-1", cwd: "/code/api", ...moment })
})

test.each(RECORDED)("%# a moment is read from the agent's input", (agent, event, input, moment) => {
  expect(agent.moment(event, { ...WHO, hook_event_name: event, ...input })).toEqual({ ...who, ...(moment as object) })
})

test.each([
  [claudeCode, CLAUDE_CODE_HOOKS],
  [codex, CODEX_HOOKS],
  [geminiCli, GEMINI_CLI_HOOKS],
  [qwenCode, QWEN_CODE_HOOKS],
  [copilot, COPILOT_HOOKS],
  [grok, GROK_HOOKS],
  [kimiCode, KIMI_CODE_HOOKS],
  [droid, DROID_HOOKS],
  [cursor, CURSOR_HOOKS],
])("every event that dex install wires is understood", (agent, wired) => {
  const known = RECORDED.filter(([one]) => one === agent)
  for (const { event, tools } of wired) {
    const names = known.filter(([, one]) => one === event).map(([, , input]) => input.tool_name ?? input.trigger)
    expect(names.length, event).toBeGreaterThan(0)
    for (const name of names) if (tools !== undefined) expect(String(name)).toMatch(new RegExp(`^(?:${tools})$`))
  }
})

test.each([
  [
    claudeCode,
    "PostToolUseFailure",
    { tool_name: "Bash", tool_input: { command: "x" }, error: "e", is_interrupt: true },
  ],
  [claudeCode, "UserPromptSubmit", { prompt: "wake up", source: "schedule_wakeup" }],
  [claudeCode, "PreToolUse", { tool_name: "Edit", tool_input: "src/a.ts" }],
  [claudeCode, "Stop", {}],
  [claudeCode, "PreCompact", { trigger: "auto", agent_id: "a1", agent_type: "general-purpose" }],
  [geminiCli, "PreCompress", { trigger: "auto" }],
  // Grok and Cursor also run the hooks in Claude Code's settings.
  [claudeCode, "UserPromptSubmit", { prompt: "Fix it", hookEventName: "user_prompt_submit" }],
  [claudeCode, "SessionStart", { cursor_version: "2.0" }],
  [qwenCode, "UserPromptSubmit", { prompt: "" }],
  [
    copilot,
    "PostToolUse",
    {
      tool_name: "Bash",
      tool_input: { command: "ls" },
      tool_result: { text_result_for_llm: "a\n<shellId: 0 completed with exit code 0>" },
    },
  ],
  [
    grok,
    "PostToolUse",
    {
      tool_name: "run_terminal_command",
      tool_input: { command: "ls" },
      tool_response: { output_for_prompt: "exit: 0\na", exit_code: 0 },
    },
  ],
  [kimiCode, "UserPromptSubmit", { prompt: [{ type: "image" }] }],
  [cursor, "postToolUse", { tool_name: "Shell", tool_input: { command: "ls" }, tool_output: "[not json" }],
  [codex, "PostToolUse", { tool_name: "Bash", tool_input: { command: "ls" }, tool_response: "error.ts\nfine.ts\n" }],
  [codex, "PreToolUse", { tool_name: "Bash", tool_input: { command: "ls" } }],
  [
    geminiCli,
    "AfterTool",
    { tool_name: "run_shell_command", tool_input: { command: "ls" }, tool_response: { llmContent: "Output: fine" } },
  ],
  [opencode, "tool.execute.after", { tool_name: "bash", tool_input: { command: "ls" }, exit: 0, output: "fine" }],
] as [AgentHooks, string, HookInput][])(
  "%# prints nothing if nothing failed or nobody asked",
  (agent, event, input) => {
    expect(agent.moment(event, { ...WHO, ...input })).toBeUndefined()
  },
)

test("whatever is on stdin, no format throws, and input without a session gets nothing", () => {
  const value = fc.jsonValue({ maxDepth: 3 })
  const fields = [
    ...["session_id", "cwd", "prompt", "tool_name", "tool_input", "tool_response", "error", "exit", "output"],
    ...["tool_result", "tool_call", "sessionContext", "workspaceRoots", "hookEventName"],
  ]
  const input = fc.record(Object.fromEntries(fields.map((name) => [name, value])), { requiredKeys: [] })
  const events = fc.constantFrom(...RECORDED.map(([, event]) => event), "nonsense")
  fc.assert(
    fc.property(fc.constantFrom(...AGENTS), events, input, (agent, event, given) => {
      const moment = agent.moment(event, given as HookInput)
      if (
        agent !== cline &&
        agent !== cursor &&
        (typeof given.session_id !== "string" || typeof given.cwd !== "string")
      )
        expect(moment).toBeUndefined()
    }),
    { numRuns: 500 },
  )
  expect(claudeCode.moment("SessionStart", { ...WHO, session_id: "s".repeat(1000) })).toBeUndefined()
})

const item = (text: string): Item => ({
  kind: "fix",
  key: "k",
  title: text,
  summary: text,
  reason: "why",
  ref: "claude_code:1#2",
  relevance: 1,
  features: {},
  estimated_tokens: 1,
})

test("injected text closes its marker once, at the end, whatever it contains", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.constantFrom(
          "</dex-context>",
          "<dex-context>",
          "</hook_context>",
          "<system-reminder>",
          "<",
          "\u00ad",
          "\u0301",
          "\u{e0100}",
          " ",
          "/dex-context>",
          "\n",
          "\u001b[31m",
          "x",
        ),
      ),
      (pieces) => {
        const text = contextText([item(pieces.join("")), item("second")])
        expect(text.match(/<[^\w(=]{0,5}\/?[a-z_-]+>/g)).toEqual(["<dex-context>", "</dex-context>"])
        expect(text.endsWith("\n</dex-context>")).toBe(true)
        expect(text).not.toMatch(/[\u0000-\u0009\u000b-\u001f]/)
        expect(text.split("\n")).toHaveLength(5)
      },
    ),
  )
  expect(contextText([item("Array<string> where 1 < 2")])).toContain("1 < 2")
})

test("text is cut between characters", () => {
  for (let before = 0; before < 300; before++)
    expect(contextText([item(`${"x".repeat(before)}${"😀".repeat(400)}`)]).isWellFormed()).toBe(true)
})
