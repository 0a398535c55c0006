import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function gooseRoots({ home, env, platform }: Machine): string[] {
  if (env.GOOSE_PATH_ROOT) return [join(env.GOOSE_PATH_ROOT, "data", "sessions")]
  const data =
    platform === "win32"
      ? join(env.APPDATA || join(home, "AppData", "Roaming"), "Block", "goose", "data")
      : join(env.XDG_DATA_HOME || join(home, ".local", "share"), "goose")
  return [join(data, "sessions")]
}
