import { lookAt } from "../../files/look-at.ts"
import type { Machine } from "./connector.ts"

export type Roots = (machine: Machine) => string[]

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
