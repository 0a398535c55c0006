import { readFileSync } from "node:fs"
import { isThisMachine } from "../../src/net/client.ts"
import { KEY_BYTES } from "./store/keys.ts"
import { SHARD_MESSAGES, type ShardNode } from "./store/shards.ts"

/** The operator's settings. All come from the environment, so that no secret is on a command line or in a file of dex. */
export type Settings = {
  app: string
  index: string
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
  /** How many seconds the hub checks one chunk before it refuses it. */
  chunkSeconds: number
  /** A shard that has this many messages gets no further project. */
  shardMessages: number
  /**
   * The name and address of this hub as one of the nodes that share the shards. Without an address, other nodes cannot call it.
   */
  node: ShardNode
  /** Absent if members log in only with tokens of the hub. */
  oidc?: OidcSettings
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

type Environment = Record<string, string | undefined>

export class SettingsProblem extends Error {}

export function settingsFrom(env: Environment): Settings {
  return {
    app: requireSetting(env, "DEX_HUB_DATABASE_URL", "the address of PostgreSQL for the role dex_hub_app"),
    index: requireSetting(env, "DEX_HUB_INDEX_URL", "the address of PostgreSQL for the role dex_hub_index"),
    masterKey: masterKeyFrom(env),
    data: requireSetting(env, "DEX_HUB_DATA", "a folder for the search shards, which can be deleted"),
    host: env.DEX_HUB_HOST ?? "127.0.0.1",
    port: Number(env.DEX_HUB_PORT ?? 8787),
    metricsPort: env.DEX_HUB_METRICS_PORT ? Number(env.DEX_HUB_METRICS_PORT) : undefined,
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
    shardMessages: numberFrom(env, "DEX_HUB_SHARD_MESSAGES", SHARD_MESSAGES),
    node: nodeFrom(env),
    ...oidcFrom(env),
  }
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
      issuer: addressIn(env, "DEX_HUB_OIDC_ISSUER", "the identity provider"),
      clientId: requireSetting(env, "DEX_HUB_OIDC_CLIENT_ID", "the hub's client at the identity provider"),
      clientSecret: file ? readFileSync(file, "utf8").trim() : undefined,
      scopes: env.DEX_HUB_OIDC_SCOPES || "openid email profile",
      mcpScope: env.DEX_HUB_OIDC_MCP_SCOPE || "dex:read",
      days: Number(days),
    },
  }
}

/** Returns the address unchanged, because an issuer is compared character by character. */
function addressIn(env: Environment, name: string, what: string): string {
  const address = requireSetting(env, name, what)
  const url = URL.canParse(address) ? new URL(address) : undefined
  if (url?.protocol === "https:" || (url?.protocol === "http:" && isThisMachine(url.hostname))) return address
  throw new SettingsProblem(`${name} is not an https address. It should be ${what}.`)
}

export function nodeFrom(env: Environment): ShardNode {
  const [name, url] = [env.DEX_HUB_NODE || "main", env.DEX_HUB_NODE_URL]
  if (!/^[a-z0-9][a-z0-9_.-]{0,62}$/.test(name))
    throw new SettingsProblem(
      "DEX_HUB_NODE must be a name of lower-case letters, digits, dots and dashes, such as search-2.",
    )
  if (!url) return { name }
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new SettingsProblem(
      "DEX_HUB_NODE_URL is not an address. It says how other nodes reach this one: http://10.0.0.2:8787",
    )
  return { name, url: url.replace(/\/+$/, "") }
}

/** The database address of a role that may rewrite the table of keys: dex_hub_keys, or the owner of the tables. */
export function keysFrom(env: Environment): { keys?: string } {
  const keys = env.DEX_HUB_KEYS_URL || env.DEX_HUB_OWNER_URL
  return keys ? { keys } : {}
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
  if (!value) throw new SettingsProblem(`${name} is not set. It should be ${what}.`)
  return value
}

function numberFrom(env: Environment, name: string, defaultValue: number): number {
  const value = Number(env[name] || defaultValue)
  if (Number.isFinite(value) && value >= 0) return value
  throw new SettingsProblem(
    `${name} is ${JSON.stringify(env[name])}. Set it to a number, or leave it out to use ${defaultValue}.`,
  )
}
