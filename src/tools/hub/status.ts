import { readHub } from "../../config/hub.ts"
import { isoDate } from "../../core/dates.ts"
import { formatRef } from "../../core/ref.ts"
import { type HubQuarantined, type HubReceipt, type HubStored, isHubError, openHub } from "../../hub/client.ts"
import { feedToken, type Sharing, sharedBy } from "../../hub/push.ts"
import type { WireNotice } from "../../hub/wire.ts"
import type { PushState } from "../../store/hub/pushed.ts"
import type { Dex } from "../context.ts"
import { isAllowed, pushedOf, sharingOf } from "./sharing.ts"

const MOST_NAMED = 20
const MOST_LOOKED_AT = 2_000
const ANSWERS_WITHIN_MS = 3_000

/** What is shared with whom, how far it got, and what stays here. Asks the hub, and waits a moment at the most. */
export async function hubStatus(dex: Dex) {
  const choices = readHub(dex.home)
  const { address, token, tenant, member, consents } = choices
  if (address === undefined) return { logged_in: false, shared: [] }
  const pushed = pushedOf(dex)
  try {
    const counts = pushed.counts()
    const count = (key: string, state: PushState) =>
      counts.find((one) => one.project === key && one.state === state)?.count ?? 0
    const privates = new Set(
      (await (await dex.store()).projects()).filter((one) => one.private).map(({ path }) => path),
    )
    const { problem, succeeded_at, retry_at } = pushed.health()
    const reached = token === undefined ? undefined : await reach(address, token)
    const said = reached?.problem ?? problem
    return {
      address,
      ...(tenant !== undefined && { tenant }),
      ...(member !== undefined && { member }),
      logged_in: token !== undefined,
      ...(reached && { reachable: reached.problem === undefined }),
      ...(said !== undefined && { problem: said }),
      ...(reached?.notices?.length && { notices: reached.notices }),
      ...(reached?.requests && { requests_waiting: reached.requests }),
      ...(reached?.stored && { stored: reached.stored }),
      shared: consents.map(({ project, key, what, visibility, since }) => ({
        project,
        key,
        what,
        visibility,
        ...(since !== undefined && { since: isoDate(since) }),
        sent: count(key, "sent"),
        refused: count(key, "refused"),
        deleted: count(key, "gone"),
        ...(privates.has(project)
          ? { paused: "The project is private." }
          : !isAllowed(dex, project) && { paused: "Its .dex.json or your settings say hub.share false." }),
      })),
      waiting: consents.length === 0 ? 0 : await waiting(await sharingOf(dex, () => choices, pushed)),
      leaving: pushed.in("leaving", MOST_LOOKED_AT).length,
      held: pushed.held().map(formatRef),
      ...(reached?.quarantined && {
        quarantined: reached.quarantined
          .slice(0, MOST_NAMED)
          .map(({ source, id, at, rules }) => ({ id: formatRef({ source, id }), at, rules })),
      }),
      ...(reached?.receipts && { receipts: reached.receipts.slice(0, MOST_NAMED) }),
      refused: pushed.in("refused", MOST_NAMED).map(({ ref, why = "" }) => ({ id: formatRef(ref), why })),
      ...(succeeded_at !== undefined && { pushed_at: isoDate(succeeded_at) }),
      ...(retry_at !== undefined && retry_at > dex.now() && { next_try_at: isoDate(retry_at) }),
    }
  } finally {
    pushed.close()
  }
}

/** How many of the next changes in the feed are shared. More than a few thousand are not counted. */
async function waiting(parts: Sharing): Promise<number> {
  const page = await parts.store.changes(await feedToken(parts), MOST_LOOKED_AT)
  let count = 0
  for (const { ref } of page.changes) {
    const row = ref && (await parts.store.conversation(ref))
    if (!row || typeof (await sharedBy(parts, row)) === "string") continue
    const known = parts.pushed.get(row.ref)
    if (known?.state !== "gone" && known?.state !== "leaving") count++
  }
  return count
}

type Reached = {
  problem?: string
  receipts?: HubReceipt[]
  quarantined?: HubQuarantined[]
  notices?: string[]
  requests?: number
  stored?: { yours?: HubStored; team?: HubStored }
}

async function reach(address: string, token: string): Promise<Reached> {
  const hub = openHub({ address, token, timeoutMs: ANSWERS_WITHIN_MS, patience: 1 })
  try {
    const { notices = [], stored = {}, requests = 0 } = await hub.me()
    return {
      ...(await hub.mine()),
      notices: notices.flatMap(noticeLine),
      requests,
      ...((stored.yours || stored.team) && { stored }),
    }
  } catch (error) {
    if (isHubError(error)) return { problem: error.message }
    throw error
  } finally {
    hub.close()
  }
}

/** A newer hub may send notices that this dex does not know: they are left out. */
function noticeLine({ type, by, ref, at, reason }: WireNotice): string[] {
  if (type !== "break_glass") return []
  return [`${by} was given ${ref} to read on ${at.slice(0, 10)}, as an admin. The reason: ${reason}`]
}
