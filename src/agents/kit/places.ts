import { join } from "node:path"
import { lookAt } from "../../core/look-at.ts"
import type { Machine } from "./connector.ts"

// The folders that agents use. Every command loads this file, so it imports almost nothing.

export type Roots = (machine: Machine) => string[]

/** Declares a root below the home folder, at the same path on every system. */
export function belowHome(...steps: string[]): Roots {
  return ({ home }) => [join(home, ...steps)]
}

/** The folder in which programs store a user's settings. */
export function settingsFolder({ home, env, platform }: Machine): string {
  if (platform === "darwin") return join(home, "Library", "Application Support")
  if (platform === "win32") return env.APPDATA || join(home, "AppData", "Roaming")
  return env.XDG_CONFIG_HOME || join(home, ".config")
}

/** The folder in which programs store a user's data on Linux. Many programs use the same folder on other systems. */
export function sharedDataFolder({ home, env }: Machine): string {
  return env.XDG_DATA_HOME || join(home, ".local", "share")
}

/** The folder for user data on Windows that does not roam to other machines. */
export function localAppData({ home, env }: Machine): string {
  return env.LOCALAPPDATA || join(home, "AppData", "Local")
}

/** Returns the `User` folder of each editor. `editors` has the names of their settings folders, such as `Code - Insiders`. */
export function userFolders(machine: Machine, editors: readonly string[]): string[] {
  return editors.map((editor) => join(settingsFolder(machine), editor, "User"))
}

const SYSTEMS = ["linux", "darwin", "win32"] as const

/** Returns all folders in which an agent may store sessions: on this machine, and in the other homes that the user configured. */
export function allRoots(roots: Roots, machine: Machine): string[] {
  const otherRoots = (machine.otherHomes ?? []).flatMap((home) => rootsInHome(roots, home))
  return [...new Set([...roots(machine), ...otherRoots])]
}

/**
 * Returns the roots that a home would have on any of the systems, because the system of another home is unknown (a container, or
 * the Windows home that WSL sees).
 */
export function rootsInHome(roots: Roots, home: string): string[] {
  return [...new Set(SYSTEMS.flatMap((platform) => roots({ home, env: {}, platform })))]
}

/** Whether at least one root exists. A root without access permission counts, so that it is reported. */
export function hasAnyRoot(roots: Roots, machine: Machine): boolean {
  return allRoots(roots, machine).some((root) => lookAt(root) !== undefined)
}
