import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** Where Crush keeps the list of projects; a project's sessions are in the project. */
export function crushRoots({ home, env, platform }: Machine): string[] {
  if (env.CRUSH_GLOBAL_DATA) return [env.CRUSH_GLOBAL_DATA]
  if (env.XDG_DATA_HOME) return [join(env.XDG_DATA_HOME, "crush")]
  if (platform === "win32") return [join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "crush")]
  return [join(home, ".local", "share", "crush")]
}
