import { existsSync } from "node:fs"
import { loadSettings } from "../../config/load.ts"
import { isSamePath } from "../../core/path-key.ts"
import { openSuggestions } from "../../store/suggestions/suggestions.ts"
import type { DeliveryParts } from "../../suggest/deliver/deliver.ts"
import { keepDelivering } from "../../suggest/deliver/keep-delivering.ts"
import type { Dex } from "../context.ts"

// Gives delivery the parts of a running dex that it needs. Settings and private projects are read each time, because they may
// change.

export async function deliveryParts(dex: Dex): Promise<DeliveryParts> {
  return {
    suggestions: await dex.suggestions(),
    now: () => dex.now(),
    version: dex.version,
    allowedHosts: () => allowedHosts(dex.home.config, dex.machine.env),
    mayLeave: async (project) => !(await isPrivate(dex, project)),
  }
}

/**
 * Delivers for as long as the process runs. Does nothing until the database with the subscriptions exists. Returns a function that stops the
 * delivery and resolves when everything is closed.
 */
export function startDelivering(
  { home, machine, version }: { home: Dex["home"]; machine: Pick<Dex["machine"], "env">; version: string },
  mayLeave: DeliveryParts["mayLeave"],
  log: (line: string) => void,
): () => Promise<void> {
  const suggestions = openSuggestions(home.suggest)
  const parts = {
    suggestions: () => (existsSync(home.suggest) ? suggestions : undefined),
    now: () => Date.now(),
    version,
    allowedHosts: () => allowedHosts(home.config, machine.env),
    mayLeave,
  }
  const stop = keepDelivering(parts, deliveryLockFile(home.suggest), log)
  return async () => {
    await stop()
    suggestions.close()
  }
}

/** The lock file for delivery. Only the process that has this lock delivers. */
export function deliveryLockFile(suggestFile: string): string {
  return `${suggestFile}.deliver`
}

/** The hosts to which webhooks may be sent. Only the user's own settings count, so that a project's file cannot add hosts. */
export function allowedHosts(file: string, env: Record<string, string | undefined>): string[] {
  const { settings } = loadSettings({ file, env })
  return (settings["deliver.allow_hosts"] ?? "").split(",").map((host) => host.trim())
}

export async function isPrivate(dex: Dex, project: string): Promise<boolean> {
  if (!dex.hasHistory()) return false
  const { platform } = dex.machine
  return (await (await dex.store()).projects()).some(
    (known) => known.private && isSamePath(known.path, project, platform),
  )
}
