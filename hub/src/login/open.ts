import { type Bucket, createBucket } from "../bucket.ts"
import { createRecentCache } from "../recent.ts"
import type { OidcSettings } from "../settings.ts"
import type { Database } from "../store/connection.ts"
import { seal, sealedName, unseal } from "../store/keys.ts"
import { logInPerson, type Person } from "../store/logins.ts"
import { HubProblem } from "../store/problem.ts"
import { createTokenReader } from "./access-token.ts"
import type { DeviceLogins, HubLogin } from "./login.ts"
import { expiredProblem, openProvider, type Provider } from "./provider.ts"

type LoginParts = {
  settings: OidcSettings
  db: Database
  masterKey: Buffer
  log(event: Record<string, unknown>): void
}

/**
 * Sets up login with an identity provider. This file is loaded only if one is configured, because the libraries that it needs are
 * large.
 */
export function openLogin({ settings, db, masterKey, log }: LoginParts): HubLogin {
  const provider = openProvider(settings, log)
  return {
    settings,
    devices: createDeviceLogins({ db, provider, settings, masterKey }),
    holderOf: createTokenReader({ db, provider, settings, log }),
  }
}

const MAX_GROUPS = 1_000
const MAX_CLAIM_LENGTH = 200
/** The maximum length of a name, without the number that is appended if the name is taken. */
const MAX_NAME_LENGTH = 50

/** The person whom the claims describe. An unverified e-mail address is ignored, because anybody can type one. */
function personIn(issuer: string, claims: Record<string, unknown>): Person {
  const isVerified = claims.email_verified === true || claims.email_verified === "true"
  const email = isVerified ? textIn(claims.email) : undefined
  const display = textIn(claims.name)
  return {
    issuer,
    subject: String(claims.sub),
    email,
    display,
    name: nameFrom(email) ?? nameFrom(textIn(claims.preferred_username)) ?? nameFrom(display) ?? "member",
    groups: groupsIn(claims.groups),
  }
}

function groupsIn(claim: unknown): string[] {
  const groups = typeof claim === "string" ? [claim] : Array.isArray(claim) ? claim : []
  return [...new Set(groups.filter((one): one is string => textIn(one) === one))].slice(0, MAX_GROUPS)
}

function textIn(claim: unknown): string | undefined {
  return typeof claim === "string" && claim !== "" && claim.length <= MAX_CLAIM_LENGTH && !claim.includes("\0")
    ? claim
    : undefined
}

/** A name that is valid in refs: ann.lee for Ann.Lee@example.com. */
function nameFrom(text = ""): string | undefined {
  const name = text
    .replace(/@.*$/s, "")
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9_.-]+/g, "-")
    .replace(/^[^a-z0-9]+/, "")
    .slice(0, MAX_NAME_LENGTH)
    .replace(/[-.]+$/, "")
  return name === "" ? undefined : name
}

type DeviceLoginParts = {
  db: Database
  provider: Provider
  settings: OidcSettings
  masterKey: Buffer
  now?: () => number
}

const SEAL_PURPOSE = "device login"
/** How many times per minute a client may ask about one login. dex asks every five seconds. */
const POLLS_PER_MINUTE = 30
/** The maximum number of logins whose polls are counted. By default, fewer are started within two hours. */
const MAX_LOGINS = 10_000

/** Handles device logins. A node stores nothing while the person logs in: the client keeps the provider's code, sealed. */
function createDeviceLogins({ db, provider, settings, masterKey, now = Date.now }: DeviceLoginParts): DeviceLogins {
  const key = sealedName(masterKey, SEAL_PURPOSE)
  const buckets = createRecentCache<Bucket>(MAX_LOGINS, () => 1)
  const asksTooOften = (code: string) => {
    const bucket = buckets.get(code) ?? createBucket(POLLS_PER_MINUTE, now)
    buckets.set(code, bucket)
    return bucket.take() > 0
  }
  return {
    begin: async () => {
      const { code, userCode, address, addressWithCode, seconds, interval } = await provider.beginDevice()
      const state = JSON.stringify({ code, until: now() + seconds * 1_000 })
      return {
        login: seal(key, Buffer.from(state), SEAL_PURPOSE).toString("base64url"),
        user_code: userCode,
        verification_uri: address,
        verification_uri_complete: addressWithCode,
        expires_in: seconds,
        interval,
      }
    },
    ask: async (login) => {
      const { code, until } = openSealed(key, login)
      if (until < now()) throw expiredProblem()
      if (asksTooOften(code)) return { state: "slow_down" }
      const answer = await provider.askDevice(code)
      if (answer.state !== "done") return answer
      return { state: "done", token: await logInPerson(db, personIn(settings.issuer, answer.claims), settings.days) }
    },
  }
}

function openSealed(key: Buffer, login: unknown): { code: string; until: number } {
  try {
    return JSON.parse(unseal(key, Buffer.from(String(login), "base64url"), SEAL_PURPOSE).toString("utf8"))
  } catch {
    throw new HubProblem(400, "invalid", "This login was not started on this hub.") // the reason does not matter
  }
}
