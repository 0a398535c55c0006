import { createRemoteJWKSet, errors, type JWTPayload, type JWTVerifyGetKey, jwtVerify } from "jose"
import { codeOf } from "../../../src/core/error.ts"
import type { OidcSettings } from "../settings.ts"
import type { Database } from "../store/connection.ts"
import { identifySubject } from "../store/logins.ts"
import { HubProblem } from "../store/problem.ts"
import { type HubLogin, resourceOf } from "./login.ts"
import type { Provider } from "./provider.ts"

/** The accepted algorithms. All of them sign with a key pair, because a shared secret proves nothing about the issuer. */
const ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519"]

/** Errors in the token itself, as opposed to failures to fetch the provider's keys. */
const BAD_TOKEN = [
  errors.JWTInvalid,
  errors.JWTExpired,
  errors.JWTClaimValidationFailed,
  errors.JWSInvalid,
  errors.JWSSignatureVerificationFailed,
  errors.JOSEAlgNotAllowed,
  errors.JOSENotSupported,
  errors.JWKSNoMatchingKey,
  errors.JWKSMultipleMatchingKeys,
]

type TokenReaderParts = {
  db: Database
  provider: Provider
  settings: OidcSettings
  log(event: Record<string, unknown>): void
}

/**
 * Returns a function that verifies an access token, which the identity provider issued for this hub's MCP, and finds the member.
 * It does not send the token anywhere.
 */
export function createTokenReader({ db, provider, settings, log }: TokenReaderParts): HubLogin["holderOf"] {
  const { issuer, mcpScope } = settings
  const audience = resourceOf(settings)
  let keys: JWTVerifyGetKey | undefined
  return async (token) => {
    const claims = await verifyToken(async () => {
      keys ??= createRemoteJWKSet(await provider.keys())
      const options = { issuer, audience, algorithms: ALGORITHMS, requiredClaims: ["exp", "sub"] }
      return (await jwtVerify(token, keys, options)).payload
    }, log)
    if (!scopesIn(claims).includes(mcpScope))
      throw new HubProblem(403, "insufficient_scope", `This access token does not have the scope ${mcpScope}.`)
    const identity = await identifySubject(db, issuer, claims.sub!)
    if (identity) return identity
    throw new HubProblem(
      403,
      "forbidden",
      "You are not a member of this hub. `dex hub login` makes you one, if you are allowed to join.",
    )
  }
}

async function verifyToken(readClaims: () => Promise<JWTPayload>, log: TokenReaderParts["log"]): Promise<JWTPayload> {
  try {
    return await readClaims()
  } catch (error) {
    if (error instanceof HubProblem) throw error
    if (BAD_TOKEN.some((kind) => error instanceof kind))
      throw new HubProblem(401, "invalid_token", "This access token is not for this hub, or has expired. Log in again.")
    log({ level: "error", event: "identity_provider", kinds: [codeOf(error)] })
    throw new HubProblem(503, "identity_provider", "The identity provider's keys cannot be read. Try again later.")
  }
}

/** The scopes in a token. Most providers use `scope`, some `scp`; the value is a string of words or a list. */
function scopesIn({ scope, scp }: JWTPayload): string[] {
  return [scope, scp].flatMap((claim) => (Array.isArray(claim) ? claim.map(String) : String(claim ?? "").split(" ")))
}
