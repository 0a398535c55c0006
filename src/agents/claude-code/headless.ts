import { number, parseObject, record, string } from "../../core/record.ts"
import type { HeadlessAgent, HeadlessReply } from "../kit/headless.ts"

/** Tested with version 2.1.325. */
export const claudeCodeHeadless: HeadlessAgent = {
  program: "claude",
  install: "npm install -g @anthropic-ai/claude-code@latest",
  login: "claude, then /login",
  sendsTo: "Anthropic, or another provider if your Claude Code is set up to use one",
  call: ({ systemFile, model }) => ({
    args: [
      "--print",
      ...["--output-format", "json"],
      // Disables all tools. If the model calls a tool anyway, Claude Code answers the call with an error.
      ...["--tools", ""],
      ...["--permission-mode", "dontAsk"],
      ...["--max-turns", "2"],
      // Disables hooks, memory files, skills, plugins and servers. The login and the chosen model still apply.
      "--safe-mode",
      "--strict-mcp-config",
      "--disable-slash-commands",
      "--no-session-persistence",
      ...["--system-prompt-file", systemFile],
      ...(model === undefined ? [] : ["--model", model]),
    ],
    env: {
      // Without this variable, Claude Code reads every file that a prompt names as @path.
      CLAUDE_CODE_DISABLE_ATTACHMENTS: "1",
      CLAUDE_CODE_MAX_RETRIES: "2",
      DISABLE_AUTOUPDATER: "1",
      // Claude Code sets these variables for programs that it starts. If it started dex, the new process must not inherit them.
      CLAUDECODE: undefined,
      CLAUDE_CODE_ENTRYPOINT: undefined,
      CLAUDE_CODE_SESSION_ID: undefined,
    },
  }),
  read: ({ stdout }) => read(stdout),
}

function read(stdout: string): HeadlessReply | undefined {
  const result = parseObject(stdout.slice(Math.max(0, stdout.indexOf('{"'))))
  if (result?.type !== "result") return undefined
  const text = string(result.result) ?? ""
  if (result.is_error === true) {
    const errors = Array.isArray(result.errors) ? result.errors.join(" ") : ""
    const status = number(result.api_error_status)
    return { type: "failed", message: text || errors, status }
  }
  const usage = record(result.usage) ?? {}
  const count = (name: string) => number(usage[name]) ?? 0
  const input = count("input_tokens") + count("cache_creation_input_tokens") + count("cache_read_input_tokens")
  const cost_usd = number(result.total_cost_usd)
  return {
    type: "reply",
    text,
    input: result.usage === undefined ? undefined : input,
    output: result.usage === undefined ? undefined : count("output_tokens"),
    cost_usd,
  }
}
