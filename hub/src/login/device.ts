import { type Bucket, createBucket } from "../bucket.ts"
import { createRecent } from "../recent.ts"
import type { OidcSettings } from "../settings.ts"
import type { Database } from "../store/connection.ts"
import { seal, sealedName, unseal } from "../store/keys.ts"
import { logInPerson } from "../store/logins.ts"
import { HubProblem } from "../store/problem.ts"
import type { DeviceLogins } from "./login.ts"
import { personIn } from "./person.ts"
import { expired, type Provider } from "./provider.ts"

type Parts = { db: Database; provider: Provider; settings: OidcSettings; masterKey: Buffer; now?: () => number }

const ABOUT = "device login"
/** Of one login: dex asks every five seconds. */
const ASKS_PER_MINUTE = 30
/** More than begin in two hours. */
const MOST_LOGINS = 10_000

/** Nothing that is needed is kept between the two calls: who waits brings what the provider gave, sealed, to whichever node they reach. */
export function createDeviceLogins({ db, provider, settings, masterKey, now = Date.now }: Parts): DeviceLogins {
  const key = sealedName(masterKey, ABOUT)
  const asks = createRecent<Bucket>(MOST_LOGINS, () => 1)
  const isTooOften = (code: string) => {
    const bucket = asks.get(code) ?? createBucket(ASKS_PER_MINUTE, now)
    asks.set(code, bucket)
    return bucket.take() > 0
  }
  return {
    begin: async () => {
      const { code, userCode, address, addressWithCode, seconds, interval } = await provider.beginDevice()
      const kept = JSON.stringify({ code, until: now() + seconds * 1_000 })
      return {
        login: seal(key, Buffer.from(kept), ABOUT).toString("base64url"),
        user_code: userCode,
        verification_uri: address,
        ...(addressWithCode !== undefined && { verification_uri_complete: addressWithCode }),
        expires_in: seconds,
        interval,
      }
    },
    ask: async (login) => {
      const { code, until } = opened(key, login)
      if (until < now()) throw expired()
      if (isTooOften(code)) return { state: "slow_down" }
      const answer = await provider.askDevice(code)
      if (answer.state !== "done") return answer
      return { state: "done", token: await logInPerson(db, personIn(settings.issuer, answer.claims), settings.days) }
    },
  }
}

function opened(key: Buffer, login: unknown): { code: string; until: number } {
  try {
    return JSON.parse(unseal(key, Buffer.from(String(login), "base64url"), ABOUT).toString("utf8"))
  } catch {
    throw new HubProblem(400, "invalid", "This is not a login that was begun here.") // whatever is wrong with it
  }
}
