import { isAbsolute, join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function cursorRoots({ home, env, platform }: Machine): string[] {
  const config = env.XDG_CONFIG_HOME && isAbsolute(env.XDG_CONFIG_HOME) ? env.XDG_CONFIG_HOME : join(home, ".config")
  const dot = join(home, ".cursor")
  if (platform === "darwin") return [join(home, "Library", "Application Support", "Cursor", "User"), dot]
  if (platform === "win32") return [join(env.APPDATA || join(home, "AppData", "Roaming"), "Cursor", "User"), dot]
  return [join(config, "Cursor", "User"), dot, join(config, "cursor")]
}
