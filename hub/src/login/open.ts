import type { OidcSettings } from "../settings.ts"
import type { Database } from "../store/connection.ts"
import { readsAccessTokens } from "./access-token.ts"
import { createDeviceLogins } from "./device.ts"
import type { HubLogin } from "./login.ts"
import { openProvider } from "./provider.ts"

export type LoginParts = {
  settings: OidcSettings
  db: Database
  masterKey: Buffer
  log(event: Record<string, unknown>): void
}

/** Loaded only where an identity provider is set: its libraries are not small. */
export function openLogin({ settings, db, masterKey, log }: LoginParts): HubLogin {
  const provider = openProvider(settings, log)
  return {
    settings,
    devices: createDeviceLogins({ db, provider, settings, masterKey }),
    holderOf: readsAccessTokens({ db, provider, settings, log }),
  }
}
