import { readdirSync } from "node:fs"
import { join } from "node:path"
import { lookAt } from "../core/look-at.ts"
import type { Machine } from "./kit/connector.ts"
import { agents } from "./registry.ts"

/** Conversations on this machine that dex does not read. `files` is counted up to `MAX_COUNTED_FILES`. */
type FoundUnreadStore = { name: string; path: string; files: number; why?: string }

export const MAX_COUNTED_FILES = 10_000
const MAX_DEPTH = 8

/** Finds the known stores on this machine that dex does not read. Checking an absent one costs a single system call. */
export function findUnreadStores({ home, env, otherHomes = [] }: Machine): FoundUnreadStore[] {
  const readSources = new Set(agents.flatMap(({ source, connector }) => (connector ? source : [])))
  return UNREAD_STORES.filter(({ source }) => !readSources.has(source)).flatMap((store) =>
    pathsOf(store, [home, ...otherHomes], env).flatMap((path) => {
      const files = countFilesAt(path, store.files)
      return files === 0 ? [] : [{ name: store.name, path, files, why: store.why }]
    }),
  )
}

function pathsOf({ paths, variable }: UnreadStore, homes: readonly string[], env: Machine["env"]): string[] {
  const folder = variable && env[variable.name]
  const belowHome = homes.flatMap((home) => paths.map((path) => join(home, path)))
  return [...new Set(folder ? [join(folder, variable.below ?? ""), ...belowHome] : belowHome)]
}

/**
 * Counts the file at a path, or the files with matching names below it. Links and files without access permission do not count.
 */
function countFilesAt(path: string, namePattern: RegExp | undefined): number {
  const stat = lookAt(path, { follow: false })
  if (stat === undefined || stat === "unknown") return 0
  return stat.isFile() ? 1 : stat.isDirectory() ? countFilesIn(path, namePattern) : 0
}

function countFilesIn(folder: string, namePattern = /(?:)/): number {
  let count = 0
  const folders = [{ folder, depth: 0 }]
  for (let current = folders.pop(); current && count < MAX_COUNTED_FILES; current = folders.pop()) {
    for (const entry of entriesIn(current.folder)) {
      if (entry.isFile()) count += namePattern.test(entry.name) ? 1 : 0
      else if (entry.isDirectory() && current.depth < MAX_DEPTH)
        folders.push({ folder: join(current.folder, entry.name), depth: current.depth + 1 })
    }
  }
  return Math.min(count, MAX_COUNTED_FILES)
}

function entriesIn(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true })
  } catch {
    return [] // the folder cannot be read, so the number of its files is unknown
  }
}

/**
 * A place in which a program stores conversations that dex cannot read, or cannot read yet. `paths` are relative to the home
 * folder and cover every system. `variable` is an environment variable that names another folder; the conversations are then in
 * its subfolder `below`.
 */
type UnreadStore = {
  /** The source that the program would have if dex could read it. Once dex reads this source, it no longer searches for the store. */
  source: string
  name: string
  paths: readonly string[]
  variable?: { name: string; below?: string }
  /** Matches the names of files with conversations. If absent, all files count. */
  files?: RegExp
  /** The reason why only the program itself can read the store. */
  why?: string
}

const ENCRYPTED = "encrypted, with a key that only the program has"

/** Returns the settings folders of these editors on each system, relative to the home folder. */
function userFolders(...names: string[]): string[] {
  const settings = [".config", "Library/Application Support", "AppData/Roaming"]
  return names.flatMap((name) => settings.map((folder) => `${folder}/${name}/User`))
}

function dataFolders(name: string, below = ""): string[] {
  return [".local/share", "Library/Application Support", "AppData/Roaming", "AppData/Local"].map(
    (folder) => `${folder}/${name}${below}`,
  )
}

/** The known stores. Their locations were taken from other programs that read conversations. */
export const UNREAD_STORES: readonly UnreadStore[] = [
  { source: "amp_editor", name: "Amp in an editor", paths: inEditorFolders("sourcegraph.amp/threads3") },
  { source: "astrbot", name: "AstrBot", paths: [".astrbot/data/data_v4.db", ".astrbot_launcher/instances"] },
  {
    source: "chatgpt_desktop",
    name: "ChatGPT for the desktop",
    paths: ["Library/Application Support/com.openai.chat"],
    why: `${ENCRYPTED}; chatgpt.com exports them for \`dex import\``,
  },
  {
    source: "claude_desktop",
    name: "Claude for the desktop",
    paths: [
      "Library/Application Support/Claude/IndexedDB",
      "AppData/Roaming/Claude/IndexedDB",
      ".config/Claude/IndexedDB",
    ],
    why: "on Anthropic's server; claude.ai exports them for `dex import`",
  },
  { source: "codebuddy", name: "CodeBuddy Code", paths: [".codebuddy/projects"] },
  { source: "command_code", name: "Command Code", paths: [".commandcode/projects"] },
  { source: "cortex_code", name: "Cortex Code", paths: [".snowflake/cortex/conversations"] },
  { source: "deep_agents", name: "Deep Agents", paths: [".deepagents/.state/sessions.db", ".deepagents/sessions.db"] },
  { source: "deepseek_tui", name: "DeepSeek TUI", paths: [".deepseek/sessions", ".codewhale/sessions"] },
  { source: "devin", name: "Devin CLI", files: /\.db$/, paths: dataFolders("devin") },
  { source: "icodemate", name: "IcodeMate", paths: [".local/share/icodemate"] },
  {
    source: "kimi_work",
    name: "Kimi Work",
    paths: [...dataFolders("kimi-desktop"), ".config/kimi-desktop"].map(
      (folder) => `${folder}/daimon-share/daimon/runtime/kimi-code/home/sessions`,
    ),
  },
  {
    source: "lingma",
    name: "Lingma",
    paths: [".lingma/vscode/sharedClientCache/cache/db/local.db", ".lingma/sharedClientCache/cache/db/local.db"],
  },
  { source: "mux", name: "Mux", paths: [".mux/sessions"], variable: { name: "MUX_ROOT", below: "sessions" } },
  { source: "omnigent", name: "Omnigent", files: /\.db$/, paths: [".omnigent"] },
  { source: "piebald", name: "Piebald", files: /\.db$/, paths: dataFolders("piebald") },
  { source: "poolside", name: "Poolside", paths: [".local/state/poolside"] },
  { source: "posit_assistant", name: "Posit Assistant", paths: [".posit/assistant/workspaces"] },
  {
    source: "positron",
    name: "Positron Assistant",
    files: /\.jsonl?$/,
    paths: appendToEach(userFolders("Positron"), "workspaceStorage"),
  },
  { source: "prime_agent", name: "Prime Agent", paths: [".prime/agent/sessions"] },
  { source: "kimi_openclaw", name: "Kimi's OpenClaw", paths: [".kimi_openclaw/agents"] },
  { source: "qwenpaw", name: "QwenPaw", paths: [".copaw/workspaces"] },
  { source: "reasonix", name: "Reasonix", paths: [".reasonix", "AppData/Roaming/reasonix"] },
  { source: "rovodev", name: "Rovo Dev", paths: [".rovodev/sessions"] },
  { source: "shelley", name: "Shelley", files: /\.db$/, paths: [".config/shelley"] },
  {
    source: "trae",
    name: "Trae",
    paths: appendToEach(userFolders("Trae", "Trae CN", "TRAE SOLO CN"), "globalStorage/state.vscdb"),
    why: ENCRYPTED,
  },
  { source: "windsurf", name: "Windsurf's Cascade", paths: [".codeium/windsurf/cascade"], why: ENCRYPTED },
  {
    source: "windsurf_chat",
    name: "Windsurf's older chats",
    files: /^state\.vscdb$/,
    paths: appendToEach(userFolders("Windsurf", "Windsurf - Next"), "workspaceStorage"),
  },
  { source: "workbuddy", name: "WorkBuddy", paths: [".workbuddy/projects"] },
  { source: "zcode", name: "ZCode", files: /\.(db|jsonl?)$/, paths: [".zcode/cli"] },
  { source: "zencoder", name: "Zencoder", paths: [".zencoder/sessions"] },
]

function appendToEach(folders: string[], name: string): string[] {
  return folders.map((folder) => `${folder}/${name}`)
}

function inEditorFolders(name: string): string[] {
  return appendToEach(userFolders("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"), `globalStorage/${name}`)
}
