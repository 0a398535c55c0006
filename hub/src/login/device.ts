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

/** Nothing is kept between the two calls: who waits brings what the provider gave, sealed, to whichever node they reach. */
export function createDeviceLogins({ db, provider, settings, masterKey, now = Date.now }: Parts): DeviceLogins {
  const key = sealedName(masterKey, ABOUT)
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
