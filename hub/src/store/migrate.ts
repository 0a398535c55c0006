import type pg from "pg"
import { codeOf } from "../../../src/core/error.ts"
import { MIGRATIONS, type MigrationStep } from "./migrations.ts"
import { openClient } from "./primary.ts"

export type MigrateOptions = {
  /** The database address of the tables' owner, who must be allowed to create schemas, and roles if they do not exist yet. */
  owner: string
  /** Passwords for the hub's roles. If they are set, the roles are created or changed. */
  passwords?: { app: string; index: string; keys?: string; admin?: string }
  steps?: readonly MigrationStep[]
}

/** Selects the version of the tables, and the number of migration steps that a hub must know to work with them. */
export const TABLES = `select coalesce(max(version), 0) as version,
  coalesce(max((to_jsonb(m) ->> 'least_hub')::int), 1) as least_hub from hub.migration m`
export type TablesRow = { version: number; least_hub: number }

/** The number of a lock that lets one migration run at a time. */
const LOCK = 7_238_451
const POLL_MS = 200

/** How long a step waits to lock its table. Then it gives up, because queries wait behind it, and is retried later. */
const LOCK_TIMEOUT = "1s"
const LOCK_NOT_AVAILABLE = "55P03"
const MAX_TRIES = 10
const PAUSE_MS = 1_000

/** Brings the tables to the version of this dex-hub. It may run again at any time, even while another one is running. */
export async function migrate(options: MigrateOptions): Promise<{ from: number; to: number }> {
  const { owner, passwords, steps = MIGRATIONS } = options
  const client = await openClient(owner, { application_name: "dex-hub migrate" })
  try {
    await waitForLock(client)
    await makeRole(client, "dex_hub_app", passwords?.app)
    await makeRole(client, "dex_hub_index", passwords?.index)
    await makeRole(client, "dex_hub_keys", passwords?.keys)
    await makeRole(client, "dex_hub_admin", passwords?.admin)
    // Only a member of a role can give a table to it.
    await client.query("grant dex_hub_keys to current_user")
    await client.query(
      "create schema if not exists hub; create schema if not exists hub_key; create table if not exists hub.migration (version int primary key, at timestamptz not null default now())",
    )
    const { version: from, least_hub } = (await client.query<TablesRow>(TABLES)).rows[0]!
    if (least_hub > steps.length)
      throw new Error(
        `The database has version ${from}, but this dex-hub knows only ${steps.length}. Install a newer dex-hub.`,
      )
    for (let version = from + 1; version <= steps.length; version++)
      await withRetries(version, () => runStep(client, version, steps[version - 1]!))
    return { from, to: Math.max(from, steps.length) }
  } finally {
    await client.end()
  }
}

/** Polls for the lock, because a statement that waits for it would block `create index concurrently`. */
async function waitForLock(client: pg.Client): Promise<void> {
  for (;;) {
    const { rows } = await client.query<{ locked: boolean }>("select pg_try_advisory_lock($1) as locked", [LOCK])
    if (rows[0]!.locked) return
    await pause(POLL_MS)
  }
}

async function withRetries(version: number, work: () => Promise<void>): Promise<void> {
  for (let tries = 1; ; tries++)
    try {
      return await work()
    } catch (error) {
      if (codeOf(error) !== LOCK_NOT_AVAILABLE) throw error
      if (tries === MAX_TRIES)
        throw new Error(
          `Step ${version} could not lock its table in ${MAX_TRIES} tries: a dump or another long transaction uses it (pg_stat_activity names it). The hub keeps working with the tables as they are. Run \`dex-hub migrate\` again when it has ended.`,
          { cause: error },
        )
      await pause(PAUSE_MS)
    }
}

async function runStep(client: pg.Client, version: number, step: MigrationStep): Promise<void> {
  const recordVersion = "insert into hub.migration (version) values ($1)"
  if (typeof step === "string")
    return inTransaction(client, async () => {
      await client.query(step)
      await client.query(recordVersion, [version])
    })
  if ("drops" in step)
    return inTransaction(client, async () => {
      await client.query(step.drops)
      await client.query("insert into hub.migration (version, least_hub) values ($1, $2)", [version, step.leastHub])
    })
  if ("alone" in step) await client.query(step.alone)
  else
    for (let changedRows = 1; changedRows > 0; )
      await inTransaction(client, async () => {
        changedRows = (await client.query(step.batches)).rowCount ?? 0
      })
  await client.query(recordVersion, [version])
}

async function inTransaction(client: pg.Client, work: () => Promise<void>): Promise<void> {
  await client.query("begin")
  try {
    await client.query("select set_config('lock_timeout', $1, true)", [LOCK_TIMEOUT])
    await work()
    await client.query("commit")
  } catch (error) {
    await client.query("rollback")
    throw error
  }
}

async function makeRole(client: pg.Client, name: string, password: string | undefined): Promise<void> {
  const { rowCount } = await client.query("select from pg_roles where rolname = $1", [name])
  if (rowCount === 0) await client.query(`create role ${name} login nobypassrls noinherit`)
  if (password !== undefined) await client.query(`alter role ${name} password ${client.escapeLiteral(password)}`)
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
