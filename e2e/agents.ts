import { existsSync } from "node:fs"
import { join } from "node:path"
import type { Call } from "./model.ts"

type FirstAgent = "claude_code" | "codex" | "opencode" | "gemini_cli"

/** A coding agent: how to configure and run it, and the names of its tools. */
export type Agent = {
  /** dex's name for it, as a source and in `dex install`. */
  name:
    | FirstAgent
    | "copilot"
    | "qwen_code"
    | "kimi_code"
    | "grok"
    | "pi"
    | "kilo"
    | "cline"
    | "droid"
    | "continue"
    | "openclaw"
  title: string
  /** The npm package. Its version is pinned in package.json. */
  package: string
  command: string[]
  /** The arguments for one run without a terminal. */
  args(prompt: string): string[]
  /** Variables in addition to PATH, HOME and TMPDIR. The agent's own folder is the default one in HOME. */
  env(modelUrl: string): Record<string, string>
  /** The user's settings before dex is installed. The path is relative to the home. */
  settings(modelUrl: string): { path: string; content: string }
  shell(command: string): Call
  write(path: string, content: string): Call
  /** The call with which the model searches for a server's tools, if the agent does not offer them from the start. */
  findTools?(query: string): Call
  /** The call of a server's tool, if the model cannot call it by its own name. */
  callTool?(tool: string, input: Record<string, unknown>): Call
  /** The call that gives work to a sub-agent, if dex installs one for this agent. */
  delegate?(agent: string, prompt: string): Call
}

/** An agent that has hooks, and that dex can use as a model. */
export type HookedAgent = Agent & { name: FirstAgent }
/** An agent that does tasks and finds what the others did. */
export type WorkingAgent = Agent & { name: FirstAgent | "copilot" | "qwen_code" }

const PINNED = join(import.meta.dirname, "node_modules")
const bin = (path: string) => join(PINNED, path)

/** An agent as it is installed in another folder of modules. */
export function agentIn(modules: string, agent: Agent): Agent {
  return { ...agent, command: agent.command.map((word) => word.replace(PINNED, modules)) }
}

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
  // Codex offers apply_patch to models that it knows, and tools of servers only after a search for them.
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

const copilot: WorkingAgent = {
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

const qwenCode: WorkingAgent = {
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
        // As in its terminal interface. With -p it considers a command finished when it exits, before it has read all the output:
        // on a busy machine 2 of 72 runs lost output.
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

/** Kimi Code and Pi need at least Node 22.19, so another Node than that of the tests may run them. */
const newerNode = process.env.E2E_NODE ?? process.execPath

const kimiCode: Agent = {
  name: "kimi_code",
  title: "Kimi Code",
  package: "@moonshot-ai/kimi-code",
  command: [newerNode, bin("@moonshot-ai/kimi-code/dist/main.mjs")],
  args: (prompt) => ["-p", prompt],
  env: (modelUrl) => ({
    KIMI_CODE_NO_AUTO_UPDATE: "1",
    KIMI_MODEL_NAME: "scripted",
    KIMI_MODEL_PROVIDER_TYPE: "openai",
    KIMI_MODEL_BASE_URL: `${modelUrl}/v1`,
    KIMI_MODEL_API_KEY: "scripted",
    KIMI_MODEL_MAX_CONTEXT_SIZE: "100000",
  }),
  settings: () => ({
    path: ".kimi-code/config.toml",
    content: '# mine\ntelemetry = false\n\n[[hooks]] # also mine\nevent   = "Stop"\ncommand = "true"\n',
  }),
  shell: (command) => ({ tool: "Bash", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "Write", input: { path, content } }),
}

const grok: Agent = {
  name: "grok",
  title: "Grok",
  package: "@xai-official/grok",
  command: [process.execPath, bin("@xai-official/grok/bin/grok-bootstrap.js")],
  args: (prompt) => ["--always-approve", "-m", "scripted", "-p", prompt],
  env: (modelUrl) => ({
    XAI_API_KEY: "scripted",
    GROK_MODELS_BASE_URL: `${modelUrl}/v1`,
    GROK_TELEMETRY_ENABLED: "0",
    GROK_DISABLE_AUTOUPDATER: "1",
  }),
  settings: () => ({ path: ".grok/config.toml", content: '# mine\n[cli]\ninstaller = "npm"\n' }),
  shell: (command) => ({ tool: "run_terminal_command", input: { command, description: "Run it" } }),
  write: (path, content) => ({ tool: "write", input: { file_path: path, content } }),
}

const pi: Agent = {
  name: "pi",
  title: "Pi",
  package: "@earendil-works/pi-coding-agent",
  command: [newerNode, bin("@earendil-works/pi-coding-agent/dist/bundle/cli.js")],
  args: (prompt) => ["--provider", "scripted", "--model", "scripted", "-p", prompt],
  env: () => ({ PI_OFFLINE: "1" }),
  settings: (modelUrl) => ({
    path: ".pi/agent/models.json",
    content: JSON.stringify({
      providers: {
        scripted: {
          baseUrl: `${modelUrl}/v1`,
          api: "openai-completions",
          apiKey: "scripted",
          models: [{ id: "scripted", name: "Scripted", contextWindow: 100000, maxTokens: 4000 }],
        },
      },
    }),
  }),
  shell: (command) => ({ tool: "bash", input: { command } }),
  write: (path, content) => ({ tool: "write", input: { path, content } }),
}

const kilo: Agent = {
  ...opencode,
  name: "kilo",
  title: "Kilo",
  package: "@kilocode/cli",
  command: [bin("@kilocode/cli-linux-x64/bin/kilo")],
  args: (prompt) => ["run", "--auto", "--format", "json", prompt],
  env: () => ({ KILO_DISABLE_AUTOUPDATE: "1", KILO_DISABLE_MODELS_FETCH: "1", KILO_DISABLE_LSP_DOWNLOAD: "1" }),
  settings: (modelUrl) => ({ ...opencode.settings(modelUrl), path: ".config/kilo/kilo.jsonc" }),
}

const cline: Agent = {
  name: "cline",
  title: "Cline",
  package: "cline",
  command: [bin("@cline/cli-linux-x64/bin/cline")],
  args: (prompt) => ["--json", prompt],
  env: () => ({}),
  settings: (modelUrl) => ({
    path: ".cline/data/settings/providers.json",
    content: JSON.stringify({
      version: 1,
      lastUsedProvider: "openai-compatible",
      modes: {},
      providers: {
        "openai-compatible": {
          settings: {
            provider: "openai-compatible",
            apiKey: "scripted",
            model: "scripted",
            baseUrl: `${modelUrl}/v1`,
          },
          updatedAt: "2026-11-01T00:00:00.000Z",
          tokenSource: "manual",
        },
      },
    }),
  }),
  shell: (command) => ({ tool: "run_commands", input: { commands: [command] } }),
  write: (path, content) => ({ tool: "editor", input: { path, new_text: content } }),
}

const droid: Agent = {
  name: "droid",
  title: "Factory Droid",
  package: "@factory/cli-linux-x64",
  command: [bin("@factory/cli-linux-x64/bin/droid")],
  args: (prompt) => ["exec", "--skip-permissions-unsafe", "-m", "custom:scripted", prompt],
  env: () => ({ FACTORY_API_KEY: "fk-scripted" }),
  settings: (modelUrl) => ({
    path: ".factory/settings.json",
    content: JSON.stringify({
      customModels: [
        {
          model: "scripted",
          id: "custom:scripted",
          displayName: "Scripted",
          baseUrl: `${modelUrl}/v1`,
          apiKey: "scripted",
          provider: "generic-chat-completion-api",
          maxOutputTokens: 4000,
        },
      ],
    }),
  }),
  shell: (command) => ({
    tool: "Execute",
    input: { command, summary: "Run it", riskLevelReason: "It prints.", riskLevel: "low" },
  }),
  write: (path, content) => ({ tool: "Create", input: { file_path: path, content } }),
}

/** dex has no hooks for Continue, so only the canary runs it. */
const continueDev: Agent = {
  name: "continue",
  title: "Continue",
  package: "@continuedev/cli",
  command: [process.execPath, bin("@continuedev/cli/dist/cn.js")],
  args: (prompt) => ["--auto", "-p", prompt],
  env: () => ({ CONTINUE_TELEMETRY_ENABLED: "0" }),
  settings: (modelUrl) => ({
    path: ".continue/config.yaml",
    content: `name: Scripted
version: 1.0.0
schema: v1
models:
  - name: Scripted
    provider: openai
    model: scripted
    apiBase: ${modelUrl}/v1
    apiKey: scripted
    roles: [chat]
    capabilities: [tool_use]
`,
  }),
  shell: (command) => ({ tool: "Bash", input: { command } }),
  write: (filepath, content) => ({ tool: "Write", input: { filepath, content } }),
}

/** OpenClaw is a gateway; `--local` runs one turn without it. It needs Node 24, and is 640 MB: only the canary runs it. */
const openclaw: Agent = {
  name: "openclaw",
  title: "OpenClaw",
  package: "openclaw",
  command: [newerNode, bin("openclaw/openclaw.mjs")],
  args: (prompt) => ["agent", "--local", "--agent", "main", "--message", prompt],
  env: () => ({}),
  settings: (modelUrl) => ({
    path: ".openclaw/openclaw.json",
    content: JSON.stringify({
      models: {
        providers: {
          scripted: {
            baseUrl: `${modelUrl}/v1`,
            apiKey: "scripted",
            api: "openai-completions",
            models: [{ id: "scripted", name: "Scripted", contextWindow: 100000, maxTokens: 4000 }],
          },
        },
      },
      agents: { defaults: { model: { primary: "scripted/scripted" } } },
    }),
  }),
  shell: (command) => ({ tool: "exec", input: { command } }),
  write: (path, content) => ({ tool: "write", input: { path, content } }),
}

export const HOOKED_AGENTS: readonly HookedAgent[] = [claudeCode, codex, opencode, geminiCli]
/** In the tests each of these finds what the others did. */
export const AGENTS: readonly WorkingAgent[] = [...HOOKED_AGENTS, copilot, qwenCode]

const OTHERS: readonly Agent[] = [kimiCode, grok, pi, kilo, cline, droid]

/** The other agents whose hooks are tested. Those over 200 MB are not in package.json: they are tested if somebody installed them. */
export const MORE_HOOKED_AGENTS: readonly Agent[] = [copilot, qwenCode, ...OTHERS].filter((agent) =>
  existsSync(bin(agent.package)),
)

/** All agents that can be run against the scripted model. */
export const ALL_AGENTS: readonly Agent[] = [...AGENTS, ...OTHERS, continueDev, openclaw]
