import type { DeviceLogin, DeviceLoginState } from "../../../src/hub-client/wire.ts"
import type { OidcSettings } from "../settings.ts"
import type { Identity } from "../store/identity.ts"

/** Members log in with their identity provider, and its access tokens are taken for MCP. */
export type HubLogin = {
  settings: OidcSettings
  devices: DeviceLogins
  /** Throws a HubProblem: 401 where it is no token for this hub, 403 where it is not good for reading or speaks for nobody here. */
  holderOf(accessToken: string): Promise<Identity>
}

export type DeviceLogins = {
  begin(): Promise<DeviceLogin>
  /** Once the person agreed: their token, which is shown only now. */
  ask(login: unknown): Promise<DeviceLoginState>
}

/** What an access token has to be made for (RFC 8707). */
export function resourceOf({ url }: Pick<OidcSettings, "url">): string {
  return `${url}/mcp`
}
