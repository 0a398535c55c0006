import { join } from "node:path"
import type { Call } from "./model.ts"

/** A coding agent as it is installed here: how it is set up, run, and what its tools are called. */
export type Agent = {
  /** As dex names it, as a source and in `dex install`. */
  name: "claude_code" | "codex" | "opencode" | "gemini_cli" | "copilot" | "qwen_code"
  title: string
  /** On npm; package.json pins it. */
  package: string
  command: string[]
  /** Arguments of one run that is not interactive. */
  args(prompt: string): string[]
  /** Beside PATH, HOME and TMPDIR: its home is the default place in HOME. */
  env(modelUrl: string): Record<string, string>
  /** What its user wrote into its settings before dex came; the path is below the home. */
  settings(modelUrl: string): { path: string; content: string }
  shell(command: string): Call
  write(path: string, content: string): Call
  /** Where its model is told of a server's tools only when it looks for them. */
  findTools?(query: string): Call
  /** How a tool of a server is called where the model cannot call it by its own name. */
  callTool?(tool: string, input: Record<string, unknown>): Call
  /** Its built-in way to give work to a sub-agent, where dex has one for it. */
  delegate?(agent: string, prompt: string): Call
}

/** One that has hooks, and can be asked as a model. */
export type HookedAgent = Agent & { name: "claude_code" | "codex" | "opencode" | "gemini_cli" }

const bin = (path: string) => join(import.meta.dirname, "node_modules", path)

const claudeCode: HookedAgent = {
  name: "claude_code",
  title: "Claude Code",
  package: "@anthropic-ai/claude-code",
  command: [bin("@anthropic-ai/claude-code/bin/claude.exe")],
  args: (prompt) => ["-p", prompt, "--allowedTools", "Bash,Write,Agent,mcp__dex", "--output-format", "json"],
  env: (modelUrl) => ({
    ANTHROPIC_BASE_URL: modelUrl,
    ANTHROPIC_API_KEY: "sk-ant-scripted",
    DISABLE_AUTOUPDATER: "1",
    DISABLE_TELEMETRY: "1",
    DISABLE_ERROR_REPORTING: "1",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
  }),
  settings: () => ({ path: ".claude/settings.json", content: '{\n  "cleanupPeriodDays": 90\n}\n' }),
  shell: (command) => ({ tool: "Bash", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "Write", input: { file_path: path, content } }),
  delegate: (agent, prompt) => ({
    tool: "Agent",
    input: { subagent_type: agent, description: "Look into the history", prompt, run_in_background: false },
  }),
}

const codex: HookedAgent = {
  name: "codex",
  title: "Codex",
  package: "@openai/codex",
  command: [process.execPath, bin("@openai/codex/bin/codex.js")],
  args: (prompt) => ["exec", "--json", prompt],
  env: () => ({ SCRIPTED_KEY: "scripted" }),
  // To a model that it knows it offers apply_patch, and the tools of servers only after a search for them.
  settings: (modelUrl) => ({
    path: ".codex/config.toml",
    content: `# mine
model = "gpt-5.5"
model_provider = "scripted"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false

[model_providers.scripted]
name = "Scripted"
base_url = "${modelUrl}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0

[analytics]
enabled = false
`,
  }),
  shell: (command) => ({ tool: "exec_command", input: { cmd: command } }),
  write: (path, content) => ({
    tool: "apply_patch",
    input: `*** Begin Patch\n*** Add File: ${path}\n${content.replace(/^(?=.)/gm, "+")}*** End Patch\n`,
  }),
  findTools: (query) => ({ tool: "tool_search", input: { query, limit: 20 } }),
}

const opencode: HookedAgent = {
  name: "opencode",
  title: "OpenCode",
  package: "opencode-ai",
  command: [bin("opencode-ai/bin/opencode.exe")],
  args: (prompt) => ["run", "--format", "json", prompt],
  env: () => ({
    OPENCODE_DISABLE_AUTOUPDATE: "1",
    OPENCODE_DISABLE_MODELS_FETCH: "1",
    OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
    OPENCODE_DISABLE_DEFAULT_PLUGINS: "1",
  }),
  settings: (modelUrl) => ({
    path: ".config/opencode/opencode.jsonc",
    content: `{
  // mine
  "$schema": "https://opencode.ai/config.json",
  "model": "scripted/scripted",
  "small_model": "scripted/scripted",
  "share": "disabled",
  "enabled_providers": ["scripted"],
  "provider": {
    "scripted": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "Scripted",
      "options": { "baseURL": "${modelUrl}/v1", "apiKey": "scripted" },
      "models": { "scripted": { "name": "Scripted", "tool_call": true, "limit": { "context": 128000, "output": 8192 } } },
    },
  },
}
`,
  }),
  shell: (command) => ({ tool: "bash", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "write", input: { filePath: path, content } }),
  delegate: (agent, prompt) => ({
    tool: "task",
    input: { subagent_type: agent, description: "Look into the history", prompt },
  }),
}

const geminiCli: HookedAgent = {
  name: "gemini_cli",
  title: "Gemini CLI",
  package: "@google/gemini-cli",
  command: [process.execPath, bin("@google/gemini-cli/bundle/gemini.js")],
  args: (prompt) => ["-m", "gemini-2.5-flash", "--yolo", "-o", "json", "-p", prompt],
  env: (modelUrl) => ({
    GEMINI_API_KEY: "scripted",
    GOOGLE_GEMINI_BASE_URL: modelUrl,
    GEMINI_CLI_NO_RELAUNCH: "1",
    GEMINI_CLI_TRUST_WORKSPACE: "true",
  }),
  settings: () => ({
    path: ".gemini/settings.json",
    content: `${JSON.stringify(
      {
        security: { auth: { selectedType: "gemini-api-key" } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { enableAutoUpdate: false },
      },
      null,
      2,
    )}\n`,
  }),
  shell: (command) => ({ tool: "run_shell_command", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "write_file", input: { file_path: path, content } }),
}

const copilot: Agent = {
  name: "copilot",
  title: "Copilot CLI",
  package: "@github/copilot",
  command: [process.execPath, bin("@github/copilot/npm-loader.js")],
  args: (prompt) => ["-p", prompt, "--allow-all-tools"],
  env: (modelUrl) => ({
    COPILOT_PROVIDER_BASE_URL: `${modelUrl}/v1`,
    COPILOT_PROVIDER_TYPE: "openai",
    COPILOT_PROVIDER_API_KEY: "scripted",
    COPILOT_MODEL: "scripted",
    COPILOT_OFFLINE: "true",
  }),
  settings: () => ({ path: ".copilot/config.json", content: '{\n  "banner": "never"\n}\n' }),
  shell: (command) => ({ tool: "bash", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "create", input: { path, file_text: content } }),
}

const qwenCode: Agent = {
  name: "qwen_code",
  title: "Qwen Code",
  package: "@qwen-code/qwen-code",
  command: [process.execPath, bin("@qwen-code/qwen-code/cli.js")],
  args: (prompt) => ["--yolo", "-p", prompt],
  env: (modelUrl) => ({ OPENAI_API_KEY: "scripted", OPENAI_BASE_URL: `${modelUrl}/v1`, OPENAI_MODEL: "scripted" }),
  settings: () => ({
    path: ".qwen/settings.json",
    content: `${JSON.stringify(
      {
        security: { auth: { selectedType: "openai" } },
        privacy: { usageStatisticsEnabled: false },
        telemetry: { enabled: false },
        general: { enableAutoUpdate: false },
        // As in its own terminal. With -p it would take a command for done at its exit, before it has read what the command said: a busy machine
        // loses that (2 of 72).
        tools: { shell: { enableInteractiveShell: true } },
      },
      null,
      2,
    )}\n`,
  }),
  shell: (command) => ({ tool: "run_shell_command", input: { command, description: "Run it", is_background: false } }),
  write: (path, content) => ({ tool: "write_file", input: { file_path: path, content } }),
  findTools: (query) => ({ tool: "tool_search", input: { query, max_results: 20 } }),
  callTool: (tool, input) => ({ tool: "tool_call", input: { name: `mcp__dex__${tool}`, arguments: input } }),
}

export const HOOKED_AGENTS: readonly HookedAgent[] = [claudeCode, codex, opencode, geminiCli]
/** All of them find what the others did. */
export const AGENTS: readonly Agent[] = [...HOOKED_AGENTS, copilot, qwenCode]
