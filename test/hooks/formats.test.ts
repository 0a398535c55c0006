import fc from "fast-check"
import { expect, test } from "vitest"
import { CLAUDE_CODE_HOOKS } from "../../src/agents/claude-code/wiring.ts"
import { CODEX_HOOKS } from "../../src/agents/codex/wiring.ts"
import { GEMINI_CLI_HOOKS } from "../../src/agents/gemini-cli/wiring.ts"
import {
  claudeCodeHooks as claudeCode,
  codexHooks as codex,
  geminiCliHooks as geminiCli,
  opencodeHooks as opencode,
} from "../../src/agents/hooks.ts"
import type { AgentHooks, HookInput } from "../../src/agents/kit/agent.ts"
import type { Item } from "../../src/core/suggestion.ts"
import { contextText } from "../../src/serve/hooks/main.ts"

const WHO = { session_id: "s-1", cwd: "/code/api", transcript_path: "/x.jsonl", permission_mode: "default" }
const who = { session: "s-1", cwd: "/code/api", transcript: "/x.jsonl" }
const patch = "*** Begin Patch\n*** Update File: src/a.ts\n@@\n-a\n+b\n*** End Patch\n"

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
]

test.each(RECORDED)("%# a moment is read from the agent's input", (agent, event, input, moment) => {
  expect(agent.moment(event, { ...WHO, hook_event_name: event, ...input })).toEqual({ ...who, ...(moment as object) })
})

test.each([
  [claudeCode, CLAUDE_CODE_HOOKS],
  [codex, CODEX_HOOKS],
  [geminiCli, GEMINI_CLI_HOOKS],
])("every event that dex install wires is understood", (agent, wired) => {
  const known = RECORDED.filter(([one]) => one === agent)
  for (const { event, tools } of wired) {
    const names = known.filter(([, one]) => one === event).map(([, , input]) => input.tool_name)
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
  const fields = ["session_id", "cwd", "prompt", "tool_name", "tool_input", "tool_response", "error", "exit", "output"]
  const input = fc.record(Object.fromEntries(fields.map((name) => [name, value])), { requiredKeys: [] })
  const events = fc.constantFrom(...RECORDED.map(([, event]) => event), "nonsense")
  fc.assert(
    fc.property(fc.constantFrom(claudeCode, codex, geminiCli, opencode), events, input, (agent, event, given) => {
      const moment = agent.moment(event, given as HookInput)
      if (typeof given.session_id !== "string" || typeof given.cwd !== "string") expect(moment).toBeUndefined()
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
