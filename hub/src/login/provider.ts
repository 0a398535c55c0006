import * as oidc from "openid-client"
import type { OidcSettings } from "../settings.ts"
import { HubProblem } from "../store/problem.ts"

/** The code to enter on the provider's page within `seconds`. `interval` is the number of seconds between two polls. */
export type DeviceCode = {
  code: string
  userCode: string
  address: string
  addressWithCode?: string
  seconds: number
  interval: number
}

export type DeviceAnswer = { state: "waiting" | "slow_down" } | { state: "done"; claims: Record<string, unknown> }

export type Provider = {
  beginDevice(): Promise<DeviceCode>
  /** Asks the provider once. Throws a HubProblem if the login was refused or has expired. */
  askDevice(code: string): Promise<DeviceAnswer>
  /** The address of the provider's keys. */
  keys(): Promise<URL>
}

type Log = (event: Record<string, unknown>) => void

const TIMEOUT_SECONDS = 10
const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
/** The interval from RFC 8628, in seconds, if the provider names none. */
const DEFAULT_INTERVAL_SECONDS = 5

/** Connects to the identity provider when it is first needed, so that everything else works while the provider is down. */
export function openProvider(settings: OidcSettings, log: Log): Provider {
  let discovered: Promise<oidc.Configuration> | undefined
  const configuration = () => {
    discovered ??= discover(settings).catch((error: unknown) => {
      discovered = undefined
      throw error
    })
    return discovered
  }
  const withProvider = async <T>(work: (config: oidc.Configuration) => Promise<T>): Promise<T> => {
    try {
      return await work(await configuration())
    } catch (error) {
      throw error instanceof HubProblem ? error : providerProblem(error, log)
    }
  }
  return {
    beginDevice: () =>
      withProvider(async (config) => {
        const response = await oidc.initiateDeviceAuthorization(config, { scope: settings.scopes })
        return {
          code: response.device_code,
          userCode: response.user_code,
          address: response.verification_uri,
          addressWithCode: response.verification_uri_complete,
          seconds: response.expires_in,
          interval: response.interval ?? DEFAULT_INTERVAL_SECONDS,
        }
      }),
    askDevice: (code) =>
      withProvider(async (config) => {
        try {
          const tokens = await oidc.genericGrantRequest(config, DEVICE_GRANT, { device_code: code })
          return { state: "done", claims: await claimsOf(config, tokens) }
        } catch (error) {
          return pendingAnswer(error)
        }
      }),
    keys: () =>
      withProvider(async (config) => {
        const { jwks_uri } = config.serverMetadata()
        if (jwks_uri === undefined) throw new Error("no keys")
        return new URL(jwks_uri)
      }),
  }
}

function discover({ issuer, clientId, clientSecret }: OidcSettings): Promise<oidc.Configuration> {
  const isUnencrypted = issuer.startsWith("http:") // the settings allow that only for an address on this machine
  const auth = clientSecret === undefined ? oidc.None() : oidc.ClientSecretBasic(clientSecret)
  return oidc.discovery(new URL(issuer), clientId, undefined, auth, {
    timeout: TIMEOUT_SECONDS,
    execute: [oidc.enableNonRepudiationChecks, ...(isUnencrypted ? [oidc.allowInsecureRequests] : [])],
  })
}

type Tokens = Awaited<ReturnType<typeof oidc.genericGrantRequest>>

/**
 * The claims of a login. Some providers put only the subject into the ID token, and the other claims into the userinfo response.
 */
async function claimsOf(config: oidc.Configuration, tokens: Tokens): Promise<Record<string, unknown>> {
  const claims = tokens.claims()
  if (!claims) throw new Error("no ID token")
  if (config.serverMetadata().userinfo_endpoint === undefined) return claims
  return { ...(await oidc.fetchUserInfo(config, tokens.access_token, claims.sub)), ...claims }
}

/**
 * Translates the error with which the provider says that there is no token yet (RFC 8628). Throws a HubProblem if the login was
 * refused or has expired. Any other error is thrown again.
 */
function pendingAnswer(error: unknown): DeviceAnswer {
  const code = error instanceof oidc.ResponseBodyError ? error.error : undefined
  if (code === "authorization_pending") return { state: "waiting" }
  if (code === "slow_down") return { state: "slow_down" }
  if (code === "access_denied")
    throw new HubProblem(403, "denied", "The login was refused on the identity provider's page.")
  if (code === "expired_token" || code === "invalid_grant") throw expiredProblem()
  throw error
}

export function expiredProblem(): HubProblem {
  return new HubProblem(410, "expired", "The code has expired. Log in again.")
}

/** The problem to report to the client. Only the kind of the error is logged, because its text may quote what was sent. */
function providerProblem(error: unknown, log: Log): HubProblem {
  const { code, error: oauthError, name } = error as { code?: unknown; error?: unknown; name?: unknown }
  const kinds = [name, code, oauthError].filter((one) => typeof one === "string" && /^\w{1,60}$/.test(one))
  log({ level: "error", event: "identity_provider", kinds })
  return new HubProblem(502, "identity_provider", "The identity provider gave an unexpected answer. Try again later.")
}
