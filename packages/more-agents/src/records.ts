import { isAbsolute, join } from "node:path"
import { type Agent, agentVariant } from "../../../src/agents/kit/agent.ts"
import type { Machine } from "../../../src/agents/kit/connector.ts"
import {
  belowHome,
  localAppData,
  type Roots,
  settingsFolder,
  sharedDataFolder,
  userFolders,
} from "../../../src/agents/kit/places.ts"

const UNTESTED_REASON = "dex knows it only from a description, so its commands are uncertain"
const IN_BROWSER_REASON = "it runs in the browser"
const ONE_ANSWER_REASON = "if it is started with a prompt, it answers once and ends"

export const piRoots: Roots = ({ home, env }) => [
  join(env.PI_CODING_AGENT_DIR || join(home, ".pi", "agent"), "sessions"),
]

const pi: Agent = {
  source: "pi",
  name: "Pi",
  roots: piRoots,
  basis: "recorded",
  connector: async () => (await import("./pi.ts")).piConnector,
  resume: (_, path) => ["pi", "--session", path],
  open: ["pi"],
  toolOutputMarks: ["toolResult", "bashExecution"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).opencodeHooks,
  hookOutput: "text",
  wiring: async () => (await import("./pi.ts")).piWiring,
}

/** The folder of Qwen Code's settings. QWEN_RUNTIME_DIR moves only the sessions elsewhere. */
export function qwenCodeFolder({ home, env }: Machine): string {
  return env.QWEN_HOME || join(home, ".qwen")
}

export function qwenCodeRoots(machine: Machine): string[] {
  return [...new Set([machine.env.QWEN_RUNTIME_DIR || qwenCodeFolder(machine), qwenCodeFolder(machine)])]
}

const qwenCode: Agent = {
  source: "qwen_code",
  name: "Qwen Code",
  aliases: ["qwen"],
  roots: qwenCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./qwen-code/connector.ts")).qwenCodeConnector,
  resume: (id) => ["qwen", "--resume", id],
  bring: async () => (await import("./qwen-code/bring.ts")).qwenCodeBring,
  open: ["qwen", "-i"],
  toolOutputMarks: ["functionResponse", "toolCallResult"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).qwenCodeHooks,
  wiring: async () => (await import("./qwen-code/connector.ts")).qwenCodeWiring,
}

/** The folders of Kimi Code, and of Kimi CLI before it. */
export const kimiCodeRoots: Roots = ({ home, env }) => [
  join(env.KIMI_CODE_HOME || join(home, ".kimi-code"), "sessions"),
  join(env.KIMI_SHARE_DIR || join(home, ".kimi"), "sessions"),
]

const kimiCode: Agent = {
  source: "kimi_code",
  name: "Kimi Code",
  aliases: ["kimi"],
  roots: kimiCodeRoots,
  basis: "recorded",
  connector: async () => (await import("./kimi-code.ts")).kimiCodeConnector,
  // Resumes by the name of the session's folder: …/session_<id>/agents/<agent>/wire.jsonl. Kimi CLI has no folder `agents`.
  resume: (id, path) => ["kimi", "-r", /([^\\/]+)[\\/]agents[\\/]/.exec(path)?.[1] ?? id.replace(/^ses_/, "")],
  whyMissing: { open: ONE_ANSWER_REASON },
  toolOutputMarks: ["tool.result", "ToolResult", "tool_call_id"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).kimiCodeHooks,
  hookOutput: "text",
  wiring: async () => (await import("./kimi-code.ts")).kimiCodeWiring,
}

export const grokRoots: Roots = ({ home, env }) => [join(env.GROK_HOME || join(home, ".grok"), "sessions")]

const grok: Agent = {
  source: "grok",
  name: "Grok",
  roots: grokRoots,
  basis: "recorded",
  connector: async () => (await import("./grok.ts")).grokConnector,
  resume: (id) => ["grok", "--resume", id],
  open: ["grok"],
  toolOutputMarks: ["tool_call_update", "tool_result"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).grokHooks,
  wiring: async () => (await import("./grok.ts")).grokWiring,
}

const EDITORS = ["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"]

export function clineDataFolder({ home, env }: Machine): string {
  return env.CLINE_DATA_DIR || join(env.CLINE_DIR || join(home, ".cline"), "data")
}

/**
 * Returns Cline's folders of sessions (version 3 and later) and of tasks (earlier versions). The oldest versions stored the tasks
 * of each editor separately.
 */
export function clineRoots(machine: Machine): string[] {
  const data = clineDataFolder(machine)
  const tasks = userFolders(machine, EDITORS).map((user) =>
    join(user, "globalStorage", "saoudrizwan.claude-dev", "tasks"),
  )
  return [join(data, "sessions"), join(data, "tasks"), ...tasks]
}

const cline: Agent = {
  source: "cline",
  name: "Cline",
  roots: clineRoots,
  basis: "recorded",
  connector: async () => (await import("./cline.ts")).clineConnector,
  resume: (id) => ["cline", "--id", id],
  open: ["cline"],
  toolOutputMarks: ["tool_result"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).clineHooks,
  hookOutput: "contextModification",
  wiring: async () => (await import("./cline.ts")).clineWiring,
}

export const continueRoots: Roots = ({ home, env }) => [
  join(env.CONTINUE_GLOBAL_DIR || join(home, ".continue"), "sessions"),
]

const continueDev: Agent = {
  source: "continue",
  name: "Continue",
  aliases: ["cn"],
  roots: continueRoots,
  basis: "recorded",
  connector: async () => (await import("./continue.ts")).continueConnector,
  // Continue can resume only its last session. It continues any other session as a copy.
  resume: (id) => ["cn", "--fork", id],
  open: ["cn"],
  toolOutputMarks: ["toolCallStates"],
}

/** Returns the folders of OpenClaw and of its three earlier names. */
export function openclawRoots({ home, env }: Machine): string[] {
  const stateFolder = env.OPENCLAW_STATE_DIR?.trim() || env.CLAWDBOT_STATE_DIR?.trim()
  const openclawHome = env.OPENCLAW_HOME?.trim() || home
  const names = [".openclaw", ".clawdbot", ".moldbot", ".moltbot"]
  const folders = stateFolder
    ? [stateFolder.replace(/^~(?=$|[\\/])/, openclawHome)]
    : names.map((name) => join(openclawHome, name))
  return folders.map((folder) => join(folder, "agents"))
}

const openclaw: Agent = {
  source: "openclaw",
  name: "OpenClaw",
  aliases: ["clawdbot", "moltbot"],
  roots: openclawRoots,
  basis: "recorded",
  connector: async () => (await import("./openclaw.ts")).openclawConnector,
  whyMissing: { resume: "it continues sessions by a key (`agent:main:main`), which a newer session may use by now" },
  open: ["openclaw", "tui", "--message"],
  toolOutputMarks: ["toolResult", "bashExecution"],
  wiring: async () => (await import("./openclaw.ts")).openclawWiring,
}

const qclaw = agentVariant("openclaw", {
  source: "qclaw",
  name: "QClaw",
  basis: "description",
  roots: belowHome(".qclaw", "agents"),
  reader: async () => (await import("./openclaw.ts")).openclawConnector,
  toolOutputMarks: openclaw.toolOutputMarks,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
})

export function gooseRoots(machine: Machine): string[] {
  const { env, platform } = machine
  if (env.GOOSE_PATH_ROOT) return [join(env.GOOSE_PATH_ROOT, "data", "sessions")]
  const data =
    platform === "win32"
      ? join(settingsFolder(machine), "Block", "goose", "data")
      : join(sharedDataFolder(machine), "goose")
  return [join(data, "sessions")]
}

const goose: Agent = {
  source: "goose",
  name: "Goose",
  roots: gooseRoots,
  basis: "sample",
  connector: async () => (await import("./goose.ts")).gooseConnector,
  resume: (id) => ["goose", "session", "--resume", "--session-id", id],
  open: ["goose", "run", "--interactive", "--text"],
  wiring: async () => (await import("./goose.ts")).gooseWiring,
}

export const vibeRoots: Roots = ({ home, env }) => [
  join(env.VIBE_HOME?.replace(/^~(?=$|[\\/])/, home) || join(home, ".vibe"), "logs", "session"),
]

const mistralVibe: Agent = {
  source: "mistral_vibe",
  name: "Mistral Vibe",
  aliases: ["vibe"],
  roots: vibeRoots,
  basis: "description",
  connector: async () => (await import("./mistral-vibe.ts")).mistralVibeConnector,
  resume: (id) => ["vibe", "--resume", id],
  open: ["vibe"],
  toolOutputMarks: ["tool_call_id"],
}

/**
 * Returns the folders of the command line's databases (under its present name and its former name, Amazon Q), the folder of the
 * command line's files, and the folder of the editor.
 */
export function kiroRoots(machine: Machine): string[] {
  const { home, platform } = machine
  const data =
    platform === "darwin"
      ? settingsFolder(machine)
      : platform === "win32"
        ? localAppData(machine)
        : sharedDataFolder(machine)
  return [
    join(data, "kiro-cli"),
    join(data, "amazon-q"),
    join(home, ".kiro", "sessions", "cli"),
    join(settingsFolder(machine), "Kiro", "User", "globalStorage", "kiro.kiroagent"),
  ]
}

const kiro: Agent = {
  source: "kiro",
  name: "Kiro",
  aliases: ["amazon_q"],
  roots: kiroRoots,
  basis: "sample",
  connector: async () => (await import("./kiro/connector.ts")).kiroConnector,
  // The editor cannot open a session by its id: the person selects it there.
  resume: (id, path) => (path.endsWith(".json") ? ["kiro"] : ["kiro-cli", "chat", "--resume-id", id]),
  open: ["kiro-cli", "chat"],
  toolOutputMarks: ["ToolUseResults", "CancelledToolUses", "ToolResults"],
}

export function hermesRoots(machine: Machine): string[] {
  const { home, env, platform } = machine
  if (env.HERMES_HOME) return [env.HERMES_HOME]
  const hermesFolder = join(home, ".hermes")
  return platform === "win32" ? [hermesFolder, join(localAppData(machine), "hermes")] : [hermesFolder]
}

const hermes: Agent = {
  source: "hermes",
  name: "Hermes Agent",
  roots: hermesRoots,
  basis: "sample",
  connector: async () => (await import("./hermes.ts")).hermesConnector,
  resume: (id) => ["hermes", "--resume", id],
  open: ["hermes", "chat", "-q"],
  toolOutputMarks: ["tool_call_id"],
}

/** The folders of the command line and of the editor. */
export const antigravityRoots: Roots = ({ home }) =>
  ["antigravity-cli", "antigravity"].map((name) => join(home, ".gemini", name))

const antigravity: Agent = {
  source: "antigravity",
  name: "Antigravity",
  aliases: ["agy"],
  roots: antigravityRoots,
  basis: "sample",
  connector: async () => (await import("./antigravity.ts")).antigravityConnector,
  resume: (id) => ["agy", "--conversation", id],
  open: ["agy", "--prompt-interactive"],
  toolOutputMarks: [
    "RUN_COMMAND",
    "VIEW_FILE",
    "CODE_ACTION",
    "LIST_DIRECTORY",
    "GREP_SEARCH",
    "SEARCH_WEB",
    "GENERIC",
  ],
}

export const openhandsRoots: Roots = ({ home, env }) => [
  env.OPENHANDS_CONVERSATIONS_DIR || join(env.OPENHANDS_PERSISTENCE_DIR || join(home, ".openhands"), "conversations"),
]

const openhands: Agent = {
  source: "openhands",
  name: "OpenHands",
  roots: openhandsRoots,
  basis: "description",
  connector: async () => (await import("./openhands.ts")).openhandsConnector,
  resume: (id) => ["openhands", "--resume", id],
  open: ["openhands", "--task"],
  toolOutputMarks: ["ObservationEvent", "AgentErrorEvent"],
}

export const ampRoots: Roots = (machine) => [join(sharedDataFolder(machine), "amp", "threads")]

const amp: Agent = {
  source: "amp",
  name: "Amp",
  roots: ampRoots,
  basis: "description",
  connector: async () => (await import("./amp.ts")).ampConnector,
  resume: (id) => ["amp", "threads", "continue", id],
  whyMissing: { open: ONE_ANSWER_REASON },
  toolOutputMarks: ["tool_result"],
}

export function zedRoots(machine: Machine): string[] {
  const { env, platform } = machine
  if (platform === "darwin") return [join(settingsFolder(machine), "Zed", "threads")]
  if (platform === "win32") return [join(localAppData(machine), "Zed", "threads")]
  return [join(env.FLATPAK_XDG_DATA_HOME || sharedDataFolder(machine), "zed", "threads")]
}

const zed: Agent = {
  source: "zed",
  name: "Zed",
  roots: zedRoots,
  basis: "sample",
  connector: async () => (await import("./zed.ts")).zedConnector,
  whyMissing: {
    resume: "threads can only be opened in its window",
    open: "its URL would have to contain the encoded prompt",
  },
}

/** Returns an extension's storage in every editor that may have it, and in the remote servers of editors. */
function inEditors(extension: string): Roots {
  return (machine) => {
    const servers = [".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server"]
    const remote = servers.map((name) => join(machine.home, name, "data", "User"))
    return [...userFolders(machine, EDITORS), ...remote].map((user) => join(user, "globalStorage", extension, "tasks"))
  }
}

export const rooCodeRoots: Roots = inEditors("rooveterinaryinc.roo-cline")

const IN_EDITOR_REASONS = {
  resume: "tasks can only be opened in its editor's window",
  open: "it can only be started in its editor",
}

const rooCode: Agent = {
  source: "roo_code",
  name: "Roo Code",
  aliases: ["roo"],
  roots: rooCodeRoots,
  basis: "sample",
  connector: async () => (await import("./roo-code/connector.ts")).rooCodeConnector,
  whyMissing: IN_EDITOR_REASONS,
}

/** Kilo Code before version 7. Since then it shares its database with Kilo's command line. */
const kiloEditor = agentVariant("roo_code", {
  source: "kilo_editor",
  name: "Kilo Code in an editor",
  basis: "description",
  roots: inEditors("kilocode.kilo-code"),
  reader: async () => (await import("./roo-code/connector.ts")).rooCodeConnector,
  whyMissing: IN_EDITOR_REASONS,
})

/** The folder with Crush's list of projects. The sessions of a project are in the project itself. */
export function crushRoots(machine: Machine): string[] {
  const { env, platform } = machine
  if (env.CRUSH_GLOBAL_DATA) return [env.CRUSH_GLOBAL_DATA]
  const onWindows = platform === "win32" && !env.XDG_DATA_HOME
  return [join(onWindows ? localAppData(machine) : sharedDataFolder(machine), "crush")]
}

const crush: Agent = {
  source: "crush",
  name: "Crush",
  roots: crushRoots,
  basis: "sample",
  connector: async () => (await import("./crush.ts")).crushConnector,
  resume: (id) => ["crush", "--session", id],
  whyMissing: { open: ONE_ANSWER_REASON },
}

export const droidRoots: Roots = ({ home }) => [join(home, ".factory", "sessions"), join(home, ".factory", "projects")]

const droid: Agent = {
  source: "droid",
  name: "Factory Droid",
  aliases: ["factory"],
  roots: droidRoots,
  basis: "recorded",
  connector: async () => (await import("./droid.ts")).droidConnector,
  resume: (id) => ["droid", "--resume", id],
  open: ["droid"],
  toolOutputMarks: ["tool_result"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).droidHooks,
  wiring: async () => (await import("./droid.ts")).droidWiring,
}

const claudeCodeFormat = {
  basis: "description",
  reader: async () => (await import("../../../src/agents/claude-code/connector.ts")).claudeCodeConnector,
  toolOutputMarks: ["tool_result", "toolUseResult"],
} as const

const openClaude = agentVariant("claude_code", {
  ...claudeCodeFormat,
  source: "openclaude",
  name: "OpenClaude",
  roots: ({ home, env }) => [env.OPENCLAUDE_CONFIG_DIR || join(home, ".openclaude")],
  resume: (id) => ["openclaude", "--resume", id],
  open: ["openclaude"],
})

const iflow = agentVariant("claude_code", {
  ...claudeCodeFormat,
  source: "iflow",
  name: "iFlow",
  roots: belowHome(".iflow"),
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
  overrides: async (parent) => (await import("./claude-code-variants.ts")).iflowDifferences(parent),
})

/** Qoder's editor stores sessions in the last of these folders, its command line in the others. Both use the same format. */
const qoder = agentVariant("claude_code", {
  ...claudeCodeFormat,
  source: "qoder",
  name: "Qoder",
  roots: (machine) => [
    join(machine.home, ".qoder"),
    join(machine.home, ".qoderwork"),
    join(settingsFolder(machine), "Qoder", "SharedClientCache", "cli"),
  ],
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
  overrides: async (parent) => (await import("./claude-code-variants.ts")).qoderDifferences(parent),
})

const codexFormat = {
  reader: async () => (await import("../../../src/agents/codex/connector.ts")).codexConnector,
  toolOutputMarks: ["function_call_output", "custom_tool_call_output"],
} as const

const traeX = agentVariant("codex", {
  ...codexFormat,
  source: "traex",
  name: "TraeX",
  aliases: ["trae_cli"],
  basis: "sample",
  roots: belowHome(".trae", "cli"),
  resume: (id) => ["traex", "resume", id],
  open: ["traex"],
})

const openInterpreter = agentVariant("codex", {
  ...codexFormat,
  source: "open_interpreter",
  name: "Open Interpreter",
  basis: "description",
  roots: belowHome(".openinterpreter"),
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
})

const opencodeReader = async () => (await import("../../../src/agents/opencode/connector.ts")).opencodeConnector

/** Declares a root next to OpenCode's data folder. */
function nextToOpencode(name: string): Roots {
  return ({ home, env }) => {
    const xdg = env.XDG_DATA_HOME
    return [join(xdg && isAbsolute(xdg) ? xdg : join(home, ".local", "share"), name)]
  }
}

const kilo = agentVariant("opencode", {
  source: "kilo",
  name: "Kilo",
  aliases: ["kilo_code"],
  basis: "sample",
  roots: nextToOpencode("kilo"),
  reader: opencodeReader,
  resume: (id) => ["kilo", "--session", id],
  open: ["kilo", "--prompt"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).opencodeHooks,
  hookOutput: "text",
  wiring: async () => (await import("../../../src/agents/opencode/wiring.ts")).kiloWiring,
})

const mimocode = agentVariant("opencode", {
  source: "mimocode",
  name: "MiMoCode",
  basis: "description",
  roots: nextToOpencode("mimocode"),
  reader: opencodeReader,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
})

const tabnineCli = agentVariant("gemini_cli", {
  source: "tabnine_cli",
  name: "Tabnine CLI",
  aliases: ["tabnine"],
  basis: "description",
  roots: belowHome(".tabnine", "agent"),
  reader: async () => (await import("../../../src/agents/gemini-cli/connector.ts")).geminiCliConnector,
  toolOutputMarks: ["functionResponse"],
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
})

const omp = agentVariant("pi", {
  source: "omp",
  name: "omp",
  basis: "description",
  roots: belowHome(".omp", "agent", "sessions"),
  reader: async () => (await import("./pi.ts")).piConnector,
  overrides: async (parent) => (await import("./pi.ts")).ompDifferences(parent),
  toolOutputMarks: pi.toolOutputMarks,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
})

/**
 * Returns the paths of Aider's possible history files, which Aider stores in each project. dex does not search the disk for them:
 * it checks the home folder, the projects of known conversations, and the file that the user's environment names.
 */
export function aiderRoots({ home, env, projects = [] }: Machine): string[] {
  const namedFile = env.AIDER_CHAT_HISTORY_FILE
  const historyFiles = [home, ...projects].map((folder) => join(folder, ".aider.chat.history.md"))
  return [...new Set([namedFile ?? "", ...historyFiles])].filter((path) => isAbsolute(path))
}

const aider: Agent = {
  source: "aider",
  name: "Aider",
  roots: aiderRoots,
  basis: "sample",
  connector: async () => (await import("./aider.ts")).aiderConnector,
  resume: (_, path) => ["aider", "--chat-history-file", path, "--restore-chat-history"],
  whyMissing: { open: ONE_ANSWER_REASON },
}

export const auggieRoots: Roots = belowHome(".augment", "sessions")

const auggie: Agent = {
  source: "auggie",
  name: "Auggie",
  roots: auggieRoots,
  basis: "sample",
  connector: async () => (await import("./auggie.ts")).auggieConnector,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
}

export const vscodeRoots: Roots = (machine) => userFolders(machine, ["Code", "Code - Insiders", "VSCodium"])

const vscode: Agent = {
  source: "vscode",
  name: "VS Code",
  aliases: ["code", "copilot_chat"],
  roots: vscodeRoots,
  basis: "sample",
  connector: async () => (await import("./vscode/connector.ts")).vscodeConnector,
  whyMissing: { resume: "sessions can only be opened in its window" },
  open: ["code", "chat"],
  wiring: async () => (await import("./vscode/connector.ts")).vscodeWiring,
}

export function copilotFolder({ home, env }: Machine): string {
  return env.COPILOT_HOME || join(home, ".copilot")
}

export const copilotRoots: Roots = (machine) => [join(copilotFolder(machine), "session-state")]

const copilot: Agent = {
  source: "copilot",
  name: "Copilot CLI",
  roots: copilotRoots,
  basis: "recorded",
  connector: async () => (await import("./copilot.ts")).copilotConnector,
  resume: (id) => ["copilot", `--resume=${id}`],
  open: ["copilot", "-i"],
  toolOutputMarks: ["tool.execution_complete"],
  hooks: async () => (await import("../../../src/agents/hooks.ts")).copilotHooks,
  hookOutput: "additionalContext",
  wiring: async () => (await import("./copilot.ts")).copilotWiring,
}

export const deepseekHarnessRoots: Roots = ({ home, env }) => [join(env.DSH_HOME || join(home, ".dsh"), "sessions")]

const deepseekHarness: Agent = {
  source: "deepseek_harness",
  name: "DeepSeek Harness",
  aliases: ["dsh"],
  roots: deepseekHarnessRoots,
  basis: "recorded",
  connector: async () => (await import("./deepseek-harness.ts")).deepseekHarnessConnector,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
  toolOutputMarks: ["tool-result"],
}

/** The data folders of Warp and of its preview. */
export function warpRoots(machine: Machine): string[] {
  const { home, env, platform } = machine
  if (platform === "win32")
    return ["Warp", "WarpPreview"].map((name) => join(localAppData(machine), "warp", name, "data"))
  if (platform === "darwin") {
    const group = join(home, "Library", "Group Containers", "2BBY89MBSN.dev.warp", "Library", "Application Support")
    return ["dev.warp.Warp-Stable", "dev.warp.Warp-Preview"].map((name) => join(group, name))
  }
  const state = env.XDG_STATE_HOME || join(home, ".local", "state")
  return ["warp-terminal", "warp-terminal-preview"].map((name) => join(state, name))
}

const warp: Agent = {
  source: "warp",
  name: "Warp",
  roots: warpRoots,
  basis: "sample",
  connector: async () => (await import("./warp.ts")).warpConnector,
  whyMissing: {
    resume: "conversations can only be opened in its window",
    open: "it can only be started in its window",
  },
}

export const junieRoots: Roots = ({ home, env }) => [join(env.JUNIE_HOME || join(home, ".junie"), "sessions")]

const junie: Agent = {
  source: "junie",
  name: "Junie",
  roots: junieRoots,
  basis: "sample",
  connector: async () => (await import("./junie.ts")).junieConnector,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
}

export const forgeRoots: Roots = ({ home, env }) =>
  env.FORGE_CONFIG ? [env.FORGE_CONFIG] : [join(home, ".forge"), join(home, "forge")]

const forge: Agent = {
  source: "forge",
  name: "ForgeCode",
  roots: forgeRoots,
  basis: "sample",
  connector: async () => (await import("./forge.ts")).forgeConnector,
  resume: (id) => ["forge", "--conversation-id", id],
  open: ["forge", "--prompt"],
}

export const llmRoots: Roots = (machine) => [
  machine.env.LLM_USER_PATH || join(settingsFolder(machine), "io.datasette.llm"),
]

const llm: Agent = {
  source: "llm",
  name: "llm",
  roots: llmRoots,
  basis: "recorded",
  connector: async () => (await import("./llm.ts")).llmConnector,
  resume: (id) => ["llm", "chat", "--conversation", id],
  whyMissing: { open: ONE_ANSWER_REASON },
}

export const gptmeRoots: Roots = (machine) => [
  machine.env.GPTME_LOGS_HOME || join(sharedDataFolder(machine), "gptme", "logs"),
]

const gptme: Agent = {
  source: "gptme",
  name: "gptme",
  roots: gptmeRoots,
  basis: "recorded",
  connector: async () => (await import("./gptme.ts")).gptmeConnector,
  resume: (id) => ["gptme", "--name", id],
  open: ["gptme"],
}

export const codebuffRoots: Roots = belowHome(".config", "manicode", "projects")

const codebuff: Agent = {
  source: "codebuff",
  name: "Codebuff",
  aliases: ["freebuff"],
  roots: codebuffRoots,
  basis: "description",
  connector: async () => (await import("./codebuff.ts")).codebuffConnector,
  whyMissing: { resume: UNTESTED_REASON, open: UNTESTED_REASON },
}

/** Visual Studio keeps its traces in the folder for temporary files. */
export const visualStudioCopilotRoots: Roots = (machine) => [
  join(localAppData(machine), "Temp", "VSGitHubCopilotLogs", "traces"),
]

const visualStudioCopilot: Agent = {
  source: "visual_studio_copilot",
  name: "Copilot in Visual Studio",
  roots: visualStudioCopilotRoots,
  basis: "sample",
  connector: async () => (await import("./visual-studio-copilot.ts")).visualStudioCopilotConnector,
  whyMissing: { resume: "sessions can only be opened in its window", open: "it can only be started in its window" },
}

/** All agents of this package. To add one, add its record above and its name here. */
/** Services in the browser. `dex import` reads what they export. */
const chatgpt: Agent = {
  source: "chatgpt",
  name: "ChatGPT",
  basis: "description",
  isExported: true,
  connector: async () => (await import("./chatgpt.ts")).chatgptConnector,
  whyMissing: { resume: IN_BROWSER_REASON, open: IN_BROWSER_REASON },
}

const claudeAi: Agent = {
  source: "claude_ai",
  name: "Claude in the browser",
  basis: "description",
  isExported: true,
  connector: async () => (await import("./claude-ai.ts")).claudeAiConnector,
  whyMissing: { resume: IN_BROWSER_REASON, open: IN_BROWSER_REASON },
}

const geminiApp: Agent = {
  source: "gemini_app",
  name: "Gemini in the browser",
  basis: "description",
  isExported: true,
  connector: async () => (await import("./gemini-app.ts")).geminiAppConnector,
  whyMissing: { resume: IN_BROWSER_REASON, open: IN_BROWSER_REASON },
}

export const moreAgents: readonly Agent[] = [
  ...[pi, qwenCode, kimiCode, grok, cline, continueDev, openclaw, goose, mistralVibe, kiro, hermes, antigravity],
  ...[openhands, amp, zed, rooCode, crush, droid, openClaude, iflow, qoder, traeX, openInterpreter, kilo, mimocode],
  ...[chatgpt, claudeAi, geminiApp],
  ...[tabnineCli, omp, aider, auggie, vscode, copilot],
  ...[deepseekHarness, warp, kiloEditor, qclaw, junie, forge, llm, gptme, codebuff],
  ...[visualStudioCopilot],
]
