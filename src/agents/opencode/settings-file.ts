import { existsSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import type { Machine } from "../kit/connector.ts"

/** The user's own settings: the file that is there; `opencode.json` where none is. */
export function opencodeSettings(machine: Machine): string {
  const names = ["opencode.jsonc", "opencode.json", "config.json"]
  const paths = names.map((name) => join(opencodeFolder(machine), name))
  return paths.find((path) => existsSync(path)) ?? paths[1]!
}

export function opencodeFolder({ home, env }: Machine): string {
  return join(xdgFolder(env.XDG_CONFIG_HOME, home, ".config"), "opencode")
}

export function xdgFolder(set: string | undefined, home: string, ...fallback: string[]): string {
  return set && isAbsolute(set) ? set : join(home, ...fallback)
}
