import { join } from "node:path"
import { readHub } from "../../config/hub.ts"
import { DexError, isDexError } from "../../core/error.ts"
import { isHubError, openHub } from "../../hub-client/client.ts"
import { type PushReport, pushAll } from "../../hub-client/push.ts"
import type { PushHealth } from "../../store/hub/pushed.ts"
import { tryLock } from "../../store/sqlite/lock.ts"
import type { Dex } from "../context.ts"
import { openPushedStore, sharingOf } from "./sharing.ts"

const FIRST_RETRY_MS = 30_000
const MAX_RETRY_MS = 15 * 60_000

export type PushOutcome = PushReport & { busy: boolean }

const NOTHING_SENT: PushOutcome = { busy: false, sent: 0, removed: 0, refused: 0, chunks: 0, bytes: 0, complete: true }

/**
 * Sends what is shared and not yet acknowledged. `isAutomatic` means that nobody requested the push: dex then waits only briefly
 * for the hub, and after a failure it does not contact the hub until the next attempt is due. Throws a DexError if the push
 * fails.
 */
export async function pushNow(dex: Dex, options: { isAutomatic?: boolean; maxMs?: number } = {}): Promise<PushOutcome> {
  const choices = readHub(dex.home)
  const { address, token } = choices
  if (address === undefined) throw new DexError("no_hub", "No hub is set up. Log in first: dex hub login ADDRESS")
  if (token === undefined) throw new DexError("no_hub", `You are logged out. Log in again: dex hub login ${address}`)
  // The choices are read again each time, so that a project that was unshared meanwhile is not sent.
  const currentChoices = () => {
    const current = readHub(dex.home)
    return current.address === address && current.token === token ? current : { ...current, consents: [] }
  }
  const lock = tryLock(join(dex.home.dir, "hub.lock"))
  if (!lock) return { ...NOTHING_SENT, busy: true, complete: false }
  const pushed = openPushedStore(dex)
  try {
    const health = pushed.health()
    if (options.isAutomatic && health.retry_at !== undefined && health.retry_at > dex.now())
      return { ...NOTHING_SENT, complete: false }
    const hub = openHub({
      address,
      token,
      signal: dex.signal,
      ...(options.isAutomatic && { timeoutMs: 10_000, maxTries: 1 }),
    })
    try {
      const report = await pushAll({
        ...(await sharingOf(dex, currentChoices, pushed)),
        hub,
        account: [address, choices.tenant, choices.member].join("\n"),
        deadline: options.maxMs === undefined ? undefined : dex.now() + options.maxMs,
        retriesRefused: !options.isAutomatic,
        onProgress:
          dex.onProgress &&
          ((done, total) => dex.onProgress!({ phase: "sending", done, total, bytes: done, bytesTotal: total })),
      })
      const now = dex.now()
      pushed.saveHealth({ tried_at: now, ...(report.complete ? { succeeded_at: now } : lastSuccess(health)) })
      return { ...report, busy: false }
    } catch (error) {
      if (isHubError(error) && error.trouble !== "stopped") {
        const failures = (health.failures ?? 0) + 1
        const waitMs = Math.max(error.retryAfterMs ?? 0, Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1)))
        const now = dex.now()
        pushed.saveHealth({
          ...lastSuccess(health),
          tried_at: now,
          problem: error.message,
          failures,
          retry_at: now + waitMs,
        })
      }
      throw error
    } finally {
      hub.close()
    }
  } finally {
    pushed.close()
    lock.release()
  }
}

/** The fields of the output that describe a push. */
export function pushFields({ busy, sent, removed, refused, bytes, complete }: PushOutcome) {
  return { busy, sent, removed, refused, bytes, complete }
}

/** Pushes now. If the hub cannot be reached, returns the reason; the next push retries. */
export async function tryPush(dex: Dex): Promise<{ pushed?: ReturnType<typeof pushFields>; problem?: string }> {
  try {
    return { pushed: pushFields(await pushNow(dex)) }
  } catch (error) {
    if (isHubError(error) || (isDexError(error) && error.code === "no_hub")) return { problem: error.message }
    throw error
  }
}

function lastSuccess({ succeeded_at }: PushHealth): PushHealth {
  return succeeded_at === undefined ? {} : { succeeded_at }
}
