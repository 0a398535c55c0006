import { join } from "node:path"
import type { Machine } from "../kit/connector.ts"

export function hermesRoots({ home, env, platform }: Machine): string[] {
  if (env.HERMES_HOME) return [env.HERMES_HOME]
  const own = join(home, ".hermes")
  return platform === "win32" ? [own, join(env.LOCALAPPDATA || join(home, "AppData", "Local"), "hermes")] : [own]
}
