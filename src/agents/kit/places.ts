import { join } from "node:path"
import { lookAt } from "../../core/look-at.ts"
import type { Machine } from "./connector.ts"

// Where agents keep what they write. Every command loads this file, so it imports next to nothing.

export type Roots = (machine: Machine) => string[]

/** A folder below the home, the same on every system. */
export function belowHome(...steps: string[]): Roots {
  return ({ home }) => [join(home, ...steps)]
}

/** Where programs keep a user's settings. */
export function settingsFolder({ home, env, platform }: Machine): string {
  if (platform === "darwin") return join(home, "Library", "Application Support")
  if (platform === "win32") return env.APPDATA || join(home, "AppData", "Roaming")
  return env.XDG_CONFIG_HOME || join(home, ".config")
}

/** Where programs keep a user's data on Linux; many use the same folder on other systems. */
export function sharedDataFolder({ home, env }: Machine): string {
  return env.XDG_DATA_HOME || join(home, ".local", "share")
}

/** Where Windows keeps a user's data that does not follow them to another machine. */
export function localAppData({ home, env }: Machine): string {
  return env.LOCALAPPDATA || join(home, "AppData", "Local")
}

/** The `User` folder of each of these editors, by the name that its program has (`Code - Insiders`). */
export function userFolders(machine: Machine, editors: readonly string[]): string[] {
  return editors.map((editor) => join(settingsFolder(machine), editor, "User"))
}

const SYSTEMS = ["linux", "darwin", "win32"] as const

/** Where an agent may keep sessions: on this machine, and in the other homes that the user named. */
export function everyRoot(roots: Roots, machine: Machine): string[] {
  const elsewhere = (machine.otherHomes ?? []).flatMap((home) => rootsInHome(roots, home))
  return [...new Set([...roots(machine), ...elsewhere])]
}

/** Another home's system is not known (a container's, the Windows home that WSL sees): it is looked at as one of each. */
export function rootsInHome(roots: Roots, home: string): string[] {
  return [...new Set(SYSTEMS.flatMap((platform) => roots({ home, env: {}, platform })))]
}

/** Whether there is anything to read. A root that nobody may look at counts as there, so that it is reported. */
export function isThere(roots: Roots, machine: Machine): boolean {
  return everyRoot(roots, machine).some((root) => lookAt(root) !== undefined)
}
