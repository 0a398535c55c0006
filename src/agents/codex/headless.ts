import { number, parseObject, record, string } from "../../core/record.ts"
import type { HeadlessAgent, HeadlessReply } from "../kit/headless.ts"

/** Features to turn off, because they offer the model a tool, start a program, or produce additional output. */
const DISABLED_FEATURES = [
  "apps",
  "browser_use",
  "code_mode",
  "code_mode_host",
  "computer_use",
  "goals",
  "hooks",
  "image_generation",
  "in_app_browser",
  "memories",
  "multi_agent",
  "multi_agent_v2",
  "plugins",
  "shell_snapshot",
  "shell_tool",
  "skill_search",
  "sleep_tool",
  "tool_suggest",
  "unified_exec",
  "view_image",
]

const SETTINGS = [
  ...DISABLED_FEATURES.map((feature) => `features.${feature}=false`),
  "agents.enabled=false",
  'web_search="disabled"',
  "notify=[]",
  "project_doc_max_bytes=0",
  "skills.include_instructions=false",
  "skills.bundled.enabled=false",
  "include_environment_context=false",
  "include_permissions_instructions=false",
  "include_apps_instructions=false",
  "include_collaboration_mode_instructions=false",
]

/** Tested with version 0.166.0. */
export const codexHeadless: HeadlessAgent = {
  program: "codex",
  install: "npm install -g @openai/codex@latest",
  login: "codex login",
  sendsTo: "OpenAI, together with your global AGENTS.md, which Codex always adds",
  call: ({ systemFile, model, scratch }) => ({
    args: [
      "exec",
      "--json",
      "--ephemeral",
      // The user's configuration may have servers, hooks and notifiers. The login is stored elsewhere.
      "--ignore-user-config",
      "--ignore-rules",
      "--skip-git-repo-check",
      ...["--sandbox", "read-only"],
      ...["--color", "never"],
      ...[...SETTINGS, `model_instructions_file=${JSON.stringify(systemFile)}`].flatMap((setting) => ["-c", setting]),
      ...(model === undefined ? [] : ["--model", model]),
      "-",
    ],
    env: {
      // Without an execution server, there is no machine on which a tool could run.
      CODEX_EXEC_SERVER_URL: "none",
      CODEX_SQLITE_HOME: scratch,
      CODEX_THREAD_ID: undefined,
    },
  }),
  read: ({ stdout }) => read(stdout),
}

/** Parses the output, one event per line. Only the last message is the answer. */
function read(stdout: string): HeadlessReply | undefined {
  let text: string | undefined
  let usage: Record<string, unknown> | undefined
  let problem: string | undefined
  for (const line of stdout.split("\n")) {
    const event = parseObject(line)
    const item = record(event?.item)
    if (event?.type === "item.completed" && item?.type === "agent_message") text = string(item.text)
    if (event?.type === "turn.completed") usage = record(event.usage) ?? {}
    if (event?.type === "turn.failed") problem = string(record(event.error)?.message) ?? "the turn failed"
  }
  if (problem !== undefined) {
    const status = Number(/status:? (\d{3})/.exec(problem)?.[1])
    return { type: "failed", message: problem, status: status || undefined }
  }
  if (text === undefined || !usage) return undefined
  const [input, output] = [number(usage.input_tokens), number(usage.output_tokens)]
  return { type: "reply", text, input, output }
}
