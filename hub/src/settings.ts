import { readFileSync } from "node:fs"
import { isThisMachine } from "../../src/net/client.ts"
import { KEY_BYTES } from "./store/keys.ts"

/** The operator's settings, all from environment variables, so that dex stores no secret and none is on a command line. */
export type Settings = {
  app: string
  index: string
  /** Absent if the hub is not administered over HTTP. */
  admin?: string
  masterKey: Buffer
  data: string
  host: string
  port: number
  /** Absent if metrics are off. */
  metricsPort?: number
  keys?: string
  /**
   * How many seconds requests are still accepted after a signal to stop, so that a proxy has time to notice and switch to another
   * hub.
   */
  drainSeconds: number
  prepared: boolean
  limits: {
    pushesPerMinute: number
    readsPerMinute: number
    atOnce: number
    pushedMbPerMinute: number
    unknownTokensPerMinute: number
    loginsPerMinute: number
    loginsAtOnce: number
  }
  /** The time limit for checking one chunk, in seconds. A chunk that takes longer is refused. */
  chunkSeconds: number
  /** Absent if no identity provider is configured. */
  oidc?: OidcSettings
  /** Absent if no tenant's words are in a cluster of OpenSearch. */
  cluster?: ClusterSettings
}

export type OidcSettings = {
  /** The hub's own public address. */
  url: string
  issuer: string
  clientId: string
  clientSecret?: string
  /** The scopes that a login requests. */
  scopes: string
  /** The scope that an access token for MCP needs. */
  mcpScope: string
  /** How many days a login lasts. */
  days: number
}

/** How the hub reaches the cluster. */
export type ClusterSettings = {
  addresses: string[]
  /** The beginning of the names of all of the hub's indexes. */
  prefix: string
  shards: number
  user?: string
  password?: string
  /** In PEM format, as the other two. */
  authority?: string
  certificate?: string
  key?: string
}

type Environment = Record<string, string | undefined>

export class SettingsProblem extends Error {}

export function settingsFrom(env: Environment): Settings {
  return {
    app: requireSetting(env, "DEX_HUB_DATABASE_URL", "the address of PostgreSQL for the role dex_hub_app"),
    index: requireSetting(env, "DEX_HUB_INDEX_URL", "the address of PostgreSQL for the role dex_hub_index"),
    admin: env.DEX_HUB_ADMIN_URL || undefined,
    masterKey: masterKeyFrom(env),
    data: requireSetting(env, "DEX_HUB_DATA", "a folder for the search index, which can be deleted"),
    host: env.DEX_HUB_HOST ?? "127.0.0.1",
    port: portFrom(env, "DEX_HUB_PORT") ?? 8787,
    metricsPort: portFrom(env, "DEX_HUB_METRICS_PORT"),
    ...keysFrom(env),
    drainSeconds: numberFrom(env, "DEX_HUB_DRAIN_SECONDS", 3),
    prepared: env.DEX_HUB_PREPARED !== "no",
    limits: {
      pushesPerMinute: numberFrom(env, "DEX_HUB_PUSHES_PER_MINUTE", 6_000),
      readsPerMinute: numberFrom(env, "DEX_HUB_READS_PER_MINUTE", 1_200),
      atOnce: numberFrom(env, "DEX_HUB_AT_ONCE", 16),
      pushedMbPerMinute: numberFrom(env, "DEX_HUB_PUSHED_MB_PER_MINUTE", 1_000),
      unknownTokensPerMinute: numberFrom(env, "DEX_HUB_UNKNOWN_TOKENS_PER_MINUTE", 600),
      loginsPerMinute: numberFrom(env, "DEX_HUB_LOGINS_PER_MINUTE", 60),
      loginsAtOnce: numberFrom(env, "DEX_HUB_LOGINS_AT_ONCE", 16),
    },
    chunkSeconds: numberFrom(env, "DEX_HUB_CHUNK_SECONDS", 10),
    ...oidcFrom(env),
    cluster: clusterFrom(env),
  }
}

/** The settings for a cluster of OpenSearch; undefined if none is configured. */
export function clusterFrom(env: Environment): ClusterSettings | undefined {
  if (!env.DEX_HUB_SEARCH_URL) return undefined
  const name = "DEX_HUB_SEARCH_URL"
  const addresses = env[name]!.split(",").map((address) => address.trim())
  for (const address of addresses) {
    const url = URL.canParse(address) ? new URL(address) : undefined
    if (url?.username || url?.password)
      throw new SettingsProblem(
        `${name} contains a user or password. Set DEX_HUB_SEARCH_USER and DEX_HUB_SEARCH_PASSWORD_FILE instead.`,
      )
    if (url?.protocol !== "https:" && !(url?.protocol === "http:" && isThisMachine(url.hostname)))
      throw new SettingsProblem(
        `${name} has an address that is not https. Set it to the addresses of OpenSearch, separated by commas, such as https://search.example.com:9200.`,
      )
  }
  const prefix = env.DEX_HUB_SEARCH_PREFIX || "dex"
  if (!/^[a-z0-9][a-z0-9_-]{0,40}$/.test(prefix))
    throw new SettingsProblem(
      "DEX_HUB_SEARCH_PREFIX must begin with a lower-case letter or digit, and have at most 41 of these, - and _. Choose another prefix.",
    )
  const shards = numberFrom(env, "DEX_HUB_SEARCH_SHARDS", 1)
  if (!Number.isInteger(shards) || shards < 1 || shards > 1_024)
    throw new SettingsProblem("DEX_HUB_SEARCH_SHARDS must be a number from 1 to 1024.")
  const file = (setting: string) => (env[setting] ? readFileSync(env[setting], "utf8") : undefined)
  return {
    addresses,
    prefix,
    shards,
    user: env.DEX_HUB_SEARCH_USER || undefined,
    password: file("DEX_HUB_SEARCH_PASSWORD_FILE")?.trim(),
    authority: file("DEX_HUB_SEARCH_CA_FILE"),
    certificate: file("DEX_HUB_SEARCH_CERTIFICATE_FILE"),
    key: file("DEX_HUB_SEARCH_KEY_FILE"),
  }
}

const SHARD_SETTINGS = ["DEX_HUB_NODE", "DEX_HUB_NODE_URL", "DEX_HUB_SHARD_MESSAGES"]

/** Problems with settings of older hubs, which shared the search index among several nodes. */
export function outdatedSettings(env: Environment): string[] {
  const names = SHARD_SETTINGS.filter((name) => env[name])
  if (names.length === 0) return []
  return [
    `${names.join(" and ")} no longer ${names.length === 1 ? "has" : "have"} an effect: each hub now has the index of every tenant. Remove ${names.length === 1 ? "it" : "them"}, and let your proxy send requests to all hubs (docs/hub-operations.md, "Several hubs").`,
  ]
}

/** The settings for login with an identity provider; empty if none is configured. */
export function oidcFrom(env: Environment): { oidc?: OidcSettings } {
  if (!env.DEX_HUB_OIDC_ISSUER) return {}
  const file = env.DEX_HUB_OIDC_CLIENT_SECRET_FILE
  const days = env.DEX_HUB_LOGIN_DAYS ?? "90"
  if (!/^[1-9]\d{0,3}$/.test(days))
    throw new SettingsProblem("DEX_HUB_LOGIN_DAYS must be a number of days, such as 90.")
  return {
    oidc: {
      url: addressIn(env, "DEX_HUB_URL", "the hub's own address, such as https://hub.example.com").replace(/\/+$/, ""),
      issuer: addressIn(env, "DEX_HUB_OIDC_ISSUER", "the address of the identity provider"),
      clientId: requireSetting(env, "DEX_HUB_OIDC_CLIENT_ID", "the id that the identity provider gave to the hub"),
      clientSecret: file ? readFileSync(file, "utf8").trim() : undefined,
      scopes: env.DEX_HUB_OIDC_SCOPES || "openid email profile",
      mcpScope: env.DEX_HUB_OIDC_MCP_SCOPE || "dex:read",
      days: Number(days),
    },
  }
}

/** Requires https, except on this machine. Returns the address unchanged: an issuer is compared character by character. */
function addressIn(env: Environment, name: string, what: string): string {
  const address = requireSetting(env, name, what)
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isThisMachine(url.hostname))) return address
  throw new SettingsProblem(`${name} is not an https address. Set it to ${what}.`)
}

/** The database address of the role that may rewrite the table of keys, dex_hub_keys. Empty if not set. */
export function keysFrom(env: Environment): { keys?: string } {
  return env.DEX_HUB_KEYS_URL ? { keys: env.DEX_HUB_KEYS_URL } : {}
}

export function ownerFrom(env: Environment): string {
  return requireSetting(env, "DEX_HUB_OWNER_URL", "the address of PostgreSQL for the role that owns the tables")
}

/** Reads the master key from its file, which contains 64 hexadecimal digits. `openssl rand -hex 32` creates one. */
export function masterKeyFrom(env: Environment): Buffer {
  const file = requireSetting(
    env,
    "DEX_HUB_MASTER_KEY_FILE",
    "a file with the master key, which `openssl rand -hex 32` creates",
  )
  const text = readFileSync(file, "utf8").trim()
  if (!/^[0-9a-f]+$/i.test(text) || text.length !== KEY_BYTES * 2)
    throw new SettingsProblem(
      `${file} does not contain 64 hexadecimal digits. \`openssl rand -hex 32\` creates a master key.`,
    )
  return Buffer.from(text, "hex")
}

function requireSetting(env: Environment, name: string, what: string): string {
  const value = env[name]
  if (!value) throw new SettingsProblem(`${name} is not set. Set it to ${what}.`)
  return value
}

function numberFrom(env: Environment, name: string, defaultValue: number): number {
  const value = Number(env[name] || defaultValue)
  if (Number.isFinite(value) && value >= 0) return value
  throw new SettingsProblem(
    `${name} is ${JSON.stringify(env[name])}. Set it to a number, or leave it out to use ${defaultValue}.`,
  )
}

function portFrom(env: Environment, name: string): number | undefined {
  const text = env[name]
  if (!text) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new SettingsProblem(`${name} is ${JSON.stringify(text)}. Set it to a port, such as 8787.`)
}
