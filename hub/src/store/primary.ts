import pg from "pg"

// Finds the PostgreSQL that takes writes, if the address names several servers that can replace each other:
// postgresql://dex_hub_app@db1,db2:5433,db3/hub. pg knows only one host, and ignores `target_session_attrs`.

/** How long a server may take to say whether it is the primary, in milliseconds. */
const PROBE_MS = 3_000
/** How long an answer is used for further connections, in milliseconds. */
const FRESH_MS = 1_000

/** Runs only on a server that is not in recovery. The file's name begins with the timeline. */
const SELECT_TIMELINE = `select case when pg_is_in_recovery() then null
  else substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8) end as timeline`

/** The settings of `pg` for this address. With several hosts, each new connection goes to the primary of that moment. */
export function connectTo(address: string): pg.PoolConfig {
  const addresses = singleAddresses(address)
  if (addresses.length === 1) return { connectionString: address }
  return { connectionString: addresses[0], Client: clientOfPrimary(addresses) }
}

/** Opens one connection, to the primary if the address has several hosts. */
export async function openClient(address: string, options: pg.ClientConfig): Promise<pg.Client> {
  const addresses = singleAddresses(address)
  const connectionString = addresses.length === 1 ? address : await findPrimary(addresses)
  const client = new pg.Client({ ...options, connectionString })
  client.on("error", () => {}) // a broken connection fails the next query; without a listener it would end the process
  await client.connect()
  return client
}

/**
 * Splits an address with several hosts, as PostgreSQL's own programs write it: separated by commas, before the path or as the
 * parameter `host`, with one port for all or one for each.
 */
export function singleAddresses(address: string): string[] {
  const [, start = "", authority = "", rest = ""] = /^(\w+:\/\/(?:[^@/?]*@)?)([^/?]*)(.*)$/s.exec(address) ?? []
  if (authority.includes(",")) return authority.split(",").map((host) => `${start}${host}${rest}`)
  const [path = "", query = ""] = rest.split("?")
  const parameters = new URLSearchParams(query)
  const hosts = parameters.get("host")?.split(",") ?? []
  if (hosts.length < 2) return [address]
  const ports = parameters.get("port")?.split(",") ?? []
  return hosts.map((host, i) => {
    parameters.set("host", host)
    if (ports.length > 0) parameters.set("port", ports[i] ?? ports[0]!)
    return `${start}${authority}${path}?${parameters}`
  })
}

/** The address of the server that takes writes. If several do, the one with the highest timeline was promoted last. */
async function findPrimary(addresses: string[]): Promise<string> {
  const answers = await Promise.allSettled(addresses.map(timelineOf))
  const primaries = answers.flatMap((answer, i) =>
    answer.status === "fulfilled" && answer.value !== null ? [{ address: addresses[i]!, timeline: answer.value }] : [],
  )
  const newest = primaries.toSorted((a, b) => (a.timeline < b.timeline ? 1 : -1))[0]
  if (newest) return newest.address
  const failed = answers.find((answer) => answer.status === "rejected")
  throw failed?.reason ?? new Error("Connection terminated: no PostgreSQL of this address takes writes.")
}

/** The timeline of a server that takes writes, in hexadecimal; null for one that follows another. */
async function timelineOf(address: string): Promise<string | null> {
  const client = new pg.Client({
    connectionString: address,
    application_name: "dex-hub primary",
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
  })
  client.on("error", () => {})
  try {
    await client.connect()
    return (await client.query<{ timeline: string | null }>(SELECT_TIMELINE)).rows[0]!.timeline
  } finally {
    client.end().catch(() => {})
  }
}

/** A client that looks for the primary before it connects. Clients that connect at the same time look once. */
function clientOfPrimary(addresses: string[]): typeof pg.Client {
  let last: { primary: Promise<string>; at: number } | undefined
  const primary = () => {
    const now = performance.now()
    if (!last || now - last.at > FRESH_MS) last = { primary: findPrimary(addresses), at: now }
    return last.primary
  }
  return class extends pg.Client {
    override connect(): Promise<pg.Client>
    override connect(callback: (error: Error) => void): void
    override connect(callback?: (error: Error) => void): Promise<pg.Client> | undefined {
      const connecting = primary().then((address) => {
        const { host, port } = new pg.Client({ connectionString: address })
        Object.assign(this, { host, port })
        return super.connect()
      })
      if (!callback) return connecting
      connecting.then(() => (callback as (error?: Error) => void)(), callback)
      return undefined
    }
  }
}
