import { createHash } from "node:crypto"
import pg from "pg"
import { codeOf } from "../../../src/core/error.ts"
import { type Keyring, openKeyring } from "./keyring.ts"
import { connectTo } from "./primary.ts"
import { HubProblem } from "./problem.ts"

/** The member on whose behalf statements run. */
export type Viewer = { tenant: number; member: number; role: MemberRole; name: string }
export type MemberRole = "member" | "auditor" | "admin" | "service"

export type Query = <Row extends object>(text: string, values?: unknown[]) => Promise<Row[]>

/**
 * PostgreSQL through the hub's two roles: `app` for members who read and push, with both access checks, and `index` for the hub's
 * own work, such as the search index, which reads all of one tenant.
 */
export type Database = {
  /** Runs one transaction on behalf of this viewer. Throws a HubProblem (401) if they have left in the meantime. */
  as<T>(viewer: Viewer, work: (query: Query) => Promise<T>): Promise<T>
  /** Runs one transaction that reads all of a tenant. */
  asIndex<T>(tenant: number, work: (query: Query) => Promise<T>): Promise<T>
  /**
   * Runs one transaction of an admin or an auditor about the members and rules of their tenant, which sees no text. Throws a
   * HubProblem (401) if they have left in the meantime.
   */
  asAdmin<T>(viewer: Viewer, work: (query: Query) => Promise<T>): Promise<T>
  /** Runs one transaction of an operator, which sees no members, or without one. Throws a HubProblem (401) if they have left. */
  asOperator<T>(operator: number | undefined, work: (query: Query) => Promise<T>): Promise<T>
  /** False if the address of the role for administration is not set. */
  hasAdministration: boolean
  /** Runs one transaction without a member. It sees only what these settings name. */
  asNobody<T>(settings: Record<string, string>, work: (query: Query) => Promise<T>): Promise<T>
  keys: Keyring
  /** The open, idle and waiting connections of each role. */
  pools(): Record<"app" | "index", PoolCounts> & { admin?: PoolCounts }
  close(): Promise<void>
}

type PoolCounts = { open: number; idle: number; waiting: number }

export type DatabaseOptions = {
  /** The addresses of the roles `dex_hub_app` and `dex_hub_index`. */
  app: string
  index: string
  /** The address of the role `dex_hub_admin`. Without it, nothing can be administered over HTTP. */
  admin?: string
  masterKey: Buffer
  /** The number of connections per role. */
  connections?: number
  /** False if a pooler may give each transaction another connection, which does not have the prepared statements. */
  prepared?: boolean
}

/** PostgreSQL's number for the type bigint, which ids and times have. They never exceed 2^53, so they are read as numbers. */
const BIGINT = 20

export function openDatabase(options: DatabaseOptions): Database {
  const { app, index, admin, masterKey, connections = 8, prepared = true } = options
  const openPool = (address: string, max = connections) => {
    const pool = new pg.Pool({
      ...connectTo(address),
      ...{ max, types: TYPES, application_name: "dex-hub" },
      connectionTimeoutMillis: CONNECT_MS,
    })
    // A connection that breaks while idle is replaced; one that breaks in use fails the query. Without a listener on the client
    // itself, one that breaks between two queries would end the process.
    pool.on("error", () => {})
    pool.on("connect", (client) => client.on("error", () => {}))
    return pool
  }
  const pools = { app: openPool(app), index: openPool(index) }
  const adminPool = admin === undefined ? undefined : openPool(admin, ADMIN_CONNECTIONS)
  const keys = openKeyring(masterKey)
  const asViewer =
    (pool: pg.Pool): Database["as"] =>
    ({ tenant, member, role }, work) =>
      inTransaction(pool, prepared, fillIn(BEGIN_AS, [tenant, member, role]), async (query, openingRow) => {
        if (!openingRow?.is_theirs) throw accessEnded()
        return work(query)
      })
  const administration = () => {
    if (adminPool) return adminPool
    throw new HubProblem(
      404,
      "not_found",
      "This hub cannot be administered over HTTP. Its operator must set DEX_HUB_ADMIN_URL.",
    )
  }
  return {
    as: asViewer(pools.app),
    asAdmin: async (viewer, work) => asViewer(administration())(viewer, work),
    asOperator: async (operator, work) => {
      const opening = operator === undefined ? "select true as is_theirs" : fillIn(BEGIN_AS_OPERATOR, [operator])
      return inTransaction(administration(), prepared, opening, async (query, openingRow) => {
        if (!openingRow?.is_theirs) throw accessEnded()
        return work(query)
      })
    },
    hasAdministration: adminPool !== undefined,
    asIndex: (tenant, work) =>
      inTransaction(pools.index, prepared, settingsStatement({ "hub.tenant": String(tenant) }), work),
    asNobody: (settings, work) => inTransaction(pools.app, prepared, settingsStatement(settings), work),
    keys,
    pools: () => ({
      app: countsOf(pools.app),
      index: countsOf(pools.index),
      admin: adminPool && countsOf(adminPool),
    }),
    close: async () => void (await Promise.all([pools.app.end(), pools.index.end(), adminPool?.end()])),
  }
}

/** Administration is rare, so it needs few connections. */
const ADMIN_CONNECTIONS = 2

function accessEnded(): HubProblem {
  return new HubProblem(401, "unauthorized", "Your access to this hub has ended.")
}

/** How long to wait for a free connection of the pool or for a new one, in milliseconds. */
const CONNECT_MS = 10_000

/**
 * Matches the error codes of a server that is shutting down, has become read-only or cannot be reached. The next connection may
 * reach another server. Codes that begin with 08 are broken connections.
 */
const UNAVAILABLE_CODE =
  /^(57P0\d|25006|25P03|53300|08...|ECONN\w+|EPIPE|ETIMEDOUT|EHOSTUNREACH|ENETUNREACH|ENOTFOUND|EAI_AGAIN|ENOENT)$/
/** Matches the messages of pg's errors that have no code. */
const UNAVAILABLE_MESSAGE =
  /^(Connection terminated|Client has encountered a connection error|timeout exceeded when trying to connect)/

/** Returns the answer to the client if the error means that PostgreSQL is not available, otherwise undefined. */
export function databaseUnavailable(error: unknown): HubProblem | undefined {
  if (!(error instanceof Error) || error instanceof HubProblem) return undefined
  const code = codeOf(error)
  if (!UNAVAILABLE_CODE.test(code) && !UNAVAILABLE_MESSAGE.test(error.message)) return undefined
  return new HubProblem(503, "database", "The hub's database does not answer. Try again in a moment.", {
    afterSeconds: 5, // dex tries four times, which covers a fail-over of 15 seconds
  })
}

function countsOf({ totalCount, idleCount, waitingCount }: pg.Pool) {
  return { open: totalCount, idle: idleCount, waiting: waitingCount }
}

export const TYPES = { getTypeParser: parserOf }

function parserOf(oid: number, format?: "text" | "binary") {
  return oid === BIGINT ? Number : pg.types.getTypeParser(oid, format as "text")
}

const statementNames = new Map<string, string>()

/**
 * The name of a prepared statement, which is planned once per connection. Because of the access checks, planning is most of the
 * cost of a short statement.
 */
function statementName(text: string): string {
  const name = statementNames.get(text) ?? `hub_${createHash("sha256").update(text).digest("hex").slice(0, 16)}`
  statementNames.set(text, name)
  return name
}

/** Starts to act for a member. Returns false if they have left, or if their role has changed. */
export const BEGIN_AS = "select hub.begin_as($1, $2, $3) as is_theirs"

const BEGIN_AS_OPERATOR = "select hub.begin_as_operator($1) as is_theirs"

/** A statement that applies the settings. It is sent together with `begin` to save a round trip. */
function settingsStatement(settings: Record<string, string>): string {
  return Object.entries(settings)
    .map((one) => fillIn("select set_config($1, $2, true)", one))
    .join("; ")
}

function fillIn(text: string, values: readonly (string | number)[]): string {
  return text.replaceAll(/\$(\d)/g, (_, n: string) => pg.escapeLiteral(String(values[Number(n) - 1])))
}

/**
 * How long a transaction may wait for its hub, in milliseconds. A hub that is paused in the middle of a push would otherwise hold up
 * all other pushes of the tenant.
 */
const IDLE_MS = 20_000

/**
 * Begins a transaction that uses generic plans. By default, PostgreSQL would plan statements with a list as a parameter again
 * each time. Because of the access checks, that costs more than running most of them.
 */
const BEGIN = `begin; set local plan_cache_mode = force_generic_plan; set local idle_in_transaction_session_timeout = ${IDLE_MS}`

/**
 * Runs a transaction. Settings end with it, so that a pooler may give the connection to anybody next. `opening` has the first
 * statements. `work` gets the first row of their last result.
 */
async function inTransaction<T>(
  pool: pg.Pool,
  prepared: boolean,
  opening: string,
  work: (query: Query, openingRow: { is_theirs?: boolean } | undefined) => Promise<T>,
): Promise<T> {
  const client = await pool.connect()
  let broken: unknown
  try {
    // pg returns an array for several statements, which its types do not declare.
    const results = (await client.query(`${BEGIN}; ${opening}`)) as unknown as pg.QueryResult[]
    const query: Query = async (text, values) =>
      (await client.query({ name: prepared ? statementName(text) : undefined, text, values })).rows
    const result = await work(query, results.at(-1)!.rows[0])
    await client.query("commit")
    return result
  } catch (error) {
    if (databaseUnavailable(error)) broken = error
    else
      await client.query("rollback").catch((failed: unknown) => {
        broken = failed
      })
    throw error
  } finally {
    client.release(broken !== undefined)
  }
}
