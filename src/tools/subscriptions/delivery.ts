import { existsSync } from "node:fs"
import { loadSettings } from "../../config/load.ts"
import { messageOf } from "../../core/error.ts"
import { isSamePath } from "../../core/path-key.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import { openSuggestions, type Suggestions } from "../../store/suggestions/suggestions.ts"
import type { DeliveryParts } from "../../suggest/deliver/deliver.ts"
import type { Dex } from "../context.ts"

// Collects the parts of a running dex that delivery needs. Settings and private projects are read each time, because they may
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
 * Sends notifications for as long as the process runs. Does nothing until the database with the subscriptions exists. Returns a
 * function that stops the delivery and resolves when everything is closed.
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

const CHECK_INTERVAL_MS = 1_000

/**
 * Delivers webhooks while the process runs. If several processes run, only one delivers; when it ends for any reason, another
 * takes over. Problems are logged, and delivery is retried. `suggestions` returns undefined until the first suggestion is stored.
 * Returns a function that cancels what is being sent and resolves when nothing more is read or written.
 */
export function keepDelivering(
  parts: Omit<DeliveryParts, "suggestions"> & { suggestions(): Suggestions | undefined },
  lockFile: string,
  log: (line: string) => void,
): () => Promise<void> {
  const stop = new AbortController()
  let lock: { release(): void } | undefined
  let lastProblem = ""
  const deliverIfDue = async () => {
    try {
      const suggestions = parts.suggestions()
      const at = suggestions?.nextDue()
      if (suggestions && at !== undefined && at <= parts.now()) {
        lock ??= tryLock(lockFile)
        // Load this late, because Node's HTTP takes 40 ms to load, and most processes never send anything.
        if (lock)
          await (await import("../../suggest/deliver/deliver.ts")).deliverDue({ ...parts, suggestions }, stop.signal)
      }
    } catch (error) {
      const problem = messageOf(error)
      if (problem !== lastProblem) log(`Webhooks cannot be delivered now; dex will try again: ${problem}`)
      lastProblem = problem
    }
    if (!stop.signal.aborted) timer = setTimeout(startCheck, CHECK_INTERVAL_MS)
  }
  let delivering = Promise.resolve()
  const startCheck = () => {
    delivering = deliverIfDue()
  }
  let timer = setTimeout(startCheck, 0)
  return async () => {
    stop.abort()
    clearTimeout(timer)
    await delivering
    lock?.release()
  }
}
