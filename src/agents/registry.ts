import { basename, dirname, isAbsolute, join, resolve } from "node:path"
import { moreAgents } from "../../packages/more-agents/src/records.ts"
import type { SourceId } from "../core/conversation.ts"
import { isRecord, parseObject, string } from "../core/record.ts"
import type { Agent } from "./kit/agent.ts"
import type { Machine } from "./kit/connector.ts"
import { belowHome, localAppData, type Roots, settingsFolder } from "./kit/places.ts"

/** The folder of Claude Desktop's Cowork sessions. Each has its own configuration folder, several levels below this one. */
export const COWORK_FOLDER = "local-agent-mode-sessions"

export function claudeCodeRoots(machine: Machine): string[] {
  const { home, env, platform } = machine
  const configured = (env.CLAUDE_CONFIG_DIR ?? "").split(",").map((dir) => dir.trim())
  const folders = configured.filter((dir) => dir !== "")
  const config = folders.length > 0 ? folders : belowHome(".claude")(machine)
  const desktop = join(settingsFolder(machine), "Claude", COWORK_FOLDER)
  const storeFolder = ["Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming", "Claude", COWORK_FOLDER]
  const desktopFolders = platform === "win32" ? [desktop, join(localAppData(machine), ...storeFolder)] : [desktop]
  return [...new Set([...config, join(home, ".config", "claude"), ...desktopFolders])]
}

const claudeCode: Agent = {
  source: "claude_code",
  name: "Claude Code",
  aliases: ["claude"],
  roots: claudeCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./claude-code/connector.ts")).claudeCodeConnector,
  resume: (id) => ["claude", "--resume", id],
  bring: async () => (await import("./claude-code/bring.ts")).claudeCodeBring,
  open: ["claude"],
  session: { variable: "CLAUDE_CODE_SESSION_ID" },
  toolOutputMarks: ["tool_result", "toolUseResult"],
  hooks: async () => (await import("./hooks.ts")).claudeCodeHooks,
  headless: async () => (await import("./claude-code/headless.ts")).claudeCodeHeadless,
  wiring: async () => (await import("./claude-code/wiring.ts")).claudeCodeWiring,
}

export const codexRoots: Roots = ({ home, env }) => [env.CODEX_HOME || join(home, ".codex")]

const codex: Agent = {
  source: "codex",
  name: "Codex",
  roots: codexRoots,
  basis: "recorded",
  connector: async () => (await import("./codex/connector.ts")).codexConnector,
  // Without -C, Codex asks in which of the two folders to continue, and suggests the old one even if it is gone.
  resume: (id, _path, isElsewhere) => ["codex", "resume", ...(isElsewhere ? ["-C", "."] : []), id],
  open: ["codex"],
  session: { variable: "CODEX_THREAD_ID", idFromCall: threadOfCall },
  toolOutputMarks: ["function_call_output", "custom_tool_call_output"],
  hooks: async () => (await import("./hooks.ts")).codexHooks,
  headless: async () => (await import("./codex/headless.ts")).codexHeadless,
  limits: async () => (await import("./codex/limits.ts")).readCodexLimits,
  wiring: async () => (await import("./codex/wiring.ts")).codexWiring,
}

/** Reads the thread's id, which Codex sends with each MCP call because the server cannot find it in its environment. */
function threadOfCall(meta: Record<string, unknown>): string | undefined {
  const metadata = meta["x-codex-turn-metadata"]
  const turn = typeof metadata === "string" ? parseObject(metadata) : isRecord(metadata) ? metadata : undefined
  return string(turn?.thread_id) ?? string(turn?.session_id)
}

/** Matches the file names of OpenCode's databases, and those of agents that use the same schema in their own folder. */
export const OPENCODE_DATABASE = /^(?:opencode|kilo|mimocode).*\.db$/

export function opencodeRoots({ home, env }: Machine): string[] {
  const xdg = env.XDG_DATA_HOME
  const data = join(xdg && isAbsolute(xdg) ? xdg : join(home, ".local", "share"), "opencode")
  const configured = env.OPENCODE_DB
  if (!configured || configured === ":memory:") return [data]
  const database = isAbsolute(configured) ? configured : join(data, configured)
  const isInDataFolder = dirname(database) === data && OPENCODE_DATABASE.test(basename(database))
  return isInDataFolder ? [data] : [data, database]
}

const opencode: Agent = {
  source: "opencode",
  name: "OpenCode",
  roots: opencodeRoots,
  basis: "recorded",
  connector: async () => (await import("./opencode/connector.ts")).opencodeConnector,
  resume: (id) => ["opencode", "--session", id],
  bring: async () => (await import("./opencode/bring.ts")).opencodeBring,
  open: ["opencode", "--prompt"],
  hooks: async () => (await import("./hooks.ts")).opencodeHooks,
  hookOutput: "text",
  headless: async () => (await import("./opencode/headless.ts")).opencodeHeadless,
  wiring: async () => (await import("./opencode/wiring.ts")).opencodeWiring,
}

export function cursorRoots({ home, env, platform }: Machine): string[] {
  const xdg = env.XDG_CONFIG_HOME && isAbsolute(env.XDG_CONFIG_HOME) ? env.XDG_CONFIG_HOME : undefined
  const settings = settingsFolder({ home, env: { ...env, XDG_CONFIG_HOME: xdg }, platform })
  const folders = [join(settings, "Cursor", "User"), join(home, ".cursor")]
  return platform === "darwin" || platform === "win32" ? folders : [...folders, join(settings, "cursor")]
}

const cursor: Agent = {
  source: "cursor",
  name: "Cursor",
  roots: cursorRoots,
  basis: "recorded",
  connector: async () => (await import("./cursor/connector.ts")).cursorConnector,
  resume: (id) => ["cursor-agent", `--resume=${id}`],
  // This command line has not been tested.
  open: ["cursor-agent"],
  hooks: async () => (await import("./hooks.ts")).cursorHooks,
  hookOutput: "additional_context",
  wiring: async () => (await import("./cursor/connector.ts")).cursorWiring,
}

export const geminiCliRoots: Roots = ({ home, env }) => [join(env.GEMINI_CLI_HOME || home, ".gemini")]

const geminiCli: Agent = {
  source: "gemini_cli",
  name: "Gemini CLI",
  aliases: ["gemini"],
  roots: geminiCliRoots,
  basis: "recorded",
  connector: async () => (await import("./gemini-cli/connector.ts")).geminiCliConnector,
  resume: (id) => ["gemini", "--resume", id],
  bring: async () => (await import("./gemini-cli/bring.ts")).geminiCliBring,
  open: ["gemini", "--prompt-interactive"],
  toolOutputMarks: ["functionResponse"],
  hooks: async () => (await import("./hooks.ts")).geminiCliHooks,
  headless: async () => (await import("./gemini-cli/headless.ts")).geminiCliHeadless,
  wiring: async () => (await import("./gemini-cli/wiring.ts")).geminiCliWiring,
}

function dexFolder({ home, env }: Machine): string {
  return env.DEX_HOME ? resolve(env.DEX_HOME) : join(home, ".dex")
}

export const dexChatRoots: Roots = (machine) => [join(dexFolder(machine), "chat-sessions")]

/** Conversations with dex itself. */
const dexChat: Agent = {
  source: "dex_chat",
  name: "dex chat",
  roots: dexChatRoots,
  basis: "recorded",
  connector: async () => (await import("./dex-chat/connector.ts")).dexChatConnector,
}

export function notesFolder(dexHome: string): string {
  return join(dexHome, "notes")
}

export const dexNoteRoots: Roots = (machine) => [notesFolder(dexFolder(machine))]

/** Notes that people and agents stored in dex. */
const dexNote: Agent = {
  source: "dex_note",
  name: "dex note",
  roots: dexNoteRoots,
  basis: "recorded",
  connector: async () => (await import("./dex-note/connector.ts")).dexNoteConnector,
}

export const agents: readonly Agent[] = [
  ...[claudeCode, codex, opencode, cursor, geminiCli],
  ...moreAgents,
  ...[dexChat, dexNote],
]

/** Whether a source is one of dex's own, which are not installed agents. */
export function isDexSource(source: SourceId): boolean {
  return source === dexChat.source || source === dexNote.source
}

/** Returns only those counts whose source is an agent. */
export function onlyAgents(sources: Readonly<Record<SourceId, number>>): Record<SourceId, number> {
  return Object.fromEntries(Object.entries(sources).filter(([source]) => !isDexSource(source)))
}

/** The possible sources of a conversation: the agents that dex reads, and documents. */
export const sourceIds: readonly SourceId[] = [
  ...agents.filter(({ connector }) => connector !== undefined).map(({ source }) => source),
  "docs",
]

export function agentOf(source: SourceId): Agent | undefined {
  return agents.find((agent) => agent.source === source)
}
