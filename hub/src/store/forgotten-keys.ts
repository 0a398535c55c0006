import { codeOf } from "../../../src/core/error.ts"
import { openClient } from "./primary.ts"

/**
 * The result of rewriting the table of keys. PostgreSQL keeps the bytes of a deleted row in its files until the table is
 * rewritten. The table of keys is small, so it is rewritten after deletions. `nothing`: no key was deleted since the last time.
 * `soon`: it was rewritten a moment ago. `busy`: another process is reading or rewriting it.
 */
export type RewriteResult = { state: "done"; receipts: number } | { state: "nothing" | "soon" | "busy" }

/** The number of a lock that lets only one node at a time rewrite the table. */
const LOCK = 7_238_452
/** How long to wait for the table. Meanwhile, all other readers have to wait too. */
const LOCK_TIMEOUT = "2s"
const LOCK_NOT_AVAILABLE = "55P03"

const SELECT_DUE =
  "select id, false as of_tenant from hub.receipt where key_gone_at is null union all select id, true from hub.tenant_receipt where key_gone_at is null"
const SELECT_RECENT = `select from hub.receipt where key_gone_at > now() - $1 * interval '1 millisecond'
  union all select from hub.tenant_receipt where key_gone_at > now() - $1 * interval '1 millisecond' limit 1`
const MARK_GONE = "update hub.receipt set key_gone_at = now() where key_gone_at is null and id = any ($1)"
const MARK_TENANT_GONE = MARK_GONE.replace("hub.receipt", "hub.tenant_receipt")

/**
 * Rewrites the table of keys if something was forgotten since the last time. `address` is for the role dex_hub_keys or the
 * tables' owner. Does nothing if the table was already rewritten within the last `intervalMs`.
 */
export async function rewriteForgottenKeys(address: string, { intervalMs = 0 } = {}): Promise<RewriteResult> {
  const client = await openClient(address, { application_name: "dex-hub forget-keys" })
  let remainingRows = Number.NaN
  client.on("notice", ({ message = "", detail = "" }) => {
    if (message.includes("conversation_key")) remainingRows = Number(/\d+/.exec(detail)?.[0])
  })
  try {
    const { rows } = await client.query<{ locked: boolean }>("select pg_try_advisory_lock($1) as locked", [LOCK])
    if (!rows[0]!.locked) return { state: "busy" }
    const due = (await client.query<{ id: string; of_tenant: boolean }>(SELECT_DUE)).rows
    const dueIds = (ofTenant: boolean) => due.filter(({ of_tenant }) => of_tenant === ofTenant).map(({ id }) => id)
    if (due.length === 0) return { state: "nothing" }
    if ((await client.query(SELECT_RECENT, [intervalMs])).rowCount) return { state: "soon" }
    await client.query("select set_config('lock_timeout', $1, false)", [LOCK_TIMEOUT])
    await client.query("vacuum (full, verbose) hub_key.conversation_key")
    // A transaction that began before the deletion may still read the row, so PostgreSQL kept it.
    if (remainingRows !== 0) return { state: "busy" }
    await client.query(MARK_GONE, [dueIds(false)])
    await client.query(MARK_TENANT_GONE, [dueIds(true)])
    return { state: "done", receipts: due.length }
  } catch (error) {
    if (codeOf(error) === LOCK_NOT_AVAILABLE) return { state: "busy" }
    throw error
  } finally {
    await client.end()
  }
}
