import { readdirSync } from "node:fs"
import { join } from "node:path"
import { lookAt } from "../core/look-at.ts"
import type { Machine } from "./kit/connector.ts"
import { agents } from "./registry.ts"

/** Conversations on this machine that dex does not read. `files` is counted up to `MAX_COUNTED_FILES`. */
type UnreadFound = { name: string; path: string; files: number; why?: string }

export const MAX_COUNTED_FILES = 10_000
const MAX_DEPTH = 8

/** Finds the known stores on this machine that dex does not read. Checking an absent one costs a single system call. */
export function findUnreadStores({ home, env, otherHomes = [] }: Machine): UnreadFound[] {
  const read = new Set(agents.flatMap(({ source, connector }) => (connector ? source : [])))
  return UNREAD_STORES.filter(({ source }) => !read.has(source)).flatMap((store) =>
    placesOf(store, [home, ...otherHomes], env).flatMap((path) => {
      const files = filesAt(path, store.files)
      return files === 0 ? [] : [{ name: store.name, path, files, why: store.why }]
    }),
  )
}

function placesOf({ at, variable }: UnreadStore, homes: readonly string[], env: Machine["env"]): string[] {
  const named = variable && env[variable.name]
  const places = homes.flatMap((home) => at.map((place) => join(home, place)))
  return [...new Set(named ? [join(named, variable.below ?? ""), ...places] : places)]
}

/** Skips links and anything without access permission. */
function filesAt(path: string, counted: RegExp | undefined): number {
  const found = lookAt(path, { follow: false })
  if (found === undefined || found === "unknown") return 0
  return found.isFile() ? 1 : found.isDirectory() ? filesIn(path, counted) : 0
}

function filesIn(folder: string, counted = /(?:)/): number {
  let files = 0
  const open = [{ folder, depth: 0 }]
  for (let next = open.pop(); next && files < MAX_COUNTED_FILES; next = open.pop()) {
    for (const entry of entriesIn(next.folder)) {
      if (entry.isFile()) files += counted.test(entry.name) ? 1 : 0
      else if (entry.isDirectory() && next.depth < MAX_DEPTH)
        open.push({ folder: join(next.folder, entry.name), depth: next.depth + 1 })
    }
  }
  return Math.min(files, MAX_COUNTED_FILES)
}

function entriesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // unreadable, so the number of files is unknown
  }
}

/**
 * Where a program stores conversations that dex does not read yet, or cannot. `at` are paths below the home folder, for every
 * system; `variable` names a folder to use in place of the home folder, with the conversations at `below`.
 */
type UnreadStore = {
  /** The source that the agent would have. Once dex can read a store, it is no longer searched for. */
  source: string
  name: string
  at: readonly string[]
  variable?: { name: string; below?: string }
  /** The names of files with conversations. Without it, all files count. */
  files?: RegExp
  /** Why only the program itself can read the store. */
  why?: string
}

const ENCRYPTED = "encrypted, with a key that only the program has"

/** An editor's settings folder, on each system. */
function userFolders(...names: string[]): string[] {
  const settings = [".config", "Library/Application Support", "AppData/Roaming"]
  return names.flatMap((name) => settings.map((folder) => `${folder}/${name}/User`))
}

function dataFolders(name: string, below = ""): string[] {
  return [".local/share", "Library/Application Support", "AppData/Roaming", "AppData/Local"].map(
    (folder) => `${folder}/${name}${below}`,
  )
}

/** The known stores, ordered by name. The locations are those that other programs for reading conversations use. */
export const UNREAD_STORES: readonly UnreadStore[] = [
  { source: "amp_editor", name: "Amp in an editor", at: inEditors("sourcegraph.amp/threads3") },
  { source: "astrbot", name: "AstrBot", at: [".astrbot/data/data_v4.db", ".astrbot_launcher/instances"] },
  {
    source: "chatgpt",
    name: "ChatGPT for the desktop",
    at: ["Library/Application Support/com.openai.chat"],
    why: `${ENCRYPTED}; chatgpt.com exports them`,
  },
  {
    source: "claude_desktop",
    name: "Claude for the desktop",
    at: [
      "Library/Application Support/Claude/IndexedDB",
      "AppData/Roaming/Claude/IndexedDB",
      ".config/Claude/IndexedDB",
    ],
    why: "on Anthropic's server; claude.ai exports them",
  },
  { source: "codebuddy", name: "CodeBuddy Code", at: [".codebuddy/projects"] },
  { source: "codebuff", name: "Codebuff", at: [".config/manicode/projects"] },
  { source: "command_code", name: "Command Code", at: [".commandcode/projects"] },
  { source: "cortex_code", name: "Cortex Code", at: [".snowflake/cortex/conversations"] },
  { source: "deep_agents", name: "Deep Agents", at: [".deepagents/.state/sessions.db", ".deepagents/sessions.db"] },
  {
    source: "deepseek_harness",
    name: "DeepSeek Harness",
    at: [".dsh/sessions"],
    variable: { name: "DSH_HOME", below: "sessions" },
  },
  { source: "deepseek_tui", name: "DeepSeek TUI", at: [".deepseek/sessions", ".codewhale/sessions"] },
  { source: "devin", name: "Devin CLI", files: /\.db$/, at: dataFolders("devin") },
  {
    source: "forge",
    name: "Forge",
    files: /\.db$/,
    at: [".forge", "forge/.forge.db"],
    variable: { name: "FORGE_CONFIG" },
  },
  { source: "gptme", name: "gptme", at: [".local/share/gptme/logs"] },
  { source: "icodemate", name: "IcodeMate", at: [".local/share/icodemate"] },
  { source: "junie", name: "Junie", at: [".junie/sessions"], variable: { name: "JUNIE_HOME", below: "sessions" } },
  { source: "kilo_editor", name: "Kilo Code in an editor", at: inEditors("kilocode.kilo-code/tasks") },
  {
    source: "kimi_work",
    name: "Kimi Work",
    at: [...dataFolders("kimi-desktop"), ".config/kimi-desktop"].map(
      (folder) => `${folder}/daimon-share/daimon/runtime/kimi-code/home/sessions`,
    ),
  },
  {
    source: "lingma",
    name: "Lingma",
    at: [".lingma/vscode/sharedClientCache/cache/db/local.db", ".lingma/sharedClientCache/cache/db/local.db"],
  },
  { source: "mux", name: "Mux", at: [".mux/sessions"], variable: { name: "MUX_ROOT", below: "sessions" } },
  { source: "omnigent", name: "Omnigent", files: /\.db$/, at: [".omnigent"] },
  { source: "piebald", name: "Piebald", files: /\.db$/, at: dataFolders("piebald") },
  { source: "poolside", name: "Poolside", at: [".local/state/poolside"] },
  { source: "posit_assistant", name: "Posit Assistant", at: [".posit/assistant/workspaces"] },
  {
    source: "positron",
    name: "Positron Assistant",
    files: /\.jsonl?$/,
    at: below(userFolders("Positron"), "workspaceStorage"),
  },
  { source: "prime_agent", name: "Prime Agent", at: [".prime/agent/sessions"] },
  { source: "qclaw", name: "QClaw", at: [".qclaw/agents"] },
  { source: "kimi_openclaw", name: "Kimi's OpenClaw", at: [".kimi_openclaw/agents"] },
  { source: "qwenpaw", name: "QwenPaw", at: [".copaw/workspaces"] },
  { source: "reasonix", name: "Reasonix", at: [".reasonix", "AppData/Roaming/reasonix"] },
  { source: "rovodev", name: "Rovo Dev", at: [".rovodev/sessions"] },
  { source: "shelley", name: "Shelley", files: /\.db$/, at: [".config/shelley"] },
  {
    source: "trae",
    name: "Trae",
    at: below(userFolders("Trae", "Trae CN", "TRAE SOLO CN"), "globalStorage/state.vscdb"),
    why: ENCRYPTED,
  },
  {
    source: "visual_studio_copilot",
    name: "Copilot in Visual Studio",
    at: ["AppData/Local/Temp", "Library/Caches", ".cache"].map((folder) => `${folder}/VSGitHubCopilotLogs/traces`),
  },
  {
    source: "warp",
    name: "Warp",
    at: [
      ".local/state/warp-terminal/warp.sqlite",
      "Library/Group Containers/2BBY89MBSN.dev.warp/Library/Application Support/dev.warp.Warp-Stable/warp.sqlite",
      "AppData/Local/warp/Warp/data/warp.sqlite",
    ],
  },
  { source: "windsurf", name: "Windsurf's Cascade", at: [".codeium/windsurf/cascade"], why: ENCRYPTED },
  {
    source: "windsurf_chat",
    name: "Windsurf's older chats",
    files: /^state\.vscdb$/,
    at: below(userFolders("Windsurf", "Windsurf - Next"), "workspaceStorage"),
  },
  { source: "workbuddy", name: "WorkBuddy", at: [".workbuddy/projects"] },
  { source: "zcode", name: "ZCode", files: /\.(db|jsonl?)$/, at: [".zcode/cli"] },
  { source: "zencoder", name: "Zencoder", at: [".zencoder/sessions"] },
]

function below(folders: string[], name: string): string[] {
  return folders.map((folder) => `${folder}/${name}`)
}

function inEditors(name: string): string[] {
  return below(userFolders("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"), `globalStorage/${name}`)
}
