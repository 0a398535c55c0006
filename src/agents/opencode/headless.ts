import { existsSync } from "node:fs"
import { join } from "node:path"
import { parse } from "jsonc-parser"
import { readText } from "../../core/read-file.ts"
import { number, parseObject, record, string } from "../../core/record.ts"
import type { HeadlessAgent, HeadlessReply } from "../kit/headless.ts"
import { opencodeSettings } from "./wiring.ts"

const AGENT = "dex-model"
const DENY_ALL = { "*": "deny" }
const MAX_SETTINGS_BYTES = 4 << 20

/** Tested with version 1.18.33. */
export const opencodeHeadless: HeadlessAgent = {
  program: "opencode",
  install: "npm install -g opencode-ai@latest",
  login: "opencode auth login",
  sendsTo: "the provider that your OpenCode is set up with",
  call: ({ system, model, scratch, machine }) => {
    const settings = machine.env.OPENCODE_CONFIG || opencodeSettings(machine)
    return {
      args: [
        "run",
        ...["--format", "json"],
        ...["--agent", AGENT],
        // Without a title, OpenCode asks the model for one.
        ...["--title", "dex"],
        ...(model === undefined ? [] : ["--model", model]),
      ],
      env: {
        // With an in-memory database, OpenCode saves nothing to disk.
        OPENCODE_DB: ":memory:",
        // An empty folder has no memory files, agents, commands or plugins; the user's settings file is passed by name.
        XDG_CONFIG_HOME: join(scratch, "config"),
        XDG_STATE_HOME: join(scratch, "state"),
        TMPDIR: scratch,
        OPENCODE_CONFIG: existsSync(settings) ? settings : undefined,
        OPENCODE_CONFIG_CONTENT: escapeSubstitutions(JSON.stringify(overrides(system, serversIn(settings)))),
        OPENCODE_PERMISSION: JSON.stringify(DENY_ALL),
        OPENCODE_CONFIG_DIR: undefined,
        OPENCODE_PURE: "1",
        OPENCODE_DISABLE_PROJECT_CONFIG: "1",
        OPENCODE_DISABLE_CLAUDE_CODE: "1",
        OPENCODE_DISABLE_EXTERNAL_SKILLS: "1",
        OPENCODE_DISABLE_AUTOUPDATE: "1",
        OPENCODE_DISABLE_LSP_DOWNLOAD: "1",
      },
    }
  },
  read: ({ stdout }) => read(stdout),
}

/** Settings that override the user's. A denied tool is not offered to the model at all. */
function overrides(system: string, servers: string[]) {
  return {
    default_agent: AGENT,
    agent: { [AGENT]: { mode: "primary", prompt: system, permission: DENY_ALL } },
    permission: DENY_ALL,
    mcp: Object.fromEntries(servers.map((name) => [name, { enabled: false }])),
    share: "disabled",
    snapshot: false,
    autoupdate: false,
  }
}

/** Escapes {file:…} and {env:…}, which OpenCode would expand. In JSON, such a brace only occurs in a string. */
function escapeSubstitutions(json: string): string {
  return json.replace(/\{(?=env:|file:)/g, "\\u007b")
}

/**
 * Returns the names of the user's MCP servers, which are turned off one by one. If the settings file is unreadable, the
 * permissions still deny the servers' tools.
 */
function serversIn(settings: string): string[] {
  try {
    return Object.keys(record(record(parse(readText(settings, MAX_SETTINGS_BYTES)))?.mcp) ?? {})
  } catch {
    return []
  }
}

/** Parses the output, one event per line. Only the text of the last step is the answer. */
function read(stdout: string): HeadlessReply | undefined {
  let text = ""
  let isDone = false
  const usage = { input: 0, output: 0, cost_usd: 0 }
  for (const line of stdout.split("\n")) {
    const event = parseObject(line)
    const part = record(event?.part) ?? {}
    if (event?.type === "error") return failed(record(event.error) ?? {})
    if (event?.type === "step_start") text = ""
    if (event?.type === "text") text += string(part.text) ?? ""
    if (event?.type !== "step_finish") continue
    isDone = true
    const tokens = record(part.tokens) ?? {}
    const cache = record(tokens.cache) ?? {}
    usage.input += sum(tokens.input, cache.read, cache.write)
    usage.output += sum(tokens.output, tokens.reasoning)
    usage.cost_usd += sum(part.cost)
  }
  if (!isDone) return undefined
  const { cost_usd, ...tokenCounts } = usage
  return { type: "reply", text, ...tokenCounts, cost_usd: cost_usd > 0 ? cost_usd : undefined }
}

function failed(error: Record<string, unknown>): HeadlessReply {
  const data = record(error.data) ?? {}
  const status = number(data.statusCode)
  const message = string(data.message) ?? string(error.name) ?? ""
  return { type: "failed", message, status }
}

function sum(...counts: unknown[]): number {
  return counts.reduce<number>((total, count) => total + (number(count) ?? 0), 0)
}
