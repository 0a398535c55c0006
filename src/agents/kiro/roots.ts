import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The command line's databases (Amazon Q's is the same, of before), its files, and the editor's folder. */
export function kiroRoots({ home, env, platform }: Machine): string[] {
  const { data, settings } = foldersOf({ home, env, platform })
  return [
    join(data, "kiro-cli"),
    join(data, "amazon-q"),
    join(home, ".kiro", "sessions", "cli"),
    join(settings, "Kiro", "User", "globalStorage", "kiro.kiroagent"),
  ]
}

function foldersOf({ home, env, platform }: Machine): { data: string; settings: string } {
  if (platform === "darwin") {
    const support = join(home, "Library", "Application Support")
    return { data: support, settings: support }
  }
  if (platform === "win32")
    return {
      data: env.LOCALAPPDATA || join(home, "AppData", "Local"),
      settings: env.APPDATA || join(home, "AppData", "Roaming"),
    }
  return {
    data: env.XDG_DATA_HOME || join(home, ".local", "share"),
    settings: env.XDG_CONFIG_HOME || join(home, ".config"),
  }
}
