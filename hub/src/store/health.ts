import { codeOf } from "../../../src/core/error.ts"
import type { Database, Query } from "./connection.ts"
import { TABLES, type TablesRow } from "./migrate.ts"
import { MIGRATIONS } from "./migrations.ts"
import { TENANT } from "./scope.ts"
import { tenantKeyOf } from "./tenant.ts"

/** The oldest major version of PostgreSQL that works. */
const MIN_POSTGRES_VERSION = 15

const SELECT_ROLE = `select r.rolname as name, r.rolsuper or r.rolbypassrls as bypasses, exists (select from pg_class c
    join pg_namespace n on n.oid = c.relnamespace where n.nspname in ('hub', 'hub_key') and c.relowner = r.oid) as owns
  from pg_roles r where r.rolname = current_user`
const SELECT_UNGUARDED_TABLES = `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname in ('hub', 'hub_key') and c.relkind in ('r', 'p') and c.relname <> 'migration'
    and not (c.relrowsecurity and c.relforcerowsecurity) order by 1`
/** Selects some keys: enough to see whether the master key is the right one. */
const SELECT_SOME_KEYS = `select wrapped from hub_key.conversation_key where tenant = ${TENANT} limit 20`

export async function serverVersion(db: Database): Promise<{ version: string; problems: string[] }> {
  const [row] = await asApp(db, (query) =>
    query<{ version: string; number: number }>(
      "select current_setting('server_version') as version, current_setting('server_version_num')::int / 10000 as number",
    ),
  )
  const { version, number } = row!
  const problems =
    number < MIN_POSTGRES_VERSION
      ? [`PostgreSQL ${version} is too old: the hub needs ${MIN_POSTGRES_VERSION} or newer.`]
      : []
  return { version, problems }
}

export async function roleProblems(db: Database): Promise<string[]> {
  const rows = [
    ...(await asApp(db, (query) => query<RoleRow>(SELECT_ROLE))),
    ...(await db.asIndex(0, (query) => query<RoleRow>(SELECT_ROLE))),
  ]
  return rows.flatMap(({ name, bypasses, owns }) => [
    ...(bypasses ? [`${name} can bypass row-level security. Run: alter role ${name} nosuperuser nobypassrls`] : []),
    ...(owns
      ? [`${name} owns tables of the hub. Give them to another role, and use dex_hub_app and dex_hub_index.`]
      : []),
  ])
}
type RoleRow = { name: string; bypasses: boolean; owns: boolean }

/** PostgreSQL's error codes for a missing table, a missing schema and a missing permission. */
const MISSING_CODES = ["42P01", "3F000", "42501"]

/**
 * Problems with the version of the tables. Newer tables are fine as long as nothing was dropped that this hub needs. Throws if
 * PostgreSQL does not answer.
 */
export async function versionProblems(db: Database): Promise<string[]> {
  try {
    const [row] = await asApp(db, (query) => query<TablesRow>(TABLES))
    const { version, least_hub } = row!
    if (version < MIGRATIONS.length)
      return [`The tables have version ${version}; this dex-hub needs ${MIGRATIONS.length}. Run: dex-hub migrate`]
    if (least_hub > MIGRATIONS.length)
      return [`The tables have version ${version}; this dex-hub knows ${MIGRATIONS.length}. Install a newer dex-hub.`]
    return []
  } catch (error) {
    if (!MISSING_CODES.includes(codeOf(error) || "")) throw error
    return ["The hub's tables do not exist. Run: dex-hub migrate"]
  }
}

export async function rowSecurityProblems(db: Database): Promise<string[]> {
  const rows = await asApp(db, (query) => query<{ name: string }>(SELECT_UNGUARDED_TABLES))
  return rows.map(
    ({ name }) =>
      `${name} has no row-level security. Run: alter table ${name} enable row level security, force row level security`,
  )
}

/** Problems with the keys: the master key must open the tenant's key, and that must open some of its conversations' keys. */
export async function keyProblems(db: Database, tenant: number): Promise<string[]> {
  return db.asIndex(tenant, async (query) => {
    try {
      const key = await tenantKeyOf(db, query)
      for (const { wrapped } of await query<{ wrapped: Buffer }>(SELECT_SOME_KEYS)) key.conversationKey(wrapped)
      return []
    } catch {
      return [
        `The master key does not open the keys of tenant ${tenant}. Set DEX_HUB_MASTER_KEY_FILE to the key with which the tenant was created.`,
      ]
    }
  })
}

function asApp<T>(db: Database, work: (query: Query) => Promise<T>): Promise<T> {
  return db.asNobody({}, work)
}
