import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function zedRoots({ home, env, platform }: Machine): string[] {
  if (platform === "darwin") return [join(home, "Library", "Application Support", "Zed", "threads")]
  if (platform === "win32") return [join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "Zed", "threads")]
  const data = env.FLATPAK_XDG_DATA_HOME || env.XDG_DATA_HOME || join(home, ".local", "share")
  return [join(data, "zed", "threads")]
}
