import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** Claude Desktop keeps one configuration folder for each Cowork session, some levels below this one. */
export const COWORK = "local-agent-mode-sessions"

export function claudeCodeRoots({ home, env, platform }: Machine): string[] {
  const configured = (env.CLAUDE_CONFIG_DIR ?? "").split(",").map((dir) => dir.trim())
  const own = configured.filter((dir) => dir !== "")
  const config = own.length > 0 ? own : [join(home, ".claude")]
  return [...new Set([...config, join(home, ".config", "claude"), ...desktops({ home, env, platform })])]
}

function desktops({ home, env, platform }: Machine): string[] {
  if (platform === "darwin") return [join(home, "Library", "Application Support", "Claude", COWORK)]
  if (platform !== "win32") return [join(env.XDG_CONFIG_HOME ?? join(home, ".config"), "Claude", COWORK)]
  const roaming = env.APPDATA ?? join(home, "AppData", "Roaming")
  const local = env.LOCALAPPDATA ?? join(home, "AppData", "Local")
  const store = join(local, "Packages", "Claude_pzs8sxrjxfjjc", "LocalCache", "Roaming")
  return [join(roaming, "Claude", COWORK), join(store, "Claude", COWORK)]
}
