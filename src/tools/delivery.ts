import { loadSettings } from "../config/load.ts"
import type { DeliverParts } from "../deliver/deliver.ts"
import type { Dex } from "./context.ts"

// What delivering needs of a running dex. Settings and borders are asked for each time: they may change while it runs.

export async function deliverParts(dex: Dex): Promise<DeliverParts> {
  return {
    suggestions: await dex.suggestions(),
    now: () => dex.now(),
    version: dex.version,
    allowedHosts: () => allowedHosts(dex.home.config, dex.machine.env),
    mayLeave: async (project) => !(await isPrivate(dex, project)),
  }
}

/** The user's own choice only: a project's file cannot add to it. */
export function allowedHosts(file: string, env: Record<string, string | undefined>): string[] {
  const { settings } = loadSettings({ file, env })
  return (settings["deliver.allow_hosts"] ?? "").split(",").map((host) => host.trim())
}

export async function isPrivate(dex: Dex, project: string): Promise<boolean> {
  if (!dex.hasHistory()) return false
  return (await (await dex.store()).projects()).some((one) => one.private && one.path === project)
}
