import pg from "pg"
import { MIGRATIONS } from "./migrations.ts"

export type MigrateOptions = {
  /** The owner's address: it may create schemas and roles, or the roles are there. */
  owner: string
  /** Of the roles that the hub works with; where they are set, the roles are made or given them. */
  passwords?: { app: string; index: string; keys?: string }
}

/** Any number: two that migrate at once wait for each other. */
const LOCK = 7_238_451

/** A step that cannot have its table within this time gives up, rather than make everybody behind it wait. */
const LOCK_TIMEOUT = "2s"

/** Brings the tables to this version. Safe to run twice, and by two at once. */
export async function migrate({ owner, passwords }: MigrateOptions): Promise<{ from: number; to: number }> {
  const client = new pg.Client({ connectionString: owner, application_name: "dex-hub migrate" })
  await client.connect()
  try {
    await client.query("select pg_advisory_lock($1)", [LOCK])
    await makeRole(client, "dex_hub_app", passwords?.app)
    await makeRole(client, "dex_hub_index", passwords?.index)
    await makeRole(client, "dex_hub_keys", passwords?.keys)
    // Who gives a table to a role is a member of it.
    await client.query("grant dex_hub_keys to current_user")
    await client.query(
      "create schema if not exists hub; create schema if not exists hub_key; create table if not exists hub.migration (version int primary key, at timestamptz not null default now())",
    )
    const { rows } = await client.query<{ version: number }>(
      "select coalesce(max(version), 0) as version from hub.migration",
    )
    const from = rows[0]!.version
    if (from > MIGRATIONS.length)
      throw new Error(`The database has version ${from}, and this dex-hub knows ${MIGRATIONS.length}. Use a newer one.`)
    for (let version = from + 1; version <= MIGRATIONS.length; version++) await step(client, version)
    return { from, to: MIGRATIONS.length }
  } finally {
    await client.end()
  }
}

async function step(client: pg.Client, version: number): Promise<void> {
  await client.query("begin")
  await client.query("select set_config('lock_timeout', $1, true)", [LOCK_TIMEOUT])
  await client.query(MIGRATIONS[version - 1]!)
  await client.query("insert into hub.migration (version) values ($1)", [version])
  await client.query("commit")
}

async function makeRole(client: pg.Client, name: string, password: string | undefined): Promise<void> {
  const { rowCount } = await client.query("select from pg_roles where rolname = $1", [name])
  if (rowCount === 0) await client.query(`create role ${name} login nobypassrls noinherit`)
  if (password !== undefined) await client.query(`alter role ${name} password ${client.escapeLiteral(password)}`)
}
